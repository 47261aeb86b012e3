/* iq1.c - codecs of the ternary codebook blocks: 256 values, groups of eight from a grid, shifted by an eighth.
 *
 *   IQ1_S  50 B   d:f16 | index low 8 bits[32] | 8 x u16: four index bits 8-10 (3 each), scale of 32 values in bits
 *                 12-14, bit 15: shift is negative
 *   IQ1_M  56 B   index low 8 bits[32] | nibble[32]: index bits 8-10, bit 3: shift is negative | 4 x u16: four 3-bit scales
 *                 of 16 values, and a quarter of d (f16) in bits 12-15, low quarter first
 *
 * y = d (2 s + 1) * (grid + shift), shift = +-1/8. */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/grid.h"
#include "quant/quant.h"
#include "quant/search.h"

static inline void put_shifted(float *out, float scale, uint64_t entry, float shift)
{
    for (int i = 0; i < 8; i++) out[i] = scale * ((float)(int8_t)(entry >> 8 * i & 255) + shift);
}

void decode_iq1_s(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 50) {
        float d = get_f16(b);
        for (int k = 0; k < 32; k++) {
            uint16_t word = get_u16(b + 34 + 2 * (k / 4));
            int index = b[2 + k] | (word >> 3 * (k % 4) & 7) << 8;
            put_shifted(out + i + 8 * k, d * (float)(2 * (word >> 12 & 7) + 1), iq1s_grid[index],
                        word >> 15 ? -0.125f : 0.125f);
        }
    }
}

void decode_iq1_m(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 56) {
        float d = f16_to_f32(iq1_m_scale(b));
        for (int k = 0; k < 32; k++) {
            int nibble = b[32 + k / 2] >> 4 * (k % 2) & 15, index = b[k] | (nibble & 7) << 8;
            int s = get_u16(b + 48 + 2 * (k / 8)) >> 3 * (k / 2 % 4) & 7;
            put_shifted(out + i + 8 * k, d * (float)(2 * s + 1), iq1s_grid[index], nibble & 8 ? -0.125f : 0.125f);
        }
    }
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

/* A group of n values while it is searched. It is exact: with the values in ascending order, the best ternary digits are
 * those of one pair of cuts i1 <= i2: the lowest i1 values get 0, those up to i2 get 1, the rest 2. */
typedef struct ternary_group {
    int n;                  /* 32 (IQ1_S) or 16 (IQ1_M) */
    int halves;             /* parts with a shift of their own: 1 or 2 */
    const float *x;
    float w[32];
    float P[2][33], Q[2][33]; /* sums of w x and w over the lowest values, of each half */
    uint8_t order[32];      /* indexes of the values in ascending order */
    float a;                /* scale, 0 for a zero group */
    float shift[2];
    uint16_t entry[4];
} ternary_group;

static void sort_group(ternary_group *t)
{
    for (int k = 0; k < t->n; k++) {
        int at = k;
        for (; at > 0 && t->x[t->order[at - 1]] > t->x[k]; at--) t->order[at] = t->order[at - 1];
        t->order[at] = (uint8_t)k;
    }
    for (int h = 0; h < t->halves; h++) {
        t->P[h][0] = t->Q[h][0] = 0.0f;
        for (int k = 0; k < t->n; k++) {
            int i = t->order[k];
            bool mine = i * t->halves / t->n == h;
            t->P[h][k + 1] = mine ? t->P[h][k] + t->w[i] * t->x[i] : t->P[h][k];
            t->Q[h][k + 1] = mine ? t->Q[h][k] + t->w[i] : t->Q[h][k];
        }
    }
}

/* Sums w x q and w q q of one half for the pairs of cuts (i1, i1..n) and a shift, at [i2]. The two types add them up in
 * different orders. */
static void cut_sums(const ternary_group *t, int h, int i1, float shift, float *A, float *B)
{
    const float *P = t->P[h], *Q = t->Q[h], l0 = -1.0f + shift, l1 = shift, l2 = 1.0f + shift;
    const float P1 = P[i1], Pn = P[t->n], Q1 = Q[i1], Qn = Q[t->n];
    if (t->halves == 1) {
        for (int i2 = i1; i2 <= t->n; i2++) {
            A[i2] = P1 * l0 + (P[i2] - P1) * l1 + (Pn - P[i2]) * l2;
            B[i2] = Q1 * l0 * l0 + (Q[i2] - Q1) * l1 * l1 + (Qn - Q[i2]) * l2 * l2;
        }
    } else {
        for (int i2 = i1; i2 <= t->n; i2++) {
            A[i2] = Pn * l2 - (P1 + P[i2]);
            B[i2] = Qn * l2 * l2 + Q1 * (l0 * l0 - l1 * l1) + Q[i2] * (l1 * l1 - l2 * l2);
        }
    }
}

