/* loam/budget.h - which element type each tensor of a model should get, so that the file stays within a size and the model's
 * predictions move as little as can be. UNSTABLE: the lower tier may change between minor versions.
 *
 *     loam_budget_params p = loam_budget_defaults();
 *     p.bits = 4.2;
 *     p.text = text, p.text_len = len;
 *     loam_budget_plan(&plan, "in.gguf", &p, &err);
 *     loam_quantize_params q = loam_quantize_defaults();
 *     q.budget = plan;
 *     loam_quantize_file("in.gguf", "out.gguf", &q, NULL, &err);
 *
 * The text is run through the model; then through the model with one tensor quantized, tensor after tensor; the divergence of the
 * predictions (Kullback-Leibler, in nats a token) says how much hangs on the tensor. Together with the error that each type
 * makes, weighted by the activations that the columns meet, that predicts what a choice of types costs. The best choice within
 * the limit is made, tried out, and the prediction is corrected by what each tensor costs in that choice; some rounds of that.
 *
 * Costs, beside two encodings of the model, (rounds + 1) * tensors passes over n_tokens tokens, and memory for the model at the
 * size that is asked for. */
#ifndef LOAM_BUDGET_H
#define LOAM_BUDGET_H

#include "loam/imatrix.h"
#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_budget loam_budget;

/* Get them from loam_budget_defaults(), then change what you need. */
typedef struct loam_budget_params {
    size_t struct_size;
    double bits;               /* most bits a value, over all tensors; 0: by bytes */
    uint64_t bytes;            /* most bytes of the file; 0: by bits. One of the two */
    const char *text;          /* calibration text, text_len bytes: of the kind that the model will read */
    size_t text_len;
    int32_t n_ctx;             /* tokens of a chunk of it; default 512, at most the model's training context is used */
    int32_t n_tokens;          /* of one measurement; default 0: by the size of the model, 512 to 4096 */
    int32_t n_rounds;          /* corrections; default 1 */
    int32_t n_threads;         /* default 0: all CPUs of the process */
    bool allow_requantize;     /* a source that is quantized already (default false: refused) */
    const loam_imatrix *imatrix; /* column weights; default NULL: made from the text */
    bool (*progress)(void *user, const char *stage, double share); /* false stops; default NULL */
    void *progress_user;
} loam_budget_params;

LOAM_API loam_budget_params loam_budget_defaults(void);

/* On success *out owns the plan. Errors: ARG (a limit below the smallest possible size, which is named; a text that is too short;
 * a field out of range), UNSUPPORTED (a model without vocabulary; a quantized source without allow_requantize), NUMERIC (a weight
 * that is not finite), ABORTED, FORMAT, IO, NOMEM. */
LOAM_API loam_status loam_budget_plan(loam_budget **out, const char *in, const loam_budget_params *params, loam_error *err);
LOAM_API void loam_budget_free(loam_budget *plan); /* NULL is fine */

typedef struct loam_budget_tensor {
    const char *name;
    int from, to;              /* loam_type */
    uint64_t bytes;            /* in `to` */
    int64_t values;
    double kld;                /* its share of the predicted divergence */
} loam_budget_tensor;

typedef struct loam_budget_point {
    uint64_t bytes;            /* of all tensors */
    double bits;               /* a value */
    double kld;                /* predicted: nats a token, on the calibration text */
} loam_budget_point;

typedef struct loam_budget_facts {
    loam_budget_point chosen;
    double measured;           /* divergence of the choice on the calibration text */
    int32_t n_tokens, n_rows, n_passes; /* of the text; compared in one pass; passes made */
} loam_budget_facts;

LOAM_API loam_budget_facts loam_budget_get(const loam_budget *plan);
/* Tensors whose type was chosen, and points of the trade-off in ascending order of size; false beyond the last. */
LOAM_API bool loam_budget_tensor_at(const loam_budget *plan, size_t i, loam_budget_tensor *t);
LOAM_API bool loam_budget_point_at(const loam_budget *plan, size_t i, loam_budget_point *p);
/* The same for the named mixes, where all of their types can be judged, in no order. *name is static. */
LOAM_API bool loam_budget_mix_at(const loam_budget *plan, size_t i, const char **name, loam_budget_point *p);

#ifdef __cplusplus
}
#endif
#endif
