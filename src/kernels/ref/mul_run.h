/* mul_run.h - the loops around fast integer products, shared by the instruction sets.
 *
 *   many columns:  for each `panels` strips of rows, for each `chunk` values of k: unpack panels into scratch (cache);
 *                  then, `columns` at a time, tile_panels panels are multiplied with tiles of tile_columns columns;
 *                  sums rest in y between chunks
 *   few columns:   each strip of rows runs over all of k, straight from the file's layout
 * Rows beyond the last whole strip are first copied, chunk by chunk, into a strip whose other rows are zeros. */
#ifndef LOAM_KERNELS_REF_MUL_RUN_H
#define LOAM_KERNELS_REF_MUL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* Work of a "few" kernel: one strip. */
typedef struct strip {
    const uint8_t *w, *next;     /* next: what to prefetch, one strip ahead */
    size_t stride;
    const uint8_t *x;            /* activation group of the first piece */
    size_t x_stride;
    int64_t pieces;              /* of 256 (A256) or 32 (A32) values */
    float *y;
    size_t y_stride;
    int rows;                    /* rows that exist */
    bool resume;                 /* sums go on from y */
} strip;
typedef void (*few_fn)(const strip *s);

/* Unpacks `pieces` pieces of one strip, one behind the other. */
typedef void (*panel_fn)(const uint8_t *w, size_t stride, int64_t pieces, void *panel);

/* Work of the core: some panels, one behind the other, and some columns. */
typedef struct tile {
    const void *panel;
    const uint8_t *x;
    size_t x_stride;
    int64_t pieces;              /* of each panel */
    float *y;
    size_t y_stride;
    int last_rows;               /* rows of the last panel that exist */
    bool resume;
} tile;
typedef void (*core_fn)(const tile *t);

/* Sizes that an instruction set works with. */
typedef struct mul_shape {
    int rows;                    /* of a strip and of a panel */
    int few;                     /* most columns of the kernels without panels; 0: there are none */
    int panels, chunk, columns, tile_panels, tile_columns;
    size_t panel32, panel256;    /* bytes of a panel of one piece */
} mul_shape;

typedef struct mul_type {
    const mul_shape *shape;
    const few_fn *few;           /* [few] by columns - 1; NULL: panels only */
    panel_fn panel;
    const core_fn *core;         /* [tile_panels][tile_columns] */
    int values, bytes;           /* of a block in memory */
    bool super;                  /* A256 */
} mul_type;

/* The copied strip stands at the end of the scratch: 16 rows of a chunk of the widest type, 36 bytes for 32 values. */
#define MUL_TAIL (16 * (MUL_CHUNK / 32) * 36)

void mul_run(const mul_args *a, const mul_type *t);

#endif