/* The shifts of the halves in trial k, as indexes of + and -. With one shift both are the same. */
static inline int trial_shift(const ternary_group *t, int k, int half) { return t->halves == 1 ? k : half ? k % 2 : k / 2; }

/* Sums of all trials of shifts for the pairs (i1, i1..n); whether any of them may beat gain. */
static bool trial_sums(const ternary_group *t, int i1, float gain, float A[4][36], float B[4][36])
{
    static const float shifts[2] = { 0.125f, -0.125f };
    float a[2][2][36], b[2][2][36];
    int any = 0;
    for (int h = 0; h < t->halves; h++)
        for (int s = 0; s < 2; s++) cut_sums(t, h, i1, shifts[s], a[h][s], b[h][s]);
    for (int k = 0; k < 2 * t->halves; k++) {
        const float *a0 = a[0][trial_shift(t, k, 0)], *b0 = b[0][trial_shift(t, k, 0)];
        const float *a1 = a[1][trial_shift(t, k, 1)], *b1 = b[1][trial_shift(t, k, 1)];
        for (int i2 = i1; i2 <= t->n; i2++) {
            A[k][i2] = t->halves == 1 ? a0[i2] : a0[i2] + a1[i2];
            B[k][i2] = t->halves == 1 ? b0[i2] : b0[i2] + b1[i2];
            any |= A[k][i2] * A[k][i2] > gain * B[k][i2];
        }
    }
    return any;
}

/* The best cuts and shifts; digits of the values in index order. */
static void search_cuts(ternary_group *t, uint8_t digit[32])
{
    float gain = -INFINITY, A[4][36], B[4][36];
    int best1 = 0, best2 = 0, best_k = 0;
    t->a = 0.0f;
    for (int i1 = 0; i1 <= t->n; i1++) {
        if (!trial_sums(t, i1, gain, A, B)) continue;
        for (int i2 = i1; i2 <= t->n; i2++)
            for (int k = 0; k < 2 * t->halves; k++) {
                float a = A[k][i2], b = B[k][i2];
                if (!(b > 0.0f && a * a > gain * b)) continue;
                t->a = a / b;
                gain = t->a * a;
                best1 = i1;
                best2 = i2;
                best_k = k;
            }
    }
    for (int h = 0; h < 2; h++) t->shift[h] = trial_shift(t, best_k, h) ? -0.125f : 0.125f;
    bool mirror = t->a < 0.0f;
    for (int k = 0; k < t->n; k++) {
        int d = k < best1 ? 0 : k < best2 ? 1 : 2;
        digit[t->order[k]] = (uint8_t)(mirror ? 2 - d : d);
    }
    if (mirror) {
        t->a = -t->a;
        t->shift[0] = -t->shift[0];
        t->shift[1] = -t->shift[1];
    }
}

/* The shift of the eight values k of a group. */
static inline float shift_of(const ternary_group *t, int k) { return t->shift[t->halves == 1 ? 0 : k]; }

/* Entries for the digits, the scale again where neighbours had to be taken. */
static void choose_entries(ternary_group *t, const grid_index *index, const uint8_t digit[32])
{
    bool off = false;
    for (int k = 0; k < t->n / 8; k++) {
        int point = 0;
        for (int i = 7; i >= 0; i--) point = 3 * point + digit[8 * k + i];
        if (index->place[point] >= 0) {
            t->entry[k] = (uint16_t)index->place[point];
        } else {
            float table[8][8] __attribute__((aligned(32))) = { { 0 } };
            for (int i = 8 * k; i < 8 * k + 8; i++)
                for (int d = 0; d < 3; d++) {
                    float e = t->a * ((float)(d - 1) + shift_of(t, k)) - t->x[i];
                    table[i % 8][d] = t->w[i] * e * e;
                }
            t->entry[k] = (uint16_t)search_get()->grid_nearest(index, point, table);
            off = true;
        }
    }
    if (!off) return;
    float A = 0.0f, B = 0.0f;
    for (int i = 0; i < t->n; i++) {
        float q = (float)index->entry[t->entry[i / 8]][i % 8] + shift_of(t, i / 8);
        A += t->w[i] * q * t->x[i];
        B += t->w[i] * q * q;
    }
    if (A > 0.0f && B > 0.0f) t->a = A / B;
}

