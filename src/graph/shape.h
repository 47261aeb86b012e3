/* shape.h - shape rules of op.def: check the inputs, set type and extents of the result. */
#ifndef LOAM_GRAPH_SHAPE_H
#define LOAM_GRAPH_SHAPE_H

#include "graph/graph.h"

/* False with a reason in why[n] when the inputs do not fit together. */
typedef bool (*shape_rule)(value *v, char *why, size_t n);

#define OP(NAME, least, most, shape, ...) bool shape_##shape(value *v, char *why, size_t n);
#include "graph/op.def"
#undef OP

#endif
