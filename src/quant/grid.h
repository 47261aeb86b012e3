/* grid.h - the codebooks as grids of points, for the encoders.
 *
 * A group of eight (IQ1, IQ2) or four (IQ3) values is rounded to digits; the digits are a point, numbered in base 3 or 8
 * with digit 0 lowest. If the codebook has the point, that entry is taken. If not, the best of the point's neighbours is:
 * the entries at its K smallest distances, nearest first, then by index.
 *
 * The neighbours of all points of a grid are listed once per process, on first use. A list is a run of chunks of eight
 * entries, which are compared at once; the last chunk is filled up with the first entry of the list. */
#ifndef LOAM_QUANT_GRID_H
#define LOAM_QUANT_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loam/tensor.h"

#define GRID_POINTS 6561 /* 3^8; 8^4 = 4096 */
#define GRID_CHUNK 8

typedef struct grid_index {
    int digits, base;                 /* of a point: 8 of base 3, or 4 of base 8 */
    int bits;                         /* of a digit in compact form: 2 or 3 */
    const uint16_t *codes;            /* entries in compact form */
    int32_t place[GRID_POINTS];       /* entry of the point, or -1 - first chunk of its list */
    uint16_t chunks[GRID_POINTS];     /* chunks of the list */
    int8_t (*entry)[8];               /* levels of each entry: 2 digit + 1, or digit - 1 for IQ1 */
    uint16_t *list;                   /* entries of all chunks, GRID_CHUNK each */
    uint16_t *list_codes;             /* and their codes */
} grid_index;

/* Builds the index of a type that has a grid; other types succeed at once. */
loam_status grid_prepare(loam_type type, loam_error *err);
/* The index of a prepared type. */
const grid_index *grid_get(loam_type type);

/* One group while it is searched. Levels are those of the entries; x may be negative where a sign was flipped. */
typedef struct grid_group {
    int n;                            /* values: 16 or 32 */
    float x[32], w[32];               /* magnitudes and their weights */
    float root[32];                   /* square roots of the weights */
    float a;                          /* scale; 0: the group is zero */
    uint16_t entry[8];                /* of each eight or four values */
    unsigned off;                     /* bit k: entry k is a neighbour, its point is not in the codebook */
} grid_group;

/* search_ops.grid_search(index, group, g, tries): tries inverse scales; fills a, entry and off with the best (a = 0 where
 * none is any good). g has GRID_TRIES elements, all finite.
 * search_ops.grid_choose(index, group, which, scale): chooses the entries of the bits of `which` anew for a given scale,
 * then the best scale for all entries.
 * search_ops.grid_nearest(index, point, table): the neighbour of an absent point with the least sum of table[i][digit i]. */
#define GRID_TRIES 32

/* How a type with signed entries (IQ2, IQ3) is searched. */
typedef struct signed_rule {
    loam_type type;
    int size;             /* values of a group with one scale: 16 or 32 */
    int top, reach;       /* inverse scales: (top + step t) / range, t = -reach..reach */
    float step;
    float zero;           /* a group whose magnitudes are all below is zero */
    float weights_mean;   /* share of the block's mean square in the column weights */
    enum { CHOOSE_OFF, CHOOSE_ALL, CHOOSE_ALL_IF_OFF } choose; /* entries that are chosen anew for the best scale */
    bool even_signs;      /* the number of negations in eight values is even */
    bool fit_range;       /* range: 3 times the scale of a plain search, else the largest magnitude */
} signed_rule;

/* A block of a type with signed entries before it is packed. d = 0: all of it is zero. */
typedef struct signed_block {
    float d;
    uint16_t entry[64];
    uint8_t signs[32];
    uint8_t scale[16];    /* 0..15, of each group */
} signed_block;

/* Searches 256 values x with column weights c or NULL. */
void signed_search(const signed_rule *rule, const float *x, const float *c, signed_block *block);

#endif
