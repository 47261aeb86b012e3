/* budget.c - see loam/budget.h.
 *
 *   errors     for each tensor and type: sum of w (x - q)^2 over some rows, w the mean square of the column's activations
 *   hearing    for each tensor: divergence of the model with it alone at a type near the limit, by its error: per_error
 *   choosing   least sum of per_error * error within the limit (allocate.c)
 *   rounds     the choice is measured; each tensor is put back to the original for one pass, and what that gains, by its
 *              error, is the new per_error; chosen again; kept if the measured divergence fell
 *
 * Output errors of different tensors are nearly independent, so that their divergences add up as long as they are small; the rounds
 * correct for what is left of it. */
#include "quantize/budget.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "kernels/kernels.h"
#include "quant/quant.h"
#include "quantize/convert.h"
#include "quantize/trial.h"

#define TRUST         4         /* a correction changes what a tensor costs at most so many times */
#define SAMPLE_VALUES (1 << 16) /* of a tensor whose errors are looked at, about */
#define SAMPLE_ROWS   16        /* at least */

/* Everything while a plan is made. */
typedef struct planning {
    loam_budget *b;
    const loam_budget_params *p;
    gguf_file *in;
    pool *threads;
    trial t;
    const loam_imatrix *im;
    void **encoded;         /* [n] tensors as they are in the trial; NULL: the original */
    int *encoded_as;        /* [n] option */
    uint64_t limit;         /* for the items */
} planning;

loam_budget_params loam_budget_defaults(void)
{
    return (loam_budget_params){ .struct_size = sizeof(loam_budget_params), .n_ctx = 512, .n_rounds = 1 };
}

static loam_status tell(const planning *g, const char *stage, double share, loam_error *err)
{
    if (!g->p->progress || g->p->progress(g->p->progress_user, stage, share)) return LOAM_OK;
    return fail(err, LOAM_E_ABORTED, "stopped while %s", stage);
}

/* ---- options ---- */

static const int candidates[] = { LOAM_IQ1_S, LOAM_IQ1_M, LOAM_IQ2_XXS, LOAM_IQ2_XS, LOAM_Q2_0, LOAM_IQ2_S, LOAM_Q2_K, LOAM_IQ3_XXS,
                                  LOAM_IQ3_S, LOAM_Q3_K, LOAM_IQ4_XS, LOAM_MXFP4, LOAM_Q4_0, LOAM_IQ4_NL, LOAM_NVFP4, LOAM_Q4_K,
                                  LOAM_Q4_1, LOAM_Q5_0, LOAM_Q5_K, LOAM_Q5_1, LOAM_Q6_K, LOAM_Q8_0, LOAM_F16 };

static bool is_float(int type) { return type == LOAM_F32 || type == LOAM_F16 || type == LOAM_BF16 || type == LOAM_F64; }

/* Types of less than half of the limit are never worth their errors, and their encoders take the longest. */
static bool too_small(const planning *g, int type)
{
    const dtype_info *info = &dtype_table[type];
    double bits = g->p->bits > 0 ? g->p->bits : 8 * (double)g->p->bytes / (double)(g->b->values ? g->b->values : 1);
    return 8.0 * info->bytes / info->values < 0.5 * bits;
}

static bool usable(const gguf_tensor *t, int type, bool weighted, uint64_t *bytes)
{
    const dtype_info *info = &dtype_table[type];
    loam_rows shape = { type, gguf_values(t) / t->ne[0], t->ne[0] };
    bool poor = type == LOAM_IQ2_S || type == LOAM_IQ3_XXS || info->need == WEIGHT_ASKED || info->need == WEIGHT_REQUIRED;
    if (t->ne[0] % info->values || !kernels_get()->mul[type] || (poor && !weighted)) return false;
    return loam_quant_bytes(&shape, bytes, NULL) == LOAM_OK && *bytes < t->bytes;
}

