/* check.c - the data check of stored blocks: which bit patterns a careful loader refuses.
 *
 * Every pattern of every type decodes to something, all indexes are in range by construction. What makes a weight
 * useless is a scale or value that is not finite; where it sits is the table below. */
#include "quant/bytes.h"
#include "quant/quant.h"

typedef enum place_kind { PLACE_NONE, PLACE_F16, PLACE_BF16, PLACE_F32, PLACE_F64, PLACE_E8M0, PLACE_IQ1_M } place_kind;

/* A float of this kind at the offsets at[0] and at[1] of each block (equal where there is one). */
static const struct place {
    place_kind kind;
    uint8_t at[2];
} places[LOAM_TYPE_LIMIT] = {
    [LOAM_F32] = { PLACE_F32, { 0, 0 } },         [LOAM_F16] = { PLACE_F16, { 0, 0 } },
    [LOAM_BF16] = { PLACE_BF16, { 0, 0 } },       [LOAM_F64] = { PLACE_F64, { 0, 0 } },
    [LOAM_Q4_0] = { PLACE_F16, { 0, 0 } },        [LOAM_Q4_1] = { PLACE_F16, { 0, 2 } },
    [LOAM_Q5_0] = { PLACE_F16, { 0, 0 } },        [LOAM_Q5_1] = { PLACE_F16, { 0, 2 } },
    [LOAM_Q8_0] = { PLACE_F16, { 0, 0 } },        [LOAM_Q8_1] = { PLACE_F16, { 0, 2 } },
    [LOAM_Q2_K] = { PLACE_F16, { 80, 82 } },      [LOAM_Q3_K] = { PLACE_F16, { 108, 108 } },
    [LOAM_Q4_K] = { PLACE_F16, { 0, 2 } },        [LOAM_Q5_K] = { PLACE_F16, { 0, 2 } },
    [LOAM_Q6_K] = { PLACE_F16, { 208, 208 } },    [LOAM_Q8_K] = { PLACE_F32, { 0, 0 } },
    [LOAM_IQ2_XXS] = { PLACE_F16, { 0, 0 } },     [LOAM_IQ2_XS] = { PLACE_F16, { 0, 0 } },
    [LOAM_IQ2_S] = { PLACE_F16, { 0, 0 } },       [LOAM_IQ3_XXS] = { PLACE_F16, { 0, 0 } },
    [LOAM_IQ3_S] = { PLACE_F16, { 0, 0 } },       [LOAM_IQ1_S] = { PLACE_F16, { 0, 0 } },
    [LOAM_IQ1_M] = { PLACE_IQ1_M, { 0, 0 } },     [LOAM_IQ4_NL] = { PLACE_F16, { 0, 0 } },
    [LOAM_IQ4_XS] = { PLACE_F16, { 0, 0 } },      [LOAM_TQ1_0] = { PLACE_F16, { 52, 52 } },
    [LOAM_TQ2_0] = { PLACE_F16, { 64, 64 } },     [LOAM_MXFP4] = { PLACE_E8M0, { 0, 0 } },
    [LOAM_Q1_0] = { PLACE_F16, { 0, 0 } },        [LOAM_Q2_0] = { PLACE_F16, { 0, 0 } },
};

static bool is_finite_at(place_kind kind, const uint8_t *p)
{
    switch (kind) {
    case PLACE_NONE: return true;
    case PLACE_F16: return (get_u16(p) & 0x7C00) != 0x7C00;
    case PLACE_BF16: return (get_u16(p) & 0x7F80) != 0x7F80;
    case PLACE_F32: return (get_u32(p) & 0x7F800000) != 0x7F800000;
    case PLACE_F64: return (get_u16(p + 6) & 0x7FF0) != 0x7FF0;
    case PLACE_E8M0: return *p != 0xFF;
    case PLACE_IQ1_M: return (iq1_m_scale(p) & 0x7C00) != 0x7C00;
    }
    return true;
}

int64_t quant_bad_block(loam_type type, const void *in, int64_t blocks)
{
    const struct place *place = &places[type];
    const int bytes = dtype_table[type].bytes;
    const uint8_t *b = in;
    if (place->kind == PLACE_NONE) return -1;
    for (int64_t i = 0; i < blocks; i++, b += bytes)
        if (!is_finite_at(place->kind, b + place->at[0]) || !is_finite_at(place->kind, b + place->at[1])) return i;
    return -1;
}
