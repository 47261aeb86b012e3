/* budget.h - a plan inside: what quantize.c takes from it. */
#ifndef LOAM_QUANTIZE_BUDGET_H
#define LOAM_QUANTIZE_BUDGET_H

#include "file/gguf.h"
#include "loam/budget.h"
#include "quant/mix.h"
#include "quantize/allocate.h"

#define BUDGET_POINTS 24

/* A tensor whose type is chosen. Its options are those of the allocate_item of the same index. */
typedef struct budget_item {
    char name[LIMIT_NAME_BYTES + 1];
    uint32_t index;                   /* of the tensor in the file */
    int from;
    int64_t values;
    int type[ALLOCATE_OPTIONS];
    double error[ALLOCATE_OPTIONS];   /* of the products with the weight, squared, summed: sum of w (x - q)^2 */
    double per_error;                 /* divergence that one unit of error makes */
} budget_item;

typedef struct budget_mix {
    const char *name;
    loam_budget_point point;
} budget_mix;

struct loam_budget {
    budget_item *items;
    allocate_item *options;
    int n;
    size_t n_tensors;
    int *types;                       /* [n_tensors] of the file, -1: stays */
    uint64_t fixed_bytes, values;     /* of tensors that stay; of all */
    loam_imatrix *own;                /* column weights from the text, NULL where the caller had some */
    loam_budget_facts facts;
    loam_budget_point points[BUDGET_POINTS];
    int n_points;
    budget_mix mixes[MIX_COUNT];
    int n_mixes;
};

/* What the mixes would cost, by mix.c's rules. */
typedef struct mix_facts {
    mix_model model;
    char arch[101];
} mix_facts;
/* quantize.c: facts that the rules of the mixes look at. */
loam_status quantize_mix_facts(const gguf_file *f, mix_facts *out, loam_error *err);
/* The mix that a file of these types is nearest to: the one whose type holds the most bytes. */
const mix_info *budget_nearest_mix(const loam_budget *b);

#endif