/* Options by size, the original last. */
static void find_options(const planning *g, const gguf_tensor *t, budget_item *item, allocate_item *a)
{
    bool weighted = !g->im || (imatrix_find(g->im, t->name) &&
                               imatrix_check(g->im, t->name, t->ne[0], t->ne[2] * t->ne[3], NULL) == LOAM_OK);
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates; k++) {
        uint64_t bytes;
        if (too_small(g, candidates[k]) || !usable(t, candidates[k], weighted, &bytes)) continue;
        int at = a->n++;
        for (; at > 0 && a->bytes[at - 1] > bytes; at--) a->bytes[at] = a->bytes[at - 1], item->type[at] = item->type[at - 1];
        a->bytes[at] = bytes;
        item->type[at] = candidates[k];
    }
    a->bytes[a->n] = t->bytes;
    item->type[a->n++] = (int)t->type;
}

static loam_status start_items(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    b->n_tensors = gguf_tensor_count(g->in);
    b->items = mem_alloc_array(b->n_tensors, sizeof *b->items);
    b->options = mem_alloc_array(b->n_tensors, sizeof *b->options);
    b->types = mem_alloc_array(b->n_tensors, sizeof *b->types);
    g->encoded = mem_zalloc_array(b->n_tensors, sizeof *g->encoded);
    g->encoded_as = mem_zalloc_array(b->n_tensors, sizeof *g->encoded_as);
    if (!b->items || !b->options || !b->types || !g->encoded || !g->encoded_as)
        return fail_nomem(err, "a plan of types", b->n_tensors * sizeof *b->items);
    for (uint32_t i = 0; i < b->n_tensors; i++) b->values += (uint64_t)gguf_values(gguf_tensor_at(g->in, i));
    return LOAM_OK;
}

/* The tensors whose type can be chosen; as long as there are no column weights, they are taken to be there. */
static loam_status find_items(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    memset(b->items, 0, b->n_tensors * sizeof *b->items);
    memset(b->options, 0, b->n_tensors * sizeof *b->options);
    b->n = 0;
    b->fixed_bytes = 0;
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        const gguf_tensor *t = gguf_tensor_at(g->in, i);
        mix_tensor m = { .name = t->name, .ne = { t->ne[0], t->ne[1], t->ne[2], t->ne[3] }, .type = (int)t->type };
        b->types[i] = -1;
        if (gguf_values(t) == 0 || !mix_is_quantized(&m) || !quant_table[t->type].decode) {
            b->fixed_bytes += t->bytes;
            continue;
        }
        if (!is_float((int)t->type) && !g->p->allow_requantize)
            return fail(err, LOAM_E_UNSUPPORTED, "tensor %s is %s already; quantizing it again loses more than quantizing the original, "
                        "and has to be allowed (--allow-requantize)", t->name, loam_type_name((int)t->type));
        budget_item *item = &b->items[b->n];
        memcpy(item->name, t->name, sizeof item->name);
        item->index = i;
        item->from = (int)t->type;
        item->values = gguf_values(t);
        find_options(g, t, item, &b->options[b->n++]);
    }
    return LOAM_OK;
}

/* What is left for the items. */
static loam_status find_limit(planning *g, loam_error *err)
{
    const loam_budget *b = g->b;
    uint64_t least = b->fixed_bytes, limit = g->p->bytes, beside = gguf_file_bytes(g->in);
    for (uint32_t i = 0; i < b->n_tensors; i++) beside -= gguf_tensor_at(g->in, i)->bytes;
    beside += 4096 + 32 * (uint64_t)b->n_tensors; /* metadata, new keys, padding */
    if (!limit) limit = (uint64_t)(g->p->bits / 8 * (double)b->values), beside = 0;
    for (int i = 0; i < b->n; i++) least += b->options[i].bytes[0];
    if (limit < least + beside)
        return fail(err, LOAM_E_ARG, "the smallest file that this model can become takes %.2f bits a value, %llu bytes",
                    8 * (double)least / (double)b->values, (unsigned long long)(least + beside));
    g->limit = limit - beside - b->fixed_bytes;
    return LOAM_OK;
}

/* ---- errors ---- */

/* Rows of one tensor, dealt out to the threads. */
typedef struct sampling {
    const gguf_tensor *t;
    const budget_item *item;
    const float *weights;   /* [matrices][ne0] or NULL */
    int n;                  /* options */
    int64_t rows, total;    /* looked at; of the tensor */
    double *error;          /* [rows][n] */
    float *floats;          /* [threads][2][ne0] */
    uint8_t *blocks;        /* [threads][stride] */
    size_t stride;
    loam_error *errors;     /* [threads] */
} sampling;

