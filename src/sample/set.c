/* set.c - the candidate set: see sample.h. One pass over the logits checks them and takes the maximum of each block; after
 * that the first truncation of a 150,000-token vocabulary reads a few thousand numbers. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "sample/sample.h"

#define SMALL 256 /* up to here a cut sorts, above it counts */

void set_free(smp_set *s)
{
    mem_free(s->work);
    mem_free(s->block_max);
    mem_free(s->heap);
    mem_free(s->c);
    memset(s, 0, sizeof *s);
}

static int32_t block_count(const smp_set *s) { return (s->n_vocab + SET_BLOCK - 1) / SET_BLOCK; }

static int block_size(const smp_set *s, int32_t block)
{
    int32_t left = s->n_vocab - block * SET_BLOCK;
    return left < SET_BLOCK ? left : SET_BLOCK;
}

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

static v4f load4(const float *x)
{
    v4f v;
    memcpy(&v, x, sizeof v);
    return v;
}

static v4f larger(v4f a, v4f b)
{
    v4i mask = a > b;
    return (v4f)(((v4i)a & mask) | ((v4i)b & ~mask));
}

/* Largest of x[0..n); *bad where one is NaN or +infinity. */
static float scan_block(const float *x, int n, bool *bad)
{
    const v4f finite = { FLT_MAX, FLT_MAX, FLT_MAX, FLT_MAX };
    v4f a = { -INFINITY, -INFINITY, -INFINITY, -INFINITY }, b = a;
    v4i fine = { -1, -1, -1, -1 };
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        v4f p = load4(x + i), q = load4(x + i + 4);
        fine &= (p <= finite) & (q <= finite);
        a = larger(p, a);
        b = larger(q, b);
    }
    a = larger(a, b);
    float most = a[0];
    for (int j = 0; j < 4; j++) {
        most = a[j] > most ? a[j] : most;
        *bad |= !fine[j];
    }
    for (; i < n; i++) {
        *bad |= !(x[i] <= FLT_MAX);
        most = x[i] > most ? x[i] : most;
    }
    return most;
}

loam_status set_modify(smp_set *s, loam_error *err)
{
    if (!s->dense || s->logits == s->work) return LOAM_OK;
    size_t n = (size_t)s->n_vocab;
    if (!mem_grow(&s->work, &s->work_cap, n, sizeof *s->work, LIMIT_VOCAB))
        return fail_nomem(err, "a copy of the logits", (uint64_t)n * sizeof *s->work);
    memcpy(s->work, s->logits, n * sizeof *s->work);
    s->logits = s->work;
    return LOAM_OK;
}

/* Tokens whose logits are NaN or +infinity say nothing and are never chosen: -infinity in a copy. */
static loam_status without_bad(smp_set *s, loam_error *err)
{
    loam_status status = set_modify(s, err);
    if (status != LOAM_OK) return status;
    bool bad = false;
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (!(s->work[i] <= FLT_MAX)) s->work[i] = -INFINITY;
    for (size_t b = 0; b < (size_t)block_count(s); b++) s->block_max[b] = scan_block(s->work + b * SET_BLOCK, block_size(s, (int32_t)b), &bad);
    return LOAM_OK;
}

loam_status set_begin(smp_set *s, const float *logits, int32_t n_vocab, loam_error *err)
{
    if (n_vocab < 1 || (uint32_t)n_vocab > LIMIT_VOCAB)
        return fail(err, LOAM_E_ARG, "n_vocab %d: must be 1 to %u", n_vocab, LIMIT_VOCAB);
    s->logits = logits;
    s->n_vocab = n_vocab;
    s->dense = true;
    s->n = 0;
    size_t blocks = (size_t)block_count(s);
    if (!mem_grow(&s->block_max, &s->block_cap, blocks, sizeof *s->block_max, LIMIT_VOCAB))
        return fail_nomem(err, "sampling", blocks * sizeof *s->block_max);
    bool bad = false;
    for (size_t b = 0; b < blocks; b++) s->block_max[b] = scan_block(logits + b * SET_BLOCK, block_size(s, (int32_t)b), &bad);
    return bad ? without_bad(s, err) : LOAM_OK;
}

static loam_status reserve(smp_set *s, size_t n, loam_error *err)
{
    if (mem_grow(&s->c, &s->cap, n, sizeof *s->c, LIMIT_VOCAB)) return LOAM_OK;
    return fail_nomem(err, "sampling candidates", (uint64_t)n * sizeof *s->c);
}

