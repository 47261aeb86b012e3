/* attn_blocks.h - pages of block types (Q8_0, Q5_1, Q5_0, Q4_1, Q4_0, IQ4_NL) for attention. Included after a vec_*.h.
 *
 * A block holds 32 levels of at most 8 bits, a scale and perhaps a minimum: value = level * d (+ m). Keys are wanted with
 * their slots side by side, so 16 blocks are transposed as bytes, which is a quarter of the work of transposing floats:
 *
 *   16 slots x 32 levels   ──►   32 dimensions x 16 slots, and the 16 scales as one vector
 *
 * Few queries take levels and scales as they are (values are made in the loop over them), many take floats. */
#ifndef LOAM_KERNELS_ATTN_BLOCKS_H
#define LOAM_KERNELS_ATTN_BLOCKS_H

#include "kernels/kernels.h"
#include "quant/codebooks.h"

typedef struct block32 {
    __m256i q;               /* 32 signed levels */
    uint16_t d, m;           /* F16 */
} block32;

VEC bool has_min(loam_type t) { return t == LOAM_Q4_1 || t == LOAM_Q5_1; }

/* Types that attention may read as levels and scales. */
VEC bool has_levels(loam_type t) { return t == LOAM_Q8_0 || t == LOAM_Q5_0 || t == LOAM_Q4_0 || t == LOAM_IQ4_NL; }

VEC uint16_t half_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return h;
}

VEC float half_to_float(uint16_t h) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))); }

/* out[i] = the F16 at p + i * step, for 16 i: word by word through memory, which leaves the vector ports free. */
VEC void halves_at(const uint8_t *p, size_t step, float *out)
{
    uint16_t h[16];
    for (size_t i = 0; i < 16; i++) h[i] = half_at(p + i * step);
    v_store(out, v_load_f16(h));
}

/* Low halves of 16 bytes are values 0..15, high halves 16..31. */
VEC __m256i nibbles(const uint8_t *p)
{
    __m128i x = _mm_loadu_si128((const void *)p);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(x, 4), x), _mm256_set1_epi8(15));
}

/* 16 in every byte whose bit is set. */
VEC __m256i fifth_bits(const uint8_t *p)
{
    int32_t bits;
    memcpy(&bits, p, 4);
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i each = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread), each);
    return _mm256_and_si256(_mm256_cmpeq_epi8(x, each), _mm256_set1_epi8(16));
}

VEC block32 load_block(const loam_type t, const uint8_t *p)
{
    block32 b = { .d = half_at(p) };
    if (t == LOAM_Q8_0) {
        b.q = _mm256_loadu_si256((const void *)(p + 2));
    } else if (t == LOAM_Q4_0) {
        b.q = _mm256_sub_epi8(nibbles(p + 2), _mm256_set1_epi8(8));
    } else if (t == LOAM_Q5_0) {
        b.q = _mm256_sub_epi8(_mm256_or_si256(nibbles(p + 6), fifth_bits(p + 2)), _mm256_set1_epi8(16));
    } else if (t == LOAM_IQ4_NL) {
        const __m256i levels = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)iq4_levels));
        b.q = _mm256_shuffle_epi8(levels, nibbles(p + 2));
    } else if (t == LOAM_Q4_1) {
        b.m = half_at(p + 2);
        b.q = nibbles(p + 4);
    } else {
        b.m = half_at(p + 2);
        b.q = _mm256_or_si256(nibbles(p + 8), fifth_bits(p + 4));
    }
    return b;
}

/* Rows of 16 bytes in each half: byte j of row i becomes byte i of row j. */
VEC void transpose_bytes(__m256i r[16])
{
    UNROLL(4) for (int stage = 0; stage < 4; stage++) {
        __m256i t[16];
        UNROLL(8) for (int i = 0; i < 8; i++) {
            t[2 * i] = _mm256_unpacklo_epi8(r[i], r[i + 8]);
            t[2 * i + 1] = _mm256_unpackhi_epi8(r[i], r[i + 8]);
        }
        UNROLL(16) for (int i = 0; i < 16; i++) r[i] = t[i];
    }
}

/* Levels of one block of 16 slots, transposed: [32 levels][16 slots]. */
VEC void block_of_slots(const loam_type t, const uint8_t *p, size_t row, uint8_t *levels)
{
    __m256i r[16];
    UNROLL(16) for (int i = 0; i < 16; i++) r[i] = load_block(t, p + (size_t)i * row).q;
    transpose_bytes(r);
    UNROLL(16) for (int j = 0; j < 16; j++) {
        _mm_storeu_si128((void *)(levels + 16 * j), _mm256_castsi256_si128(r[j]));
        _mm_storeu_si128((void *)(levels + 16 * (16 + j)), _mm256_extracti128_si256(r[j], 1));
    }
}

/* A page as levels and scales.
 *
 *   keys     q [PAGE_SLOTS / 16][k_dim / 32][32 levels][16 slots]   d [k_dim / 32][PAGE_SLOTS]
 *   values   q [PAGE_SLOTS][v_dim / 32][32], Q8_0 in the page itself   d [PAGE_SLOTS][v_dim / 32] */
typedef struct level_page {
    const uint8_t *q;
    const float *d;
    size_t row, block;       /* bytes from group to group of 16 slots, or from slot to slot; from block to block */
} level_page;

VEC bool some_of(uint64_t seen, int slot) { return seen >> slot & 0xFFFF; }