static double row_error(const float *x, const float *q, const float *w, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double d = (double)x[j] - (double)q[j];
        sum += d * d * (w ? (double)w[j] : 1.0);
    }
    return sum;
}

static loam_status sample_row(const sampling *s, int64_t k, int ith, loam_error *err)
{
    int64_t n = s->t->ne[0], row = (int64_t)((double)k * (double)s->total / (double)s->rows);
    float *x = s->floats + (size_t)ith * 2 * (size_t)n, *q = x + n;
    uint8_t *blocks = s->blocks + (size_t)ith * s->stride;
    const float *w = s->weights ? s->weights + row / s->t->ne[1] * n : NULL;
    loam_status status = convert_read(s->t, row, 1, x, err);
    for (int o = 0; o < s->n && status == LOAM_OK; o++) {
        loam_rows shape = { s->item->type[o], 1, n };
        s->error[k * s->n + o] = 0;
        if (s->item->type[o] == s->item->from) continue;
        status = quant_encode_rows(&shape, x, w, blocks, err);
        if (status == LOAM_OK) status = quant_decode_rows(&shape, blocks, q, err);
        if (status == LOAM_OK) s->error[k * s->n + o] = row_error(x, q, w, n);
    }
    return status;
}

static void sample_share(void *arg, int ith, int nth)
{
    sampling *s = arg;
    s->errors[ith].code = LOAM_OK;
    for (int64_t k = ith; k < s->rows && s->errors[ith].code == LOAM_OK; k += nth)
        s->errors[ith].code = sample_row(s, k, ith, &s->errors[ith]);
}

static loam_status run_sampling(const planning *g, sampling *s, budget_item *item, loam_error *err)
{
    size_t threads = (size_t)pool_threads(g->threads);
    s->stride = (size_t)s->t->ne[0] * 4 + 64;
    s->error = mem_alloc_array((size_t)s->rows, (size_t)s->n * sizeof *s->error);
    s->floats = mem_alloc_array(threads * 2, (size_t)s->t->ne[0] * sizeof *s->floats);
    s->blocks = mem_alloc_array(threads, s->stride);
    s->errors = mem_alloc_array(threads, sizeof *s->errors);
    loam_status status = LOAM_OK;
    if (!s->error || !s->floats || !s->blocks || !s->errors) status = fail_nomem(err, "rows to look at", threads * s->stride);
    if (status == LOAM_OK) status = pool_run(g->threads, sample_share, s);
    for (size_t i = 0; i < threads && status == LOAM_OK; i++)
        if ((status = s->errors[i].code) != LOAM_OK && err) *err = s->errors[i];
    for (int64_t k = 0; k < s->rows && status == LOAM_OK; k++)
        for (int o = 0; o < s->n; o++) item->error[o] += s->error[k * s->n + o] * (double)s->total / (double)s->rows;
    mem_free(s->error);
    mem_free(s->floats);
    mem_free(s->blocks);
    mem_free(s->errors);
    return status == LOAM_OK ? status : fail_prefix(err, status, "tensor %s", s->t->name);
}

static loam_status find_errors(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    loam_status status = LOAM_OK;
    for (int i = 0; i < b->n && status == LOAM_OK; i++) {
        budget_item *item = &b->items[i];
        const gguf_tensor *t = gguf_tensor_at(g->in, item->index);
        float *weights = NULL;
        if (imatrix_check(g->im, t->name, t->ne[0], t->ne[2] * t->ne[3], NULL) == LOAM_OK)
            status = imatrix_weights(g->im, t->name, t->ne[0], t->ne[2] * t->ne[3], &weights, err);
        sampling s = { .t = t, .item = item, .weights = weights, .n = b->options[i].n, .total = item->values / t->ne[0] };
        s.rows = SAMPLE_VALUES / t->ne[0] < SAMPLE_ROWS ? SAMPLE_ROWS : SAMPLE_VALUES / t->ne[0];
        if (s.rows > s.total) s.rows = s.total;
        if (status == LOAM_OK) status = run_sampling(g, &s, item, err);
        mem_free(weights);
        if (status == LOAM_OK) status = tell(g, "looking at the weights", (double)(i + 1) / b->n, err);
    }
    return status;
}