/* Searches the group at x; mean: twice the mean square of its block. */
static void search_ternary(ternary_group *t, const grid_index *index, const float *x, const float *c, float mean)
{
    t->x = x;
    t->a = 0.0f;
    t->shift[0] = t->shift[1] = 0.125f;
    memset(t->entry, 0, sizeof t->entry);
    for (int i = 0; i < t->n; i++) t->w[i] = c ? c[i] * sqrtf(mean + x[i] * x[i]) : x[i] * x[i];
    if (abs_max(x, t->n) < (t->halves == 1 ? 1e-12f : 1e-7f)) return;
    uint8_t digit[32];
    sort_group(t);
    search_cuts(t, digit);
    if (t->a > 0.0f) choose_entries(t, index, digit);
}

/* The 3-bit scale fields of all groups; returns d, 0 for a zero block. */
static float ternary_scales(const ternary_group *t, int groups, uint8_t *field)
{
    float top = 0.0f;
    for (int k = 0; k < groups; k++)
        if (t[k].a > top) top = t[k].a;
    if (top == 0.0f) return 0.0f;
    float d = top / 15.0f, id = 1.0f / d;
    for (int k = 0; k < groups; k++) field[k] = (uint8_t)to_level(round_even(0.5f * (id * t[k].a - 1.0f)), 0, 7);
    return d;
}

void encode_iq1_s(const float *in, void *out, int64_t n, const float *weights)
{
    const grid_index *index = grid_get(LOAM_IQ1_S);
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 50) {
        const float mean = 2.0f * sum_squares(in + i, 256) / 256.0f;
        ternary_group t[8];
        uint8_t field[8];
        for (int g = 0; g < 8; g++) {
            t[g].n = 32;
            t[g].halves = 1;
            search_ternary(&t[g], index, in + i + 32 * g, weights ? weights + i + 32 * g : NULL, mean);
        }
        float d = ternary_scales(t, 8, field);
        memset(b, 0, 50);
        if (d == 0.0f) continue;
        put_f16(b, d * 1.125f);
        for (int g = 0; g < 8; g++) {
            unsigned word = (unsigned)field[g] << 12 | (unsigned)(t[g].shift[0] < 0.0f) << 15;
            for (int k = 0; k < 4; k++) {
                b[2 + 4 * g + k] = (uint8_t)t[g].entry[k];
                word |= (unsigned)(t[g].entry[k] >> 8) << 3 * k;
            }
            put_u16(b + 34 + 2 * g, (uint16_t)word);
        }
    }
}

/* The best d for all entries and fields of a block of IQ1_M. */
static float refit_iq1_m(const ternary_group *t, const grid_index *index, const uint8_t *field, float d)
{
    float A = 0.0f, B = 0.0f;
    for (int g = 0; g < 16; g++)
        for (int i = 0; i < 16; i++) {
            float q = (float)index->entry[t[g].entry[i / 8]][i % 8] + shift_of(&t[g], i / 8);
            q *= (float)(2 * field[g] + 1);
            A += t[g].w[i] * q * t[g].x[i];
            B += t[g].w[i] * q * q;
        }
    return B > 0.0f ? A / B : d;
}

void encode_iq1_m(const float *in, void *out, int64_t n, const float *weights)
{
    const grid_index *index = grid_get(LOAM_IQ1_M);
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 56) {
        const float mean = 2.0f * sum_squares(in + i, 256) / 256.0f;
        ternary_group t[16];
        uint8_t field[16];
        for (int g = 0; g < 16; g++) {
            t[g].n = 16;
            t[g].halves = 2;
            search_ternary(&t[g], index, in + i + 16 * g, weights ? weights + i + 16 * g : NULL, mean);
        }
        float d = ternary_scales(t, 16, field);
        memset(b, 0, 56);
        if (d == 0.0f) continue;
        uint16_t h = f32_to_f16(refit_iq1_m(t, index, field, d) * 1.1125f);
        for (int g = 0; g < 16; g++) {
            for (int k = 0; k < 2; k++) {
                b[2 * g + k] = (uint8_t)t[g].entry[k];
                b[32 + g] |= (uint8_t)((t[g].entry[k] >> 8 | (t[g].shift[k] < 0.0f) << 3) << 4 * k);
            }
            uint8_t *sc = b + 48 + 2 * (g / 4);
            put_u16(sc, (uint16_t)(get_u16(sc) | field[g] << 3 * (g % 4)));
        }
        for (int k = 0; k < 4; k++) {
            uint8_t *sc = b + 48 + 2 * k;
            put_u16(sc, (uint16_t)(get_u16(sc) | (h >> 4 * k & 15) << 12));
        }
    }
}