VEC void keys_as_levels(const loam_type t, const attn_args *a, uint64_t seen, level_page *out, float *scratch)
{
    size_t block = dtype_table[t].bytes, n = (size_t)a->k_dim / 32, row = n * block;
    const uint8_t *page = a->page.k;
    uint8_t *q = (uint8_t *)scratch;
    float *d = scratch + n * 32 * PAGE_SLOTS / 4;
    for (int s = 0; s < PAGE_SLOTS; s += 16)
        for (size_t b = 0; some_of(seen, s) && b < n; b++) {
            const uint8_t *p = page + (size_t)s * row + b * block;
            halves_at(p, row, d + b * PAGE_SLOTS + s);
            block_of_slots(t, p, row, q + (size_t)s * n * 32 + b * 512);
        }
    *out = (level_page){ q, d, n * 512, 512 };
}

VEC void values_as_levels(const loam_type t, const attn_args *a, uint64_t seen, level_page *out, float *scratch)
{
    size_t block = dtype_table[t].bytes, n = (size_t)a->v_dim / 32;
    uint8_t *q = (uint8_t *)scratch;
    float *d = scratch + n * 32 * PAGE_SLOTS / 4;
    for (size_t i = 0; i < n * PAGE_SLOTS; i += 16) halves_at((const uint8_t *)a->page.v + i * block, block, d + i);
    for (; seen && t != LOAM_Q8_0; seen &= seen - 1) {
        size_t s = (size_t)__builtin_ctzll(seen);
        for (size_t i = s * n; i < (s + 1) * n; i++)
            _mm256_storeu_si256((void *)(q + i * 32), load_block(t, (const uint8_t *)a->page.v + i * block).q);
    }
    *out = t == LOAM_Q8_0 ? (level_page){ (const uint8_t *)a->page.v + 2, d, n * block, block } : (level_page){ q, d, n * 32, 32 };
}

VEC vf value_of(const loam_type t, vf level, vf d, vf m) { return has_min(t) ? v_add(v_mul(level, d), m) : v_mul(level, d); }

/* keys [k_dim][PAGE_SLOTS] in floats. */
VEC void keys_as_floats(const loam_type t, const attn_args *a, uint64_t seen, float *out)
{
    size_t block = dtype_table[t].bytes, n = (size_t)a->k_dim / 32, row = n * block;
    const uint8_t *page = a->page.k;
    for (int s = 0; s < PAGE_SLOTS; s += 16)
        for (size_t b = 0; some_of(seen, s) && b < n; b++) {
            const uint8_t *p = page + (size_t)s * row + b * block;
            uint8_t levels[32 * 16];
            float d[16], m[16] = { 0 };
            halves_at(p, row, d);
            if (has_min(t)) halves_at(p + 2, row, m);
            block_of_slots(t, p, row, levels);
            for (size_t i = 0; i < 32; i++)
                v_store(out + (b * 32 + i) * PAGE_SLOTS + s, value_of(t, v_of_i8(levels + i * 16), v_load(d), v_load(m)));
        }
}

/* values [PAGE_SLOTS][v_dim] in floats. */
VEC void values_as_floats(const loam_type t, const attn_args *a, uint64_t seen, float *out)
{
    size_t block = dtype_table[t].bytes, n = (size_t)a->v_dim / 32;
    for (; seen; seen &= seen - 1) {
        size_t s = (size_t)__builtin_ctzll(seen);
        for (size_t b = 0; b < n; b++) {
            block32 x = load_block(t, (const uint8_t *)a->page.v + (s * n + b) * block);
            float *to = out + (s * n + b) * 32;
            uint8_t levels[32];
            _mm256_storeu_si256((void *)levels, x.q);
            vf d = v_set(half_to_float(x.d)), m = v_set(has_min(t) ? half_to_float(x.m) : 0.0f);
            v_store(to, value_of(t, v_of_i8(levels), d, m));
            v_store(to + 16, value_of(t, v_of_i8(levels + 16), d, m));
        }
    }
}

/* Calls fn with the type as a constant. */
#define FOR_BLOCK_TYPE(type, fn, ...) \
    switch (type) { \
    case LOAM_Q8_0: fn(LOAM_Q8_0, __VA_ARGS__); break; \
    case LOAM_Q5_0: fn(LOAM_Q5_0, __VA_ARGS__); break; \
    case LOAM_Q4_0: fn(LOAM_Q4_0, __VA_ARGS__); break; \
    case LOAM_IQ4_NL: fn(LOAM_IQ4_NL, __VA_ARGS__); break; \
    case LOAM_Q4_1: fn(LOAM_Q4_1, __VA_ARGS__); break; \
    default: fn(LOAM_Q5_1, __VA_ARGS__); break; \
    }

static void block_keys(const attn_args *a, uint64_t seen, float *out) { FOR_BLOCK_TYPE(a->k_type, keys_as_floats, a, seen, out) }
static void block_values(const attn_args *a, uint64_t seen, float *out) { FOR_BLOCK_TYPE(a->v_type, values_as_floats, a, seen, out) }

/* scratch: 36 bytes for every 32 levels. */
static void level_keys(const attn_args *a, uint64_t seen, level_page *out, float *scratch)
{
    FOR_BLOCK_TYPE(a->k_type, keys_as_levels, a, seen, out, scratch)
}
static void level_values(const attn_args *a, uint64_t seen, level_page *out, float *scratch)
{
    FOR_BLOCK_TYPE(a->v_type, values_as_levels, a, seen, out, scratch)
}

#endif