/* ---- the model with other weights ---- */

typedef struct filling {
    uint8_t *next;
} filling;

static loam_status fill(void *user, const void *data, uint64_t bytes, uint64_t source_bytes, loam_error *err)
{
    filling *f = user;
    (void)source_bytes;
    (void)err;
    memcpy(f->next, data, bytes);
    f->next += bytes;
    return LOAM_OK;
}

/* Item i in the trial gets option o. */
static loam_status put(planning *g, int i, int o, loam_error *err)
{
    const budget_item *item = &g->b->items[i];
    const gguf_tensor *t = gguf_tensor_at(g->in, item->index);
    if (g->encoded[i] ? g->encoded_as[i] == o : item->type[o] == item->from) return LOAM_OK;
    trial_set(&g->t, item->index, t->type, NULL);
    mem_free(g->encoded[i]);
    g->encoded[i] = NULL;
    if (item->type[o] == item->from) return LOAM_OK;
    uint8_t *data = mem_alloc(g->b->options[i].bytes[o]);
    if (!data) return fail_nomem(err, "a tensor on trial", g->b->options[i].bytes[o]);
    float *weights = NULL;
    loam_status status = LOAM_OK;
    if (imatrix_check(g->im, t->name, t->ne[0], t->ne[2] * t->ne[3], NULL) == LOAM_OK)
        status = imatrix_weights(g->im, t->name, t->ne[0], t->ne[2] * t->ne[3], &weights, err);
    filling f = { data };
    convert_job job = { t, item->type[o], weights, fill, &f };
    if (status == LOAM_OK) status = convert_tensor(&job, g->threads, err);
    mem_free(weights);
    if (status != LOAM_OK) {
        mem_free(data);
        return status;
    }
    g->encoded[i] = data;
    g->encoded_as[i] = o;
    trial_set(&g->t, item->index, (loam_type)item->type[o], data);
    return LOAM_OK;
}

static loam_status measure(planning *g, double *kld, loam_error *err)
{
    g->b->facts.n_passes++;
    return trial_measure(&g->t, kld, err);
}

/* All items get what is chosen for them. */
static loam_status measure_choice(planning *g, double *kld, loam_error *err)
{
    loam_status status = LOAM_OK;
    for (int i = 0; i < g->b->n && status == LOAM_OK; i++) status = put(g, i, g->b->options[i].chosen, err);
    return status == LOAM_OK ? measure(g, kld, err) : status;
}

/* ---- what hangs on each tensor ---- */

/* The option whose size is nearest to the share that the limit leaves for the item. */
static int near_limit(const planning *g, int i)
{
    const allocate_item *a = &g->b->options[i];
    uint64_t all = 0;
    int best = 0;
    for (int k = 0; k < g->b->n; k++) all += (uint64_t)g->b->items[k].values;
    double want = (double)g->limit * (double)g->b->items[i].values / (double)all;
    for (int k = 1; k < a->n - 1; k++)
        if (fabs((double)a->bytes[k] - want) < fabs((double)a->bytes[best] - want)) best = k;
    return best;
}

static loam_status hear_tensors(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    double mean = 0;
    loam_status status = LOAM_OK;
    for (int i = 0; i < b->n && status == LOAM_OK; i++) {
        int o = near_limit(g, i);
        double kld = 0;
        status = put(g, i, o, err);
        if (status == LOAM_OK) status = measure(g, &kld, err);
        if (status == LOAM_OK) status = put(g, i, b->options[i].n - 1, err);
        b->items[i].per_error = b->items[i].error[o] > 0 ? kld / b->items[i].error[o] : 0;
        mean += kld / b->n;
        if (status == LOAM_OK) status = tell(g, "measuring tensors", (double)(i + 1) / b->n, err);
    }
    /* Nothing is without effect, however it looked: a small share of the mean. */
    for (int i = 0; i < b->n && status == LOAM_OK; i++) {
        double error = b->items[i].error[near_limit(g, i)], least = error > 0 ? 0.02 * mean / error : 0;
        if (b->items[i].per_error < least) b->items[i].per_error = least;
    }
    return status;
}

