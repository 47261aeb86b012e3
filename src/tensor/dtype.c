/* dtype.c - the table of element types, expanded from dtype.def. */
#include "tensor/dtype.h"

#include <strings.h>

#include "base/mem.h"

const dtype_info dtype_table[LOAM_TYPE_LIMIT] = {
#define TYPE(id, NAME, text, n, b, act_, need_, codec) [id] = { text, n, b, ACT_##act_, WEIGHT_##need_ },
#include "tensor/dtype.def"
#undef TYPE
};

/* The public enum and the table agree. */
#define TYPE(id, NAME, text, n, b, act_, need_, codec) _Static_assert(LOAM_##NAME == (id), "id of " text);
#include "tensor/dtype.def"
#undef TYPE

const dtype_info *dtype_get(int64_t id)
{
    return id >= 0 && id < LOAM_TYPE_LIMIT && dtype_table[id].name ? &dtype_table[id] : NULL;
}

bool dtype_row_bytes(loam_type type, int64_t n, uint64_t *bytes)
{
    const dtype_info *t = dtype_get((int64_t)type);
    return t && n >= 0 && n % t->values == 0 && mul_ok((uint64_t)(n / t->values), (uint64_t)t->bytes, bytes);
}

bool dtype_caches(loam_type type)
{
    switch (type) {
    case LOAM_F32: case LOAM_F16: case LOAM_BF16: case LOAM_Q8_0: case LOAM_Q5_1: case LOAM_Q5_0: case LOAM_Q4_1: case LOAM_Q4_0:
    case LOAM_IQ4_NL: return true;
    default: return false;
    }
}

const char *loam_type_name(int type)
{
    const dtype_info *t = dtype_get(type);
    return t ? t->name : NULL;
}

int loam_type_from_name(const char *name)
{
    for (int i = 0; name && i < LOAM_TYPE_LIMIT; i++)
        if (dtype_table[i].name && strcasecmp(name, dtype_table[i].name) == 0) return i;
    return -1;
}

int loam_type_block_values(int type)
{
    const dtype_info *t = dtype_get(type);
    return t ? t->values : 0;
}

int loam_type_block_bytes(int type)
{
    const dtype_info *t = dtype_get(type);
    return t ? t->bytes : 0;
}
