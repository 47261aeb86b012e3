/* rows.c - the table of codecs and the checked conversion of rows, internal and public. */
#include <float.h>
#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "quant/grid.h"
#include "quant/quant.h"

const quant_codec quant_table[LOAM_TYPE_LIMIT] = {
#define TYPE(id, NAME, text, n, b, act, need, codec) [id] = { decode_##codec, encode_##codec },
#include "tensor/dtype.def"
#undef TYPE
};

loam_status quant_prepare(loam_type type, loam_error *err) { return grid_prepare(type, err); }

/* Checks a shape; gives the type's facts and the bytes of one row. */
static loam_status check_shape(const loam_rows *shape, const dtype_info **info, uint64_t *row_bytes, loam_error *err)
{
    uint64_t total, floats;
    if (!shape) return fail(err, LOAM_E_ARG, "rows: no shape was given");
    *info = dtype_get(shape->type);
    if (!*info) return fail(err, LOAM_E_ARG, "rows: %d is not an element type", shape->type);
    if (shape->rows < 0 || shape->n < 0)
        return fail(err, LOAM_E_ARG, "rows: a shape of %lld rows of %lld values", (long long)shape->rows,
                    (long long)shape->n);
    if (shape->n % (*info)->values != 0)
        return fail(err, LOAM_E_ARG, "rows: %s needs rows of a multiple of %d values, this one has %lld", (*info)->name,
                    (*info)->values, (long long)shape->n);
    if (!dtype_row_bytes((loam_type)shape->type, shape->n, row_bytes) ||
        !mul_ok(*row_bytes, (uint64_t)shape->rows, &total) || !mul_ok((uint64_t)shape->n, sizeof(float), &floats) ||
        !mul_ok(floats, (uint64_t)shape->rows, &floats) || total > INT64_MAX || floats > INT64_MAX)
        return fail(err, LOAM_E_ARG, "rows: %lld rows of %lld values of %s are too many", (long long)shape->rows,
                    (long long)shape->n, (*info)->name);
    return LOAM_OK;
}

/* The first value beyond limit (a positive float) or not a number; -1 for none. */
static int64_t first_beyond(const float *x, int64_t n, float limit)
{
    int32_t largest = 0, bound = (int32_t)bits_of_f32(limit); /* magnitudes compare as their bits */
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude = (int32_t)(bits_of_f32(x[i]) & 0x7FFFFFFF);
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest <= bound) return -1;
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= limit)) return i;
    return -1;
}

/* The largest magnitude that a type takes at all. No type with a 16-bit scale reaches 1e9 (Q6_K ends at 2.7e8), and up to
 * there no sum of a search overflows. */
static float largest_value(loam_type type)
{
    return dtype_table[type].values == 1 || type == LOAM_MXFP4 || type == LOAM_NVFP4 || type == LOAM_Q8_K ? FLT_MAX : 1e9f;
}

static loam_status check_weights(const float *weights, int64_t n, loam_error *err)
{
    for (int64_t i = 0; i < n; i++)
        if (!(weights[i] >= 0.0f && weights[i] <= 1e20f)) /* beyond any mean square of activations; sums stay finite */
            return fail(err, LOAM_E_NUMERIC, "column weights: column %lld is %g", (long long)i, (double)weights[i]);
    return LOAM_OK;
}

/* Columns that nothing ever met must not cost a block its sense: with weights that are all zero, or zero wherever the row is
 * not, a search has no goal. *filled [n], for mem_free: in units of their mean, a weight of zero becomes a neutral one, and none
 * is less than a small part of that. NULL: they are as they should be. */
static loam_status fill_weights(const float *weights, int64_t n, float **filled, loam_error *err)
{
    double sum = 0;
    int64_t met = 0;
    bool low = false;
    *filled = NULL;
    for (int64_t i = 0; i < n; i++) sum += (double)weights[i], met += weights[i] > 0;
    float mean = met ? (float)(sum / (double)met) : 1.0f, least = mean * 1e-5f;
    if (least < FLT_MIN) mean = least = 1.0f;
    for (int64_t i = 0; i < n; i++) low |= weights[i] < least;
    if (!low) return LOAM_OK;
    float *w = mem_alloc_array((size_t)n, sizeof *w);
    if (!w) return fail_nomem(err, "column weights", (uint64_t)n * sizeof *w);
    for (int64_t i = 0; i < n; i++) w[i] = weights[i] <= 0 ? 1.0f : weights[i] < least ? 1e-5f : weights[i] / mean;
    *filled = w;
    return LOAM_OK;
}

static loam_status encode_rows(const loam_rows *shape, const float *in, const float *weights, void *out, loam_error *err)
{
    const dtype_info *info;
    uint64_t row_bytes;
    loam_status status = check_shape(shape, &info, &row_bytes, err);
    if (status) return status;
    const loam_type type = (loam_type)shape->type;
    const int64_t n = shape->n;
    if (info->need == WEIGHT_REQUIRED && !weights)
        return fail(err, LOAM_E_ARG, "%s needs column weights (an importance matrix)", info->name);
    if (info->need == WEIGHT_IGNORED) weights = NULL;
    if ((status = quant_prepare(type, err))) return status;
    for (int64_t r = 0; r < shape->rows; r++) {
        const float *x = in + r * n;
        uint8_t *row = (uint8_t *)out + (uint64_t)r * row_bytes;
        int64_t bad = first_beyond(x, n, largest_value(type));
        if (bad >= 0)
            return fail(err, LOAM_E_NUMERIC, "row %lld, column %lld is %g%s%s", (long long)r, (long long)bad, (double)x[bad],
                        isfinite(x[bad]) ? ", too large for " : "", isfinite(x[bad]) ? info->name : "");
        quant_table[type].encode(x, row, n, weights);
        bad = quant_bad_block(type, row, n / info->values);
        if (bad >= 0)
            return fail(err, LOAM_E_NUMERIC, "row %lld, columns from %lld on: values are too large for %s", (long long)r,
                        (long long)(bad * info->values), info->name);
    }
    return LOAM_OK;
}