/* What each tensor costs in the present choice, whose divergence is kld. */
static loam_status hear_in_choice(planning *g, double kld, loam_error *err)
{
    loam_budget *b = g->b;
    loam_status status = LOAM_OK;
    for (int i = 0; i < b->n && status == LOAM_OK; i++) {
        int o = b->options[i].chosen;
        double without = 0, error = b->items[i].error[o];
        if (b->items[i].type[o] == b->items[i].from || error <= 0) continue;
        trial_set(&g->t, b->items[i].index, (loam_type)b->items[i].from, NULL);
        status = measure(g, &without, err);
        trial_set(&g->t, b->items[i].index, (loam_type)b->items[i].type[o], g->encoded[i]);
        /* Errors of other tensors shift what one seems to cost, up or down by chance: half of the correction, within limits. */
        double had = b->items[i].per_error, now = (kld - without) / error;
        now = now < had / TRUST ? had / TRUST : now > had * TRUST ? had * TRUST : now;
        b->items[i].per_error = sqrt(had * now);
        if (status == LOAM_OK) status = tell(g, "correcting", (double)(i + 1) / b->n, err);
    }
    return status;
}

/* ---- choosing ---- */

static void set_costs(loam_budget *b)
{
    for (int i = 0; i < b->n; i++)
        for (int o = 0; o < b->options[i].n; o++) b->options[i].cost[o] = b->items[i].per_error * b->items[i].error[o];
}

static loam_status choose(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    double best = 0, kld = 0;
    int *chosen = mem_alloc_array((size_t)b->n, sizeof *chosen);
    if (!chosen) return fail_nomem(err, "a choice", (uint64_t)b->n * sizeof *chosen);
    set_costs(b);
    allocate(b->options, b->n, g->limit);
    loam_status status = measure_choice(g, &best, err);
    for (int i = 0; i < b->n; i++) chosen[i] = b->options[i].chosen;
    for (int r = 0; r < g->p->n_rounds && status == LOAM_OK; r++) {
        bool same = true;
        status = hear_in_choice(g, best, err);
        if (status != LOAM_OK) break;
        set_costs(b);
        allocate(b->options, b->n, g->limit);
        for (int i = 0; i < b->n; i++) same &= b->options[i].chosen == chosen[i];
        if (same) break;
        status = measure_choice(g, &kld, err);
        if (status != LOAM_OK || kld >= best) break;
        best = kld;
        for (int i = 0; i < b->n; i++) chosen[i] = b->options[i].chosen;
    }
    for (int i = 0; i < b->n; i++) b->options[i].chosen = chosen[i];
    b->facts.measured = best;
    mem_free(chosen);
    return status;
}

/* ---- what it all means ---- */

static loam_budget_point point_of(const loam_budget *b)
{
    uint64_t bytes = b->fixed_bytes + allocate_bytes(b->options, b->n);
    return (loam_budget_point){ bytes, 8 * (double)bytes / (double)(b->values ? b->values : 1), allocate_cost(b->options, b->n) };
}

/* The trade-off: the best choice at limits between the smallest size and that of one byte a value. */
static void find_points(loam_budget *b)
{
    uint64_t least = 0, most = 0;
    for (int i = 0; i < b->n; i++) {
        least += b->options[i].bytes[0];
        most += b->options[i].bytes[b->options[i].n - 1];
    }
    uint64_t byte_each = b->values + b->values / 8;
    if (most > byte_each && byte_each > least) most = byte_each;
    for (int k = 0; k < BUDGET_POINTS; k++) {
        allocate(b->options, b->n, least + (uint64_t)((double)(most - least) * k / (BUDGET_POINTS - 1)));
        loam_budget_point p = point_of(b);
        if (b->n_points == 0 || p.bytes > b->points[b->n_points - 1].bytes) b->points[b->n_points++] = p;
    }
}

/* The item's option of a type; -1: none. */
static int option_of(const loam_budget *b, int i, int type)
{
    for (int o = 0; o < b->options[i].n; o++)
        if (b->items[i].type[o] == type) return o;
    return -1;
}

