/* allocate.c - see allocate.h. A knapsack with one option an item, by marginal gain:
 *
 *     cost │ o               options of an item; only those on the lower hull are steps: o ─ o ─ o
 *          │   \  x          from the smallest option on, the step with the largest gain per byte that still fits is taken,
 *          │     o___ x      then whatever improves an item and fits
 *          └──────────o─ bytes
 *
 * That is as good as it gets as long as items are small beside the limit. One item is not: the table of embeddings of a small
 * model. So the largest item is tried at each of its options, and the best result is taken. */
#include "quantize/allocate.h"

#include <stddef.h>

uint64_t allocate_bytes(const allocate_item *items, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += items[i].bytes[items[i].chosen];
    return sum;
}

double allocate_cost(const allocate_item *items, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += items[i].cost[items[i].chosen];
    return sum;
}

/* The next option on the hull: the one with the largest gain per byte. -1: nothing is better. */
static int next_step(const allocate_item *a, double *rate)
{
    int best = -1;
    for (int k = a->chosen + 1; k < a->n; k++) {
        double gain = a->cost[a->chosen] - a->cost[k], bytes = (double)(a->bytes[k] - a->bytes[a->chosen]);
        if (gain <= 0) continue;
        double r = bytes > 0 ? gain / bytes : 1e300;
        if (best < 0 || r > *rate) best = k, *rate = r;
    }
    return best;
}

/* The best that an item gains within `left` more bytes; -1: nothing. */
static int best_fill(const allocate_item *a, uint64_t left)
{
    int best = -1;
    for (int k = a->chosen + 1; k < a->n; k++)
        if (a->bytes[k] - a->bytes[a->chosen] <= left && a->cost[k] < a->cost[best < 0 ? a->chosen : best]) best = k;
    return best;
}

/* Spends what is left, beginning at what is chosen; item `fixed` stays. */
static void spend(allocate_item *items, int n, int fixed, uint64_t left)
{
    for (;;) {
        int at = -1, to = -1;
        double best = 0;
        for (int i = 0; i < n; i++) {
            double rate = 0;
            int k = i == fixed ? -1 : next_step(&items[i], &rate);
            if (k < 0 || items[i].bytes[k] - items[i].bytes[items[i].chosen] > left || (at >= 0 && rate <= best)) continue;
            at = i, to = k, best = rate;
        }
        if (at < 0) break;
        left -= items[at].bytes[to] - items[at].bytes[items[at].chosen];
        items[at].chosen = to;
    }
    for (int i = 0; i < n; i++) {
        int k = i == fixed ? -1 : best_fill(&items[i], left);
        if (k < 0) continue;
        left -= items[i].bytes[k] - items[i].bytes[items[i].chosen];
        items[i].chosen = k;
    }
}

static int largest(const allocate_item *items, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (items[i].bytes[items[i].n - 1] > items[best].bytes[items[best].n - 1]) best = i;
    return best;
}

static bool start(allocate_item *items, int n, int fixed, int option, uint64_t limit, uint64_t *left)
{
    for (int i = 0; i < n; i++) items[i].chosen = i == fixed ? option : 0;
    uint64_t used = allocate_bytes(items, n);
    *left = used <= limit ? limit - used : 0;
    return used <= limit;
}

bool allocate(allocate_item *items, int n, uint64_t limit)
{
    uint64_t left;
    int fixed = n ? largest(items, n) : -1, best = -1;
    double least = 0;
    for (int k = 0; n && k < items[fixed].n; k++) {
        if (!start(items, n, fixed, k, limit, &left)) continue;
        spend(items, n, fixed, left);
        double cost = allocate_cost(items, n);
        if (best < 0 || cost < least) best = k, least = cost;
    }
    if (!start(items, n, fixed, best < 0 ? 0 : best, limit, &left)) return false;
    if (n) spend(items, n, fixed, left);
    return true;
}
