/* kern.c - times the products with quantized weights: every type, instruction set and number of columns.
 *
 *   bench_kern [-k K] [-r ROWS] [-n ROUNDS] [-c COLS] [--set NAME] [--type NAME] [--memory]
 *
 * ROWS x K weights stay in the second-level cache by default (64 x 4096); --memory takes 64 MiB of them instead. All
 * variants of a type run in turn, ROUNDS times; the median is printed: GB/s of weights (what generation needs),
 * GMAC/s, and for comparison the machine's limits measured in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "blocks.h"
#include "kernels/kernels.h"
#include "kernels/ref/mul.h"
#include "median.h"

enum { MAX_ROUNDS = 101, MAX_VARIANTS = 64 };

typedef struct options {
    int64_t k;
    int rows, rounds, only_cols;
    const char *set, *type;
    bool memory;
} options;

typedef struct variant {
    const kernels *set;
    int cols;
    double ns[MAX_ROUNDS];
} variant;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void time_type(int type, const options *o, double peak)
{
    static const int columns[] = { 1, 2, 3, 4, 5, 8, 16, 64, 512 };
    static variant v[MAX_VARIANTS];
    const dtype_info *t = &dtype_table[type];
    const int64_t k = o->k / t->values * t->values;
    const size_t row = (size_t)(k / t->values * t->bytes), x_stride = act_bytes(t->act, k);
    const int rows = o->memory ? (int)((64u << 20) / row) : o->rows;
    uint64_t state = 1;
    uint8_t *w = mem_alloc((size_t)rows * row), *x = mem_zalloc(512 * x_stride);
    float *y = mem_alloc_array(512 * (size_t)rows, sizeof *y), *column = mem_alloc_array((size_t)k, sizeof *column);
    void *scratch = mem_alloc(mul_scratch(k));
    if (!w || !x || !y || !column || !scratch) exit(1);
    blocks_fill((loam_type)type, BLOCKS_NORMAL, w, (size_t)rows * row, &state);
    for (int c = 0; c < 512; c++) {
        blocks_column(column, k, 0, &state);
        kernels_for("ref")->act_encode[t->act](column, x + (size_t)c * x_stride, k);
    }
    int n = 0;
    const kernels *last = NULL;
    for (int s = 0; kernels_set_name(s); s++) {
        const kernels *set = kernels_for(kernels_set_name(s));
        if (!set || (last && set->mul[type] == last->mul[type])) continue;
        last = set;
        if (o->set ? strcmp(o->set, set->name) != 0 : s == 0) continue; /* the reference only when asked for */
        for (size_t c = 0; c < sizeof columns / sizeof *columns && n < MAX_VARIANTS; c++) {
            if (o->only_cols && columns[c] != o->only_cols) continue;
            if (o->memory && columns[c] > 512) continue;
            v[n++] = (variant){ .set = set, .cols = columns[c] };
        }
    }
    for (int round = 0; round < o->rounds; round++)
        for (int i = 0; i < n; i++) {
            const mul_args a = { .w = w, .w_stride = row, .x = x, .x_stride = x_stride, .y = y, .y_stride = (size_t)rows,
                .k = k, .rows = rows, .cols = v[i].cols, .scratch = scratch };
            v[i].set->mul[type](&a); /* warm */
            const double begin = now_ns();
            v[i].set->mul[type](&a);
            v[i].ns[round] = now_ns() - begin;
        }
    for (int i = 0; i < n; i++) {
        const double ns = median(v[i].ns, o->rounds);
        const double gmac = (double)rows * (double)k * v[i].cols / ns;
        printf("%-8s %-10s %3d  %10.1f us  %6.1f GB/s  %7.1f GMAC/s", t->name, v[i].set->name, v[i].cols, ns / 1e3,
            (double)rows * (double)row / ns, gmac);
        if (peak > 0) printf("  %3.0f %% of the peak", 100 * gmac / peak);
        printf("  (best %.1f us)", v[i].ns[0] / 1e3);
        printf("\n");
    }
    mem_free(w);
    mem_free(x);
    mem_free(y);
    mem_free(column);
    mem_free(scratch);
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_kern [-k K] [-r ROWS] [-n ROUNDS] [-c COLS] [--set NAME] [--type NAME] [--memory]\n");
    return 2;
}

int main(int argc, char **argv)
{
    options o = { .k = 4096, .rows = 64, .rounds = 21 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--memory") == 0) o.memory = true;
        else if (i + 1 >= argc) return usage();
        else if (strcmp(argv[i], "-k") == 0) o.k = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "-r") == 0) o.rows = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "-n") == 0) o.rounds = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "-c") == 0) o.only_cols = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--set") == 0) o.set = argv[++i];
        else if (strcmp(argv[i], "--type") == 0) o.type = argv[++i];
        else return usage();
    }
    if (o.k < 256 || o.k > 1 << 20 || o.rows < 1 || o.rows > 1 << 20 || o.rounds < 1 || o.rounds > MAX_ROUNDS) return usage();
    const double peak = kernels_peak(kernels_get(), false) / 1e9;
    if (peak > 0) printf("vpdpbusd loop: %.1f GMAC/s\n", peak);
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++) {
        const bool integer = weight_forms[type].unpack256 || weight_forms[type].unpack32;
        if (integer && (!o.type || type == loam_type_from_name(o.type))) time_type(type, &o, peak);
    }
    return 0;
}
