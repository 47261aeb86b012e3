/* allocate.c - choosing one option an item: within the limit, and as good as trying everything on small cases. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "quantize/allocate.h"

#define ITEMS 6

static void random_items(dice *d, allocate_item *items)
{
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (allocate_item){ .n = 2 + (int)dice_below(d, 3) };
        uint64_t bytes = 0;
        double cost = 100;
        for (int k = 0; k < items[i].n; k++) {
            bytes += 1 + dice_below(d, i == 0 ? 1000 : 100); /* one is large */
            cost *= 0.2 + 0.9 * (double)dice_uniform(d);      /* sometimes worse than a smaller one */
            items[i].bytes[k] = bytes;
            items[i].cost[k] = cost;
        }
    }
}

/* The least cost within the limit by trying all; infinite where nothing fits. */
static double law(allocate_item *items, int at, uint64_t left)
{
    double best = INFINITY;
    if (at == ITEMS) return 0;
    for (int k = 0; k < items[at].n; k++)
        if (items[at].bytes[k] <= left) best = fmin(best, items[at].cost[k] + law(items, at + 1, left - items[at].bytes[k]));
    return best;
}

static void against_all(void **unused)
{
    (void)unused;
    dice d = { 21 };
    double ratio = 0;
    int n = 0;
    for (int round = 0; round < 500; round++) {
        allocate_item items[ITEMS];
        random_items(&d, items);
        uint64_t limit = dice_below(&d, 2500);
        double least = law(items, 0, limit);
        bool fits = allocate(items, ITEMS, limit);
        assert_int_equal(fits, isfinite(least));
        if (!fits) {
            for (int i = 0; i < ITEMS; i++) assert_int_equal(items[i].chosen, 0);
            continue;
        }
        assert_true(allocate_bytes(items, ITEMS) <= limit);
        double cost = allocate_cost(items, ITEMS);
        assert_true(cost >= least * (1 - 1e-9));
        ratio += cost / fmax(least, 1e-9);
        n++;
    }
    print_message("%d cases, mean ratio to the best %.4f\n", n, ratio / n);
    assert_true(n > 200 && ratio / n < 1.1);
}

static void edges(void **unused)
{
    (void)unused;
    allocate_item one = { .n = 3, .bytes = { 10, 20, 30 }, .cost = { 5, 5, 0 } };
    assert_false(allocate(&one, 1, 9));
    assert_true(allocate(&one, 1, 29) && one.chosen == 0);
    assert_true(allocate(&one, 1, 30) && one.chosen == 2);
    assert_true(allocate(&one, 1, UINT64_MAX) && one.chosen == 2);
    assert_true(allocate(NULL, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(against_all), cmocka_unit_test(edges) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
