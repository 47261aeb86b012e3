/* convert.c - see convert.h. Pieces hold whole rows; each thread takes a run of them:
 *
 *     rows ── decode ── check ── encode with the column weights of their matrix ── piece of the output ── sink */
#include "quantize/convert.h"

#include <math.h>

#include "base/mem.h"
#include "quant/quant.h"

#define PIECE_VALUES (4 << 20) /* values of a piece: 16 MB of floats */

/* Some rows of a tensor, shared by the threads. */
typedef struct piece {
    const convert_job *job;
    int64_t row, rows;         /* first, and number */
    uint64_t from_row, to_row; /* bytes of a row */
    float *floats;             /* [rows * ne0] */
    uint8_t *out;              /* [rows * to_row] */
    loam_error *errors;        /* [threads] */
} piece;

loam_status convert_read(const gguf_tensor *t, int64_t row, int64_t rows, float *out, loam_error *err)
{
    int64_t n = t->ne[0];
    uint64_t row_bytes = t->bytes / (uint64_t)(gguf_values(t) / n);
    loam_rows from = { t->type, rows, n };
    loam_status status = quant_decode_rows(&from, (const uint8_t *)t->data + (uint64_t)row * row_bytes, out, err);
    for (int64_t i = 0; i < rows * n && status == LOAM_OK; i++)
        if (!isfinite(out[i]))
            status = fail(err, LOAM_E_NUMERIC, "row %lld, column %lld is %s", (long long)(row + i / n), (long long)(i % n),
                          isnan(out[i]) ? "NaN" : "infinite");
    return status;
}

static loam_status convert_rows(const piece *p, int64_t first, int64_t rows, loam_error *err)
{
    const convert_job *job = p->job;
    int64_t n = job->t->ne[0];
    float *x = p->floats + first * n;
    loam_rows to = { job->to, rows, n };
    loam_status status = convert_read(job->t, p->row + first, rows, x, err);
    /* Each matrix of the tensor has column weights of its own. */
    for (int64_t r = 0; r < rows && status == LOAM_OK; r += to.rows) {
        int64_t at = p->row + first + r, mat = at / job->t->ne[1], left = (mat + 1) * job->t->ne[1] - at;
        to.rows = job->weights && left < rows - r ? left : rows - r;
        status = quant_encode_rows(&to, x + r * n, job->weights ? job->weights + mat * n : NULL,
                                   p->out + (uint64_t)(first + r) * p->to_row, err);
        if (status != LOAM_OK) fail_prefix(err, status, "rows from %lld on", (long long)at);
    }
    return status;
}

static void convert_share(void *arg, int ith, int nth)
{
    piece *p = arg;
    int64_t first = p->rows * ith / nth, end = p->rows * (ith + 1) / nth;
    p->errors[ith].code = LOAM_OK;
    if (end > first) p->errors[ith].code = convert_rows(p, first, end - first, &p->errors[ith]);
}

static loam_status convert_piece(piece *p, pool *threads, loam_error *err)
{
    int n = pool_threads(threads);
    loam_status status = pool_run(threads, convert_share, p);
    for (int i = 0; i < n && status == LOAM_OK; i++) {
        status = p->errors[i].code;
        if (status != LOAM_OK && err) *err = p->errors[i];
    }
    if (status != LOAM_OK) return fail_prefix(err, status, "tensor %s", p->job->t->name);
    uint64_t rows = (uint64_t)p->rows;
    return p->job->sink(p->job->user, p->out, rows * p->to_row, rows * p->from_row, err);
}

loam_status convert_tensor(const convert_job *job, pool *threads, loam_error *err)
{
    int64_t n = job->t->ne[0], rows = n ? gguf_values(job->t) / n : 0, most = n && PIECE_VALUES / n > 1 ? PIECE_VALUES / n : 1;
    if (rows == 0) return LOAM_OK;
    if (most > rows) most = rows;
    piece p = { .job = job };
    loam_rows from_shape = { job->t->type, 1, n }, to_shape = { job->to, 1, n };
    loam_status status = loam_quant_bytes(&from_shape, &p.from_row, err);
    if (status == LOAM_OK) status = loam_quant_bytes(&to_shape, &p.to_row, err);
    if (status != LOAM_OK) return fail_prefix(err, status, "tensor %s", job->t->name);
    p.floats = mem_alloc_array((size_t)(most * n), sizeof *p.floats);
    p.out = mem_alloc_array((size_t)most, p.to_row);
    p.errors = mem_alloc_array((size_t)pool_threads(threads), sizeof *p.errors);
    if (!p.floats || !p.out || !p.errors) status = fail_nomem(err, "rows to convert", (uint64_t)(most * n) * sizeof(float));
    for (; p.row < rows && status == LOAM_OK; p.row += p.rows) {
        p.rows = rows - p.row < most ? rows - p.row : most;
        status = convert_piece(&p, threads, err);
    }
    mem_free(p.floats);
    mem_free(p.out);
    mem_free(p.errors);
    return status;
}
