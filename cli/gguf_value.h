/* gguf_value.h - metadata values as people write them. */
#ifndef LOAM_CLI_GGUF_VALUE_H
#define LOAM_CLI_GGUF_VALUE_H

#include "loam/gguf.h"
#include "util.h"

typedef struct value_type {
    int kind; /* a loam_gguf_kind: of the value, or of the elements of an array; -1: what the text looks like */
    bool array;
} value_type;

/* Reads "uint32" or "u32", and "string[]" for arrays. False where there is no such kind. */
bool value_type_of_name(const char *name, value_type *type);

/* Sets a key to what text says:
 *
 *   a number, true or false, or any text for a string
 *   arrays: [1, 2.5, true, "a string"] as in JSON, or elements separated by commas
 *
 * Where the kind is not given: true and false are bool, whole numbers the first of uint32, int32, uint64, int64 (in arrays
 * int32, int64, uint64) that holds them, other numbers float32, everything else a string; what begins with [ is an array.
 * EXIT_USAGE after a message where text is no such value. */
int value_set(const options *o, loam_gguf_builder *builder, const char *key, const char *text, value_type type);

#endif
