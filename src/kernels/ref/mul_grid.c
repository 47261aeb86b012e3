/* mul_grid.c - unpackers of the codebook types IQ1, IQ2 and IQ3 to integers and scales (ref/mul.h).
 *
 * Levels are grid entries with their signs. The constants of the scales become integers: 0.25 * (0.5 + s) of IQ2 is
 * (2s + 1) with d / 8, 0.5 * (0.5 + s) of IQ3_XXS is (2s + 1) with d / 4; the levels of IQ1 are eighths. */
#include <string.h>

#include "kernels/ref/mul_types.h"
#include "quant/bytes.h"
#include "quant/codebooks.h"

/* n bytes of a grid entry, negated where the mask says so. */
static void signed_entry(uint64_t entry, unsigned signs, int8_t *level, int n)
{
    for (int i = 0; i < n; i++) {
        const int v = (int)(entry >> 8 * i & 255);
        level[i] = (int8_t)(signs >> i & 1 ? -v : v);
    }
}

static void odd_scale(weight256 *w, int j16, int s) { w->scale[j16] = (int16_t)(2 * s + 1); }

static void finish(weight256 *w, float d)
{
    w->d = d;
    w->dmin = 0.0f;
    memset(w->min, 0, sizeof w->min);
}

void unpack_iq2_xxs(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 66 * i;
    for (int g = 0; g < 8; g++) {
        const uint8_t *at = b + 2 + 8 * g;
        const uint32_t signs = get_u32(at + 4);
        for (int k = 0; k < 4; k++)
            signed_entry(iq2xxs_grid[at[k]], even_signs(signs >> 7 * k & 127), w->level + 32 * g + 8 * k, 8);
        odd_scale(w, 2 * g, (int)(signs >> 28));
        odd_scale(w, 2 * g + 1, (int)(signs >> 28));
    }
    finish(w, get_f16(b) * 0.125f);
}

void unpack_iq2_xs(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 74 * i;
    for (int k = 0; k < 32; k++) {
        const unsigned q = get_u16(b + 2 + 2 * k);
        signed_entry(iq2xs_grid[q & 511], even_signs(q >> 9), w->level + 8 * k, 8);
    }
    for (int j = 0; j < 16; j++) odd_scale(w, j, b[66 + j / 2] >> 4 * (j % 2) & 15);
    finish(w, get_f16(b) * 0.125f);
}

void unpack_iq2_s(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 82 * i;
    for (int k = 0; k < 32; k++) {
        const unsigned index = b[2 + k] | (b[66 + k / 4] >> 2 * (k % 4) & 3u) << 8;
        signed_entry(iq2s_grid[index], b[34 + k], w->level + 8 * k, 8);
    }
    for (int j = 0; j < 16; j++) odd_scale(w, j, b[74 + j / 2] >> 4 * (j % 2) & 15);
    finish(w, get_f16(b) * 0.125f);
}

void unpack_iq3_xxs(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 98 * i;
    for (int g = 0; g < 8; g++) {
        const uint32_t signs = get_u32(b + 66 + 4 * g);
        for (int p = 0; p < 8; p++) {
            const unsigned mask = even_signs(signs >> 7 * (p / 2) & 127) >> 4 * (p % 2);
            signed_entry(iq3xxs_grid[b[2 + 8 * g + p]], mask, w->level + 32 * g + 4 * p, 4);
        }
        odd_scale(w, 2 * g, (int)(signs >> 28));
        odd_scale(w, 2 * g + 1, (int)(signs >> 28));
    }
    finish(w, get_f16(b) * 0.25f);
}

void unpack_iq3_s(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 110 * i;
    for (int p = 0; p < 64; p++) {
        const unsigned index = b[2 + p] | (b[66 + p / 8] >> p % 8 & 1u) << 8;
        signed_entry(iq3s_grid[index], (unsigned)b[74 + p / 2] >> 4 * (p % 2), w->level + 4 * p, 4);
    }
    for (int j = 0; j < 16; j++) odd_scale(w, j, b[106 + j / 4] >> 4 * (j / 2 % 2) & 15);
    finish(w, get_f16(b));
}

/* A group of eight: the grid of -1, 0, 1 in eighths, shifted by one eighth. */
static void shifted_entry(unsigned index, bool down, int8_t *level)
{
    for (int i = 0; i < 8; i++) level[i] = (int8_t)(8 * (int8_t)(iq1s_grid[index] >> 8 * i & 255) + (down ? -1 : 1));
}

void unpack_iq1_s(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 50 * i;
    for (int g = 0; g < 8; g++) {
        const unsigned qh = get_u16(b + 34 + 2 * g);
        for (int k = 0; k < 4; k++)
            shifted_entry(b[2 + 4 * g + k] | (qh >> 3 * k & 7) << 8, qh >> 15, w->level + 32 * g + 8 * k);
        odd_scale(w, 2 * g, (int)(qh >> 12 & 7));
        odd_scale(w, 2 * g + 1, (int)(qh >> 12 & 7));
    }
    finish(w, get_f16(b) * 0.125f);
}

void unpack_iq1_m(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 56 * i;
    for (int k = 0; k < 32; k++) {
        const unsigned qh = b[32 + k / 2] >> 4 * (k % 2) & 15u;
        shifted_entry(b[k] | (qh & 7) << 8, qh >> 3, w->level + 8 * k);
    }
    for (int j = 0; j < 16; j++) odd_scale(w, j, get_u16(b + 48 + 2 * (j / 4)) >> 3 * (j % 4) & 7);
    finish(w, f16_to_f32(iq1_m_scale(b)) * 0.125f);
}