/* Index of the first candidate whose id is not below the given one. */
static size_t find(const smp_set *s, int32_t id)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->c[mid].id < id) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

const float *set_logit(const smp_set *s, int32_t id)
{
    if (id < 0 || id >= s->n_vocab) return NULL;
    if (s->dense) return s->logits[id] == -INFINITY ? NULL : &s->logits[id];
    size_t at = find(s, id);
    return at < s->n && s->c[at].id == id ? &s->c[at].logit : NULL;
}

void set_change(smp_set *s, int32_t id, float logit)
{
    if (!s->dense) {
        s->c[find(s, id)].logit = logit;
        return;
    }
    bool bad = false;
    int32_t block = id / SET_BLOCK;
    s->work[id] = logit;
    s->block_max[block] = scan_block(s->work + block * SET_BLOCK, block_size(s, block), &bad);
}

static void push(smp_set *s, int32_t id, float logit)
{
    smp_cand *c = &s->c[s->n++];
    c->id = id;
    c->logit = logit;
    c->p = 0;
    c->u.key = 0;
}

float set_max(const smp_set *s)
{
    float most = -INFINITY;
    size_t n = s->dense ? (size_t)block_count(s) : s->n;
    for (size_t i = 0; i < n; i++) {
        float x = s->dense ? s->block_max[i] : s->c[i].logit;
        if (x > most) most = x;
    }
    return most;
}

/* ---- cuts of a list ---- */

/* Sorts n words ascending; insertion is the fastest for the few dozen that there normally are. */
static void sort_words(uint64_t *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t x = a[i];
        size_t j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

typedef struct cut_goal {
    bool by_p;
    double mass;
    size_t min_keep;
} cut_goal;

static bool reached(const cut_goal *g, size_t count, double sum) { return count >= g->min_keep && (!g->by_p || sum >= g->mass); }

static void cut_small(smp_set *s, const cut_goal *g)
{
    uint64_t order[SMALL];
    bool stay[SMALL] = { false };
    for (size_t i = 0; i < s->n; i++) order[i] = (uint64_t)~s->c[i].u.key << 32 | i;
    sort_words(order, s->n);
    double sum = 0;
    for (size_t i = 0; i < s->n && !reached(g, i, sum); i++) {
        size_t at = (size_t)(order[i] & 0xFFFFFFFFu);
        stay[at] = true;
        sum += s->c[at].p;
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (stay[i]) s->c[n++] = s->c[i];
    s->n = n;
}

#define BINS 2048

/* What is known of a cut by counting: the high bits of the boundary key, and what lies above it for certain. */
typedef struct cut_state {
    uint32_t prefix;
    size_t count;
    double sum;
} cut_state;

/* Refines the boundary by the bits [shift, shift + width) of the keys whose higher bits equal the prefix. The lowest bin in use
 * is the boundary where no bin above it reaches the goal, so that rounding of sums cannot lose it. */
static void cut_level(const smp_set *s, cut_state *t, int shift, int width, const cut_goal *g)
{
    double sums[BINS];
    uint32_t counts[BINS];
    int bins = 1 << width, high = shift + width;
    memset(sums, 0, sizeof sums);
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < s->n; i++) {
        uint32_t key = s->c[i].u.key;
        if (high < 32 && key >> high != t->prefix) continue;
        uint32_t bin = key >> shift & (uint32_t)(bins - 1);
        counts[bin]++;
        sums[bin] += s->c[i].p;
    }
    int lowest = 0, b = bins - 1;
    while (lowest < bins - 1 && !counts[lowest]) lowest++;
    for (; b > lowest; b--) {
        if (!counts[b]) continue;
        if (reached(g, t->count + counts[b], t->sum + sums[b])) break;
        t->count += counts[b];
        t->sum += sums[b];
    }
    t->prefix = t->prefix << width | (uint32_t)b;
}

static void cut_large(smp_set *s, const cut_goal *g)
{
    cut_state t = { 0, 0, 0 };
    cut_level(s, &t, 21, 11, g);
    cut_level(s, &t, 10, 11, g);
    cut_level(s, &t, 0, 10, g);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->c[i].u.key < t.prefix) continue;
        if (s->c[i].u.key == t.prefix) { /* equal keys at the boundary: lower ids first, as many as it takes */
            if (reached(g, t.count, t.sum)) continue;
            t.count++;
            t.sum += s->c[i].p;
        }
        s->c[n++] = s->c[i];
    }
    s->n = n;
}

