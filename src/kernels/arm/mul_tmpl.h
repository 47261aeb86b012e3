/* mul_tmpl.h - integer products of every quantized type on 4 rows of weights at a time, compiled once per instruction set: same
 * bits as ref/mul.c. Included after a definition of
 *
 *   void dots(const int8_t *w, size_t step, const int8_t *const *x, int cols, int n, int32x4_t *out)
 *       out[c] = for each of the 4 rows, step bytes apart, the sum of n (16 or 32) products with column c; cols is 1 or 2
 *
 * A panel holds 4 rows, unpacked to bytes and scales; the rows are the lanes of the float steps, so each keeps its order.
 * Levels of the common types are unpacked with vectors, the others by the reference (ref/mul.h). Defines fill_mul(). */
#include <arm_neon.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/arm/mul_levels.h"
#include "kernels/ref/mul_run.h"
#include "kernels/ref/mul_types.h"

enum { ROWS = 4, COLUMNS = 2 };

typedef struct panel32 {
    int8_t q[ROWS][32];
    float d[2][ROWS], m[ROWS]; /* d of values 0..15 and 16..31 */
} panel32;

typedef struct panel256 {
    int8_t q[ROWS][256];
    float scale[16][ROWS]; /* whole numbers */
    int32_t min[16][ROWS];
    float d[ROWS], dmin[ROWS];
} panel256;

INLINE float32x4_t load_rows(const float *y, int rows)
{
    float t[ROWS] = { 0 };
    memcpy(t, y, (size_t)rows * sizeof *t);
    return vld1q_f32(t);
}

INLINE void store_rows(float *y, float32x4_t v, int rows)
{
    float t[ROWS];
    vst1q_f32(t, v);
    memcpy(y, t, (size_t)rows * sizeof *t);
}

/* ---- panels ---- */

INLINE void fill32(const uint8_t *w, size_t stride, int64_t pieces, panel32 *out, const unpack32_fn unpack)
{
    for (int64_t i = 0; i < pieces; i++)
        for (int r = 0; r < ROWS; r++) {
            weight32 x;
            unpack(w + (size_t)r * stride, i, &x);
            memcpy(out[i].q[r], x.level, 32);
            out[i].d[0][r] = x.d[0];
            out[i].d[1][r] = x.d[1];
            out[i].m[r] = x.m;
        }
}

INLINE void fill256(const uint8_t *w, size_t stride, int64_t pieces, panel256 *out, const unpack256_fn unpack)
{
    for (int64_t i = 0; i < pieces; i++)
        for (int r = 0; r < ROWS; r++) {
            weight256 x;
            unpack(w + (size_t)r * stride, i, &x);
            memcpy(out[i].q[r], x.level, 256);
            for (int j = 0; j < 16; j++) {
                out[i].scale[j][r] = (float)x.scale[j];
                out[i].min[j][r] = x.min[j];
            }
            out[i].d[r] = x.d;
            out[i].dmin[r] = x.dmin;
        }
}

/* ---- the core: a panel and one or two columns ---- */

INLINE void core32(const tile *t, const int cols, const bool has_min, const bool split)
{
    const panel32 *p = t->panel;
    float32x4_t acc[COLUMNS];
    for (int c = 0; c < cols; c++) acc[c] = t->resume ? load_rows(t->y + (size_t)c * t->y_stride, t->last_rows) : vdupq_n_f32(0.0f);
    for (int64_t i = 0; i < t->pieces; i++, p++) {
        const act_a32 *group[COLUMNS];
        const int8_t *x[COLUMNS], *high[COLUMNS];
        int32x4_t sum[COLUMNS], rest[COLUMNS];
        const int at = (int)(i % 8);
        for (int c = 0; c < cols; c++) {
            group[c] = (const act_a32 *)(const void *)(t->x + (size_t)c * t->x_stride) + i / 8;
            x[c] = group[c]->q + 32 * at;
            high[c] = x[c] + 16;
        }
        dots(p->q[0], 32, x, cols, split ? 16 : 32, sum);
        if (split) dots(p->q[0] + 16, 32, high, cols, 16, rest);
        for (int c = 0; c < cols; c++) {
            const float d = group[c]->d[at];
            acc[c] = vfmaq_f32(acc[c], vmulq_n_f32(vld1q_f32(p->d[0]), d), vcvtq_f32_s32(sum[c]));
            if (split) acc[c] = vfmaq_f32(acc[c], vmulq_n_f32(vld1q_f32(p->d[1]), d), vcvtq_f32_s32(rest[c]));
            if (has_min) acc[c] = vfmaq_n_f32(acc[c], vld1q_f32(p->m), group[c]->ds[at]);
        }
    }
    for (int c = 0; c < cols; c++) store_rows(t->y + (size_t)c * t->y_stride, acc[c], t->last_rows);
}