static bool choose_mix(loam_budget *b, const mix_choice *choices, const int *item_of)
{
    for (size_t k = 0; k < b->n_tensors; k++) {
        int i = item_of[choices[k].tensor];
        int o = i < 0 ? 0 : option_of(b, i, choices[k].type);
        if (o < 0) return false;
        if (i >= 0) b->options[i].chosen = o;
    }
    return true;
}

static loam_status find_mixes(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    mix_facts facts;
    mix_tensor *tensors = mem_zalloc_array(b->n_tensors, sizeof *tensors);
    mix_choice *choices = mem_zalloc_array(b->n_tensors, sizeof *choices);
    int *item_of = mem_alloc_array(b->n_tensors, sizeof *item_of);
    loam_status status = quantize_mix_facts(g->in, &facts, err);
    if (!tensors || !choices || !item_of) status = fail_nomem(err, "the mixes", b->n_tensors * sizeof *tensors);
    for (uint32_t i = 0; i < b->n_tensors && status == LOAM_OK; i++) {
        const gguf_tensor *t = gguf_tensor_at(g->in, i);
        tensors[i] = (mix_tensor){ .name = t->name, .ne = { t->ne[0], t->ne[1], t->ne[2], t->ne[3] }, .type = (int)t->type };
        tensors[i].has_weights = imatrix_find(g->im, t->name) != NULL;
        item_of[i] = -1;
    }
    for (int i = 0; i < b->n && status == LOAM_OK; i++) item_of[b->items[i].index] = i;
    for (int k = 0; k < MIX_COUNT - 1 && status == LOAM_OK; k++) {
        mix_options o = { .mix = mix_at(k), .has_matrix = true, .dry_run = true, .output_type = -1, .token_type = -1 };
        if (mix_plan(&o, &facts.model, tensors, b->n_tensors, choices, NULL) != LOAM_OK || !choose_mix(b, choices, item_of)) continue;
        b->mixes[b->n_mixes++] = (budget_mix){ mix_at(k)->name, point_of(b) };
    }
    mem_free(tensors);
    mem_free(choices);
    mem_free(item_of);
    return status;
}

const mix_info *budget_nearest_mix(const loam_budget *b)
{
    uint64_t bytes[LOAM_TYPE_LIMIT] = { 0 };
    int most = LOAM_F32;
    for (int i = 0; i < b->n; i++) bytes[b->items[i].type[b->options[i].chosen]] += b->options[i].bytes[b->options[i].chosen];
    for (int k = 0; k < LOAM_TYPE_LIMIT; k++)
        if (bytes[k] > bytes[most]) most = k;
    for (int k = 0; k < MIX_COUNT - 1; k++)
        if (mix_at(k)->type == most) return mix_at(k);
    return mix_at(0);
}

/* ---- the plan ---- */

static loam_status conclude(planning *g, loam_error *err)
{
    loam_budget *b = g->b;
    int *chosen = mem_alloc_array((size_t)b->n, sizeof *chosen);
    if (!chosen) return fail_nomem(err, "a choice", (uint64_t)b->n * sizeof *chosen);
    for (int i = 0; i < b->n; i++) {
        chosen[i] = b->options[i].chosen;
        b->types[b->items[i].index] = b->items[i].type[chosen[i]];
    }
    b->facts.chosen = point_of(b);
    b->facts.n_tokens = g->t.n_chunks * g->t.n_ctx;
    b->facts.n_rows = (int32_t)g->t.n_rows;
    find_points(b);
    loam_status status = find_mixes(g, err);
    for (int i = 0; i < b->n; i++) b->options[i].chosen = chosen[i];
    mem_free(chosen);
    b->own = g->t.own;
    g->t.own = NULL;
    return status;
}