loam_status quant_encode_rows(const loam_rows *shape, const float *in, const float *weights, void *out, loam_error *err)
{
    float *filled = NULL;
    loam_status status = LOAM_OK;
    const dtype_info *info = shape ? dtype_get(shape->type) : NULL;
    if (weights && info && info->need != WEIGHT_IGNORED) {
        status = check_weights(weights, shape->n, err);
        if (status == LOAM_OK) status = fill_weights(weights, shape->n, &filled, err);
    }
    if (status == LOAM_OK) status = encode_rows(shape, in, filled ? filled : weights, out, err);
    mem_free(filled);
    return status;
}

loam_status quant_decode_rows(const loam_rows *shape, const void *in, float *out, loam_error *err)
{
    const dtype_info *info;
    uint64_t row_bytes;
    loam_status status = check_shape(shape, &info, &row_bytes, err);
    if (status) return status;
    for (int64_t r = 0; r < shape->rows; r++)
        quant_table[shape->type].decode((const uint8_t *)in + (uint64_t)r * row_bytes, out + r * shape->n, shape->n);
    return LOAM_OK;
}

loam_status quant_check_rows(const loam_rows *shape, const void *in, loam_error *err)
{
    const dtype_info *info;
    uint64_t row_bytes;
    loam_status status = check_shape(shape, &info, &row_bytes, err);
    if (status) return status;
    for (int64_t r = 0; r < shape->rows; r++) {
        const uint8_t *row = (const uint8_t *)in + (uint64_t)r * row_bytes;
        int64_t bad = quant_bad_block((loam_type)shape->type, row, shape->n / info->values);
        if (bad >= 0)
            return fail_at(err, LOAM_E_NUMERIC, (uint64_t)r * row_bytes + (uint64_t)(bad * info->bytes),
                           "row %lld, block %lld of %s: the %s is not finite", (long long)r, (long long)bad, info->name,
                           info->values == 1 ? "value" : "scale");
    }
    return LOAM_OK;
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

loam_status loam_quant_bytes(const loam_rows *shape, uint64_t *bytes, loam_error *err)
{
    const dtype_info *info;
    uint64_t row_bytes;
    loam_status status = check_shape(shape, &info, &row_bytes, err);
    if (status) return status;
    if (!bytes) return fail(err, LOAM_E_ARG, "rows: no place for the result");
    *bytes = row_bytes * (uint64_t)shape->rows;
    return LOAM_OK;
}

loam_weight_need loam_quant_weight_need(int type)
{
    _Static_assert((int)WEIGHT_IGNORED == (int)LOAM_WEIGHTS_IGNORED && (int)WEIGHT_OPTIONAL == (int)LOAM_WEIGHTS_OPTIONAL &&
                   (int)WEIGHT_ASKED == (int)LOAM_WEIGHTS_ASKED && (int)WEIGHT_REQUIRED == (int)LOAM_WEIGHTS_REQUIRED,
                   "public and internal needs agree");
    const dtype_info *info = dtype_get(type);
    return info ? (loam_weight_need)info->need : LOAM_WEIGHTS_IGNORED;
}

/* The encoded side must be exactly as large as the shape says. */
static loam_status check_size(const loam_rows *shape, const void *a, const void *b, uint64_t given, loam_error *err)
{
    uint64_t bytes;
    loam_status status = loam_quant_bytes(shape, &bytes, err);
    if (status) return status;
    if (given != bytes)
        return fail(err, LOAM_E_ARG, "rows: %llu bytes were given where %lld rows of %lld values of %s take %llu",
                    (unsigned long long)given, (long long)shape->rows, (long long)shape->n,
                    dtype_table[shape->type].name, (unsigned long long)bytes);
    if (bytes && (!a || !b)) return fail(err, LOAM_E_ARG, "rows: a buffer is missing");
    return LOAM_OK;
}

loam_status loam_quant_encode(const loam_rows *shape, const float *in, const float *weights, void *out,
                              uint64_t out_bytes, loam_error *err)
{
    loam_status status = check_size(shape, in, out, out_bytes, err);
    return status ? status : quant_encode_rows(shape, in, weights, out, err);
}

loam_status loam_quant_decode(const loam_rows *shape, const void *in, uint64_t in_bytes, float *out, loam_error *err)
{
    loam_status status = check_size(shape, in, out, in_bytes, err);
    return status ? status : quant_decode_rows(shape, in, out, err);
}

loam_status loam_quant_check(const loam_rows *shape, const void *in, uint64_t in_bytes, loam_error *err)
{
    loam_status status = check_size(shape, in, in, in_bytes, err);
    return status ? status : quant_check_rows(shape, in, err);
}