INLINE int32x4_t minima256(const panel256 *p, const act_a256 *x)
{
    int32x4_t s = vdupq_n_s32(0);
    for (int j = 0; j < 16; j++) s = vmlaq_n_s32(s, vld1q_s32(p->min[j]), x->sum16[j]);
    return s;
}

INLINE void core256(const tile *t, const int cols, const bool has_min, const int sub)
{
    const panel256 *p = t->panel;
    float32x4_t acc[COLUMNS];
    for (int c = 0; c < cols; c++) acc[c] = t->resume ? load_rows(t->y + (size_t)c * t->y_stride, t->last_rows) : vdupq_n_f32(0.0f);
    for (int64_t i = 0; i < t->pieces; i++, p++) {
        const act_a256 *group[COLUMNS];
        float32x4_t levels[COLUMNS];
        for (int c = 0; c < cols; c++) {
            group[c] = (const act_a256 *)(const void *)(t->x + (size_t)c * t->x_stride) + i;
            levels[c] = vdupq_n_f32(0.0f);
        }
        for (int v = 0; v < 256; v += sub) {
            const int8_t *x[COLUMNS];
            int32x4_t sum[COLUMNS];
            for (int c = 0; c < cols; c++) x[c] = group[c]->q + v;
            dots(p->q[0] + v, 256, x, cols, sub, sum);
            for (int c = 0; c < cols; c++) levels[c] = vfmaq_f32(levels[c], vld1q_f32(p->scale[v / 16]), vcvtq_f32_s32(sum[c]));
        }
        for (int c = 0; c < cols; c++) {
            acc[c] = vfmaq_f32(acc[c], vmulq_n_f32(vld1q_f32(p->d), group[c]->d), levels[c]);
            if (has_min)
                acc[c] = vfmaq_f32(acc[c], vnegq_f32(vmulq_n_f32(vld1q_f32(p->dmin), group[c]->d)), vcvtq_f32_s32(minima256(p, group[c])));
        }
    }
    for (int c = 0; c < cols; c++) store_rows(t->y + (size_t)c * t->y_stride, acc[c], t->last_rows);
}

/* ---- types ---- */

static const mul_shape shape = { .rows = ROWS, .panels = 8, .chunk = 512, .columns = 32, .tile_panels = 1, .tile_columns = COLUMNS,
    .panel32 = sizeof(panel32), .panel256 = sizeof(panel256) };

#define CORE(suffix, n, core, ...) static void core_##suffix##_##n(const tile *t) { core(t, n, __VA_ARGS__); }
#define TYPE(NAME, suffix, kind, fill, super, ...) \
    static void panel_##suffix(const uint8_t *w, size_t stride, int64_t pieces, void *out) { fill(w, stride, pieces, out, fast_##suffix); } \
    CORE(suffix, 1, kind, __VA_ARGS__) \
    CORE(suffix, 2, kind, __VA_ARGS__) \
    static void mul_##suffix(const mul_args *a) \
    { \
        static const core_fn cores[COLUMNS] = { core_##suffix##_1, core_##suffix##_2 }; \
        mul_type t = { &shape, NULL, panel_##suffix, cores, (super) ? 256 : 32, 0, super }; \
        t.values = dtype_table[LOAM_##NAME].values; \
        t.bytes = dtype_table[LOAM_##NAME].bytes; \
        mul_run(a, &t); \
    }
#define TYPE32(NAME, suffix, has_min, split) TYPE(NAME, suffix, core32, fill32, false, has_min, split)
#define TYPE256(NAME, suffix, has_min, sub) TYPE(NAME, suffix, core256, fill256, true, has_min, sub)
MUL_TYPES(TYPE32, TYPE256)

static void fill_mul(kernels *k)
{
#define FILL(NAME, suffix, ...) k->mul[LOAM_##NAME] = mul_##suffix;
    MUL_TYPES(FILL, FILL)
#undef FILL
}