static loam_status check_params(const loam_budget_params *p, loam_error *err)
{
    if ((p->bits > 0) == (p->bytes > 0)) return fail(err, LOAM_E_ARG, "a budget is either bits a value or bytes");
    if (!(p->bits >= 0 && p->bits <= 64)) return fail(err, LOAM_E_ARG, "a budget of %g bits a value", p->bits);
    if (!p->text) return fail(err, LOAM_E_ARG, "a budget needs a calibration text");
    if (p->n_ctx < 16 || p->n_ctx > LIMIT_BATCH) return fail(err, LOAM_E_ARG, "n_ctx %d: must be 16 to %d", p->n_ctx, LIMIT_BATCH);
    if (p->n_tokens < 0 || p->n_rounds < 0 || p->n_rounds > 100) return fail(err, LOAM_E_ARG, "n_tokens %d, n_rounds %d", p->n_tokens, p->n_rounds);
    if (p->n_threads < 0 || p->n_threads > LIMIT_THREADS) return fail(err, LOAM_E_ARG, "n_threads %d: must be 0 to %d", p->n_threads, LIMIT_THREADS);
    return LOAM_OK;
}

static loam_status make_plan(planning *g, const char *path, loam_error *err)
{
    const loam_budget_params *p = g->p;
    trial_params tp = { path, p->text, p->text_len, p->n_ctx, p->n_tokens, p->n_threads, p->imatrix, p->progress, p->progress_user };
    loam_status status = gguf_open(&g->in, path, 0, err);
    if (status == LOAM_OK) status = pool_new(&g->threads, p->n_threads ? p->n_threads : os_cpu_count(), err);
    if (status == LOAM_OK) status = start_items(g, err);
    if (status == LOAM_OK) status = find_items(g, err);
    if (status == LOAM_OK) status = find_limit(g, err); /* what cannot be is said before the work */
    if (status == LOAM_OK) status = trial_open(&g->t, &tp, err);
    g->im = p->imatrix ? p->imatrix : g->t.own;
    if (status == LOAM_OK) status = find_items(g, err);
    if (status == LOAM_OK) status = find_limit(g, err);
    if (status == LOAM_OK) status = find_errors(g, err);
    if (status == LOAM_OK) status = hear_tensors(g, err);
    if (status == LOAM_OK) status = choose(g, err);
    if (status == LOAM_OK) status = conclude(g, err);
    for (int i = 0; g->encoded && i < g->b->n; i++) mem_free(g->encoded[i]);
    mem_free(g->encoded);
    mem_free(g->encoded_as);
    trial_close(&g->t);
    pool_free(g->threads);
    gguf_close(g->in);
    return status;
}

loam_status loam_budget_plan(loam_budget **out, const char *in, const loam_budget_params *params, loam_error *err)
{
    loam_budget_params p = loam_budget_defaults();
    *out = NULL;
    if (!in || !params || params->struct_size < sizeof(size_t) || params->struct_size > sizeof p)
        return fail(err, LOAM_E_ARG, "a budget needs a file, and parameters from loam_budget_defaults()");
    memcpy(&p, params, params->struct_size);
    loam_status status = check_params(&p, err);
    if (status != LOAM_OK) return status;
    loam_budget *b = mem_zalloc(sizeof *b);
    if (!b) return fail_nomem(err, "a plan of types", sizeof *b);
    planning g = { .b = b, .p = &p };
    status = make_plan(&g, in, err);
    if (status == LOAM_OK) *out = b;
    else loam_budget_free(b);
    return status;
}

void loam_budget_free(loam_budget *b)
{
    if (!b) return;
    loam_imatrix_free(b->own);
    mem_free(b->items);
    mem_free(b->options);
    mem_free(b->types);
    mem_free(b);
}

loam_budget_facts loam_budget_get(const loam_budget *b) { return b->facts; }

bool loam_budget_tensor_at(const loam_budget *b, size_t i, loam_budget_tensor *t)
{
    if (i >= (size_t)b->n) return false;
    const budget_item *item = &b->items[i];
    int o = b->options[i].chosen;
    *t = (loam_budget_tensor){ item->name, item->from, item->type[o], b->options[i].bytes[o], item->values, b->options[i].cost[o] };
    return true;
}

bool loam_budget_point_at(const loam_budget *b, size_t i, loam_budget_point *p)
{
    if (i >= (size_t)b->n_points) return false;
    *p = b->points[i];
    return true;
}

bool loam_budget_mix_at(const loam_budget *b, size_t i, const char **name, loam_budget_point *p)
{
    if (i >= (size_t)b->n_mixes) return false;
    *name = b->mixes[i].name;
    *p = b->mixes[i].point;
    return true;
}