void set_cut(smp_set *s, bool by_p, double mass, size_t min_keep)
{
    cut_goal g = { by_p, mass, min_keep < 1 ? 1 : min_keep };
    if (s->n <= SMALL) cut_small(s, &g);
    else cut_large(s, &g);
}

/* ---- truncations that also work on a dense set ---- */

loam_status set_list(smp_set *s, loam_error *err)
{
    if (!s->dense) return LOAM_OK;
    loam_status status = reserve(s, (size_t)s->n_vocab, err);
    if (status != LOAM_OK) return status;
    s->n = 0;
    for (int32_t id = 0; id < s->n_vocab; id++)
        if (s->logits[id] != -INFINITY) push(s, id, s->logits[id]);
    s->dense = false;
    return LOAM_OK;
}

static void cut_to_top(smp_set *s, size_t k)
{
    if (s->n <= k) return;
    for (size_t i = 0; i < s->n; i++) s->c[i].u.key = order_key(s->c[i].logit);
    set_cut(s, false, 0, k);
}

/* Dense -> listed: the tokens with logits >= floor, which is above -infinity. */
static loam_status list_above(smp_set *s, double floor, loam_error *err)
{
    s->n = 0;
    for (int32_t b = 0; b < block_count(s); b++) {
        if (s->block_max[b] < floor) continue;
        int32_t id = b * SET_BLOCK, end = id + block_size(s, b);
        loam_status status = reserve(s, s->n + SET_BLOCK, err);
        if (status != LOAM_OK) return status;
        for (; id < end; id++)
            if (s->logits[id] >= floor) push(s, id, s->logits[id]);
    }
    s->dense = false;
    return LOAM_OK;
}

/* Puts x in place of the smallest of a heap of k numbers, whose root it is. */
static void heap_replace_root(float *h, size_t k, float x)
{
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= k) break;
        if (child + 1 < k && h[child + 1] < h[child]) child++;
        if (h[child] >= x) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = x;
}

/* The k largest logits of a dense set. The k-th largest of the maxima of blocks bounds them from below: k blocks reach it. */
static loam_status dense_top(smp_set *s, size_t k, loam_error *err)
{
    size_t blocks = (size_t)block_count(s);
    loam_status status;
    if (k >= blocks) {
        status = set_list(s, err);
    } else {
        if (!mem_grow(&s->heap, &s->heap_cap, k, sizeof *s->heap, LIMIT_VOCAB))
            return fail_nomem(err, "top-k", k * sizeof *s->heap);
        for (size_t i = 0; i < k; i++) s->heap[i] = -INFINITY;
        for (size_t b = 0; b < blocks; b++)
            if (s->block_max[b] > s->heap[0]) heap_replace_root(s->heap, k, s->block_max[b]);
        status = s->heap[0] == -INFINITY ? set_list(s, err) : list_above(s, s->heap[0], err);
    }
    if (status == LOAM_OK) cut_to_top(s, k);
    return status;
}

loam_status set_keep_top(smp_set *s, size_t k, loam_error *err)
{
    if (k < 1) k = 1;
    if (s->dense) return dense_top(s, k, err);
    cut_to_top(s, k);
    return LOAM_OK;
}

loam_status set_keep_above(smp_set *s, double floor, size_t min_keep, loam_error *err)
{
    if (floor < -FLT_MAX) return LOAM_OK;
    if (s->dense) {
        loam_status status = list_above(s, floor, err);
        if (status != LOAM_OK || s->n >= min_keep) return status;
        s->dense = true;
        return set_keep_top(s, min_keep, err);
    }
    size_t above = 0;
    for (size_t i = 0; i < s->n; i++) above += s->c[i].logit >= floor;
    if (above < min_keep) {
        cut_to_top(s, min_keep);
        return LOAM_OK;
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->c[i].logit >= floor) s->c[n++] = s->c[i];
    s->n = n;
    return LOAM_OK;
}

/* ---- probabilities ---- */

void set_softmax(smp_set *s)
{
    float most = set_max(s);
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += s->c[i].p = expf(s->c[i].logit - most);
    for (size_t i = 0; i < s->n; i++) s->c[i].p = (float)(s->c[i].p / sum);
}

double set_entropy(const smp_set *s)
{
    double h = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->c[i].p > 0) h -= s->c[i].p * log(s->c[i].p);
    return h;
}
