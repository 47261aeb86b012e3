/* shape_expr.h - extents written in symbols ("HK+2GK", "F/2", "H(M-R+Z)"), evaluated with checked arithmetic.
 *
 *   shape := sum {"," sum}     sum := product {("+" | "-") product}     product := factor {["/"] factor}
 *   factor := number | letter A..Z | "(" sum ")"
 * Juxtaposition multiplies; "/" divides what stands left of it by one factor and truncates. */
#ifndef LOAM_MODEL_SHAPE_EXPR_H
#define LOAM_MODEL_SHAPE_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#define SYMBOLS 26

/* Values of the symbols by letter: s[0] is A. */
typedef struct symbols {
    int64_t s[SYMBOLS];
} symbols;

#define SYM(table, LETTER) ((table).s[(#LETTER)[0] - 'A'])

/* One extent; false on overflow, division by zero, a negative result or a text that is not of the grammar. */
bool expr_value(const char *text, const symbols *table, int64_t *value);

/* Up to four extents; *n receives how many. ne beyond them is 1. */
bool expr_shape(const char *text, const symbols *table, int64_t ne[4], int *n);

#endif
