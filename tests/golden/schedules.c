/* schedules.c - random schedules of batches and memory operations against a slow memory.
 *
 *     build/test_golden_schedules [SCHEDULES [SEED]]      default 150; `make check` runs 10000
 *
 * The slow memory is a plain list of tokens per sequence, each with its position and, per layer, its own unrotated key row and
 * value row, or what a recurrent layer left behind it. An observer of the decode takes the rows as they are made and checks
 * every result that depends on memory by naive loops over the lists: attention (keys turned here, in double precision, to
 * the positions of the list), short convolutions, selective scans. What lies between is the engine's. So a wrong page, position,
 * mask, turn, copy or state shows at once, at its layer and token. Beside that, sequences whose positions were never
 * moved are computed again from nothing by a fresh context: the same logits.
 *
 * Failures are part of the schedules: bad batches, a full cache, stops at a random step, failing allocations. After each the
 * positions are those of the list. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "context/context.h"
#include "loam/context.h"

#define N_SEQ 4
#define MOST_TOKENS 512       /* of a sequence */
#define MOST_RECORDS 4096     /* tokens of a schedule */
#define MOST_LAYERS 8
#define TOLERANCE 1e-5

/* What a token left in every layer. */
typedef struct record {
    int32_t id, pos;              /* a token has one position, whoever shares it */
    double *key[MOST_LAYERS];     /* unrotated, [n_kv][k_dim] */
    float *value[MOST_LAYERS];    /* [n_kv][v_dim] */
    float *window[MOST_LAYERS];   /* of the convolutions after this token */
    float *state[MOST_LAYERS];
} record;

typedef struct list {
    record *e[MOST_TOKENS];
    int n;
    bool moved;                   /* positions were changed or removed inside: not to be had from nothing */
} list;

typedef struct rig {
    const char *name;
    loam_model *model;
    loam_context *ctx, *cold;
    bool states, limited, large;  /* large: batches that fill the cache */
    record records[MOST_RECORDS];
    int n_records;
    list seqs[N_SEQ];
    dice d;
    uint64_t seed;
    /* the batch under way */
    int n, done[MOST_LAYERS][4];  /* tokens that each kind of operation has seen */
    int32_t ids[64], pos[64], n_seq[64], seq[64][N_SEQ];
    record *made[64];
    int stop_after;               /* observed operations, -1: never */
    bool wrong;
    double worst;                 /* largest distance so far */
    long checked, decodes, refused, stopped, full, failed, redone;
} rig;

enum { AT_KEYS, AT_ATTENTION, AT_CONV, AT_SCAN };

static uint32_t below(rig *g, uint32_t n) { return dice_below(&g->d, n); }

/* ---- values of the plan that is running ---- */

static const value *value_of(const rig *g, const loam_node *node)
{
    const kept_plan *now = &g->ctx->plans[0];
    for (int i = 1; i < PLANS_KEPT; i++)
        if (g->ctx->plans[i].used > now->used) now = &g->ctx->plans[i];
    return now->p->g.values[node->id];
}

static float at(const loam_node *n, int64_t t, int64_t head, int64_t i)
{
    float x;
    memcpy(&x, (const char *)n->data + t * n->nb[2] + head * n->nb[1] + i * 4, sizeof x);
    return x;
}

/* A value of a row that may be cut into heads. */
static float flat(const loam_node *n, int64_t t, int64_t i) { return at(n, t, i / n->ne[0], i % n->ne[0]); }

/* ---- rotation ---- */

typedef struct turn {
    const value *table;
    int offset;
    bool neox;
} turn;

static bool find_turn(const value *v, int offset, turn *t)
{
    switch (v->op) {
    case OP_ROPE: *t = (turn){ v->src[1], offset + v->p.turn.offset, v->p.turn.neox }; return true;
    case OP_CONCAT: return find_turn(v->src[1], offset + (int)v->src[0]->ne[0], t) || find_turn(v->src[0], offset, t);
    case OP_NORM: case OP_VIEW: case OP_CLAMP: case OP_SCALE: return find_turn(v->src[0], offset, t);
    default: return false;
    }
}

static double frequency(const rope_params *p, const float *factors, int i)
{
    double plain = pow(p->base, -2.0 * i / p->n_rot) / (factors ? factors[i] : 1.0), turned = plain * p->freq_scale;
    if (p->ext_factor == 0.0f) return turned;
    double width = (double)p->ramp_high - p->ramp_low, y = (i - p->ramp_low) / (width > 0.001 ? width : 0.001);
    double mix = (1 - (y < 0 ? 0 : y > 1 ? 1 : y)) * p->ext_factor;
    return turned * (1 - mix) + plain * mix;
}

static void rotate(const turn *t, double *head, double positions)
{
    const rope_params *p = &t->table->p.rope;
    const float *factors = t->table->src[1] ? t->table->src[1]->p.w->data : NULL;
    for (int i = 0, pairs = p->n_rot / 2; i < pairs; i++) {
        double *a = head + t->offset + (t->neox ? i : 2 * i), *b = t->neox ? a + pairs : a + 1, angle = positions * frequency(p, factors, i);
        double x = *a * cos(angle) - *b * sin(angle), y = *a * sin(angle) + *b * cos(angle);
        *a = x;
        *b = y;
    }
}

/* ---- naive results ---- */

static void compare(rig *g, const loam_node *n, int token, double want, double got, double scale)
{
    double far = fabs(want - got) / (1 + scale);
    g->checked++;
    if (far > g->worst || isnan(far)) g->worst = far;
    if (far <= TOLERANCE || g->wrong) return;
    g->wrong = true;
    print_error("%s: seed %llu, layer %d, %s: token %d (id %d, position %d, sequence %d): %g in place of %g\n", g->name,
                (unsigned long long)g->seed, n->layer, n->op, token, g->ids[token], g->pos[token], g->seq[token][0], got, want);
}

static void take_keys(rig *g, const loam_node *n, const value *v)
{
    const loam_node *k = n->src[0], *val = n->src[1];
    const kv_layer *layer = &memory_layers(g->ctx->mem)[v->p.kv.layer];
    int n_kv = layer->shape.n_kv_head, k_dim = layer->shape.k_dim, v_dim = layer->shape.v_dim, *done = &g->done[n->layer][AT_KEYS];
    turn how;
    bool turns = find_turn(v->src[0], 0, &how);
    for (int64_t t = 0; t < k->ne[2]; t++) {
        int token = (*done)++;
        record *r = g->made[token];
        r->key[n->layer] = malloc((size_t)(n_kv * k_dim) * sizeof(double));
        r->value[n->layer] = malloc((size_t)(n_kv * v_dim) * sizeof(float));
        for (int i = 0; i < n_kv * k_dim; i++) r->key[n->layer][i] = (double)flat(k, t, i);
        for (int i = 0; i < n_kv * v_dim; i++) r->value[n->layer][i] = flat(val, t, i);
        for (int h = 0; turns && h < n_kv; h++) rotate(&how, r->key[n->layer] + h * k_dim, -(double)g->pos[token]);
    }
}

/* All that the sequence holds, with the batch's tokens up to `end`. */
static int gather(const rig *g, int32_t seq, int end, record **out)
{
    int n = g->seqs[seq].n;
    memcpy(out, g->seqs[seq].e, (size_t)n * sizeof *out);
    for (int i = 0; i < end; i++)
        for (int j = 0; j < g->n_seq[i]; j++)
            if (g->seq[i][j] == seq) out[n++] = g->made[i];
    return n;
}

static bool sees(const attention_params *p, int32_t a, int32_t b)
{
    return b <= a && (p->window != WINDOW_STANDARD || a - b < p->window_size);
}

/* What a token can look at: entries of its sequence with their keys, turned. */
typedef struct sight {
    const attention_params *p;
    double *keys;             /* [count][n_kv_head][k_dim] */
    record *e[MOST_TOKENS + 64];
    int count;
} sight;

static void check_heads(rig *g, const loam_node *n, const sight *s, int64_t t, int token)
{
    const attention_params *p = s->p;
    const double *keys = s->keys;
    record *const *e = s->e;
    int count = s->count;
    for (int h = 0; h < p->n_head; h++) {
        int kv = h / (p->n_head / p->n_kv_head);
        double score[MOST_TOKENS + 64], most = -INFINITY, sum = 0, scale = 0;
        for (int i = 0; i < count; i++) {
            score[i] = -INFINITY;
            if (!sees(p, g->pos[token], e[i]->pos)) continue;
            double dot = 0;
            for (int d = 0; d < p->k_dim; d++) dot += keys[(i * p->n_kv_head + kv) * p->k_dim + d] * (double)at(n->src[0], t, h, d);
            score[i] = p->softcap != 0 ? (double)p->softcap * tanh(dot * (double)p->scale / (double)p->softcap) : dot * (double)p->scale;
            most = score[i] > most ? score[i] : most;
        }
        for (int i = 0; i < count; i++) sum += score[i] = exp(score[i] - most);
        for (int d = 0; d < p->v_dim; d++) {
            double y = 0;
            for (int i = 0; i < count; i++) {
                double x = (double)e[i]->value[n->layer][kv * p->v_dim + d];
                y += score[i] * x;
                if (score[i] > 0 && fabs(x) > scale) scale = fabs(x);
            }
            compare(g, n, token, y / sum, (double)at(n, t, h, d), scale);
        }
    }
}

static void check_attention(rig *g, const loam_node *n, const value *v)
{
    const attention_params *p = &v->p.attn;
    static sight s;
    int end = g->done[n->layer][AT_KEYS], first = end - (int)n->src[0]->ne[2], seq = -1;
    turn how;
    bool turns = find_turn(v->src[1]->src[0], 0, &how);
    s.p = p;
    s.keys = malloc((size_t)(MOST_TOKENS + 64) * (size_t)(p->n_kv_head * p->k_dim) * sizeof *s.keys);
    for (int64_t t = 0; t < n->src[0]->ne[2] && !g->wrong; t++) {
        int token = first + (int)t;
        if (g->seq[token][0] != seq) {
            seq = g->seq[token][0];
            s.count = gather(g, seq, end, s.e);
            for (int i = 0; i < s.count; i++)
                for (int h = 0; h < p->n_kv_head; h++) {
                    double *head = s.keys + (i * p->n_kv_head + h) * p->k_dim;
                    memcpy(head, s.e[i]->key[n->layer] + h * p->k_dim, (size_t)p->k_dim * sizeof *head);
                    if (turns) rotate(&how, head, s.e[i]->pos);
                }
        }
        check_heads(g, n, &s, t, token);
    }
    free(s.keys);
}

/* The token that a token of the batch follows in its first sequence, NULL: none. */
static const record *before(const rig *g, int token)
{
    static record *e[MOST_TOKENS + 64];
    int n = gather(g, g->seq[token][0], token, e);
    return n ? e[n - 1] : NULL;
}

/* Windows of all convolutions of a layer lie one behind the other, as the cache has them: [taps - 1][channels]. */
static void check_conv(rig *g, const loam_node *n, const value *v)
{
    const loam_node *x = n->src[0], *w = n->src[1];
    int64_t taps = w->ne[0], width = v->ne[0] * v->ne[1], row = g->ctx->layers[v->p.state.layer].r_row;
    if (v->p.state.at == 0) g->done[n->layer][AT_CONV] += (int)x->ne[2];
    int first = g->done[n->layer][AT_CONV] - (int)x->ne[2];
    for (int64_t t = 0; t < x->ne[2] && !g->wrong; t++) {
        int token = first + (int)t;
        const record *last = before(g, token);
        record *r = g->made[token];
        if (!r->window[n->layer]) r->window[n->layer] = calloc((size_t)row, sizeof(float));
        for (int64_t c = 0; c < width; c++) {
            const float *taken = (const float *)w->data + (v->p.state.first + c) * taps;
            float *kept = r->window[n->layer] + v->p.state.at + c;
            double y = 0, scale = 0, in = (double)flat(x, t, c);
            for (int64_t k = 0; k + 1 < taps; k++) {
                double old = last ? (double)last->window[n->layer][v->p.state.at + k * width + c] : 0;
                y += (double)taken[k] * old;
                scale += fabs((double)taken[k] * old);
                if (k > 0) kept[(k - 1) * width] = (float)old;
            }
            if (taps > 1) kept[(taps - 2) * width] = (float)in;
            y += (double)taken[taps - 1] * in;
            if (n->n_src > 2) y += (double)((const float *)n->src[2]->data)[v->p.state.first + c];
            compare(g, n, token, y, (double)flat(n, t, c), scale + fabs(y));
        }
    }
}

static void check_scan(rig *g, const loam_node *n)
{
    const loam_node *x = n->src[0], *dt = n->src[1], *b = n->src[2], *c = n->src[3];
    const float *a = n->src[4]->data, *d = n->src[5]->data;
    int64_t states = b->ne[0], rows = x->ne[0] * x->ne[1];
    bool each = n->src[4]->ne[0] * n->src[4]->ne[1] * n->src[4]->ne[2] != n->ne[1];
    int first = g->done[n->layer][AT_SCAN];
    for (int64_t t = 0; t < x->ne[2] && !g->wrong; t++) {
        int token = first + (int)t;
        const record *last = before(g, token);
        float *s = g->made[token]->state[n->layer] = malloc((size_t)(rows * states) * sizeof *s);
        for (int64_t row = 0; row < rows; row++) {
            int64_t head = row / x->ne[0], group = head / (x->ne[1] / b->ne[1]);
            double in = (double)flat(x, t, row), move = (double)flat(dt, t, each ? row : head);
            double y = (double)d[each ? row : head] * in, scale = fabs(y), decay = exp(move * (double)a[head]);
            for (int64_t i = 0; i < states; i++) {
                double old = last ? (double)last->state[n->layer][row * states + i] : 0;
                if (each) decay = exp(move * (double)a[row * states + i]);
                double now = old * decay + move * in * (double)at(b, t, group, i);
                s[row * states + i] = (float)now;
                y += now * (double)at(c, t, group, i);
                scale += fabs(now * (double)at(c, t, group, i));
            }
            compare(g, n, token, y, (double)flat(n, t, row), scale);
        }
    }
    g->done[n->layer][AT_SCAN] += (int)x->ne[2];
}

static bool watch(void *user, const loam_node *n, bool ask)
{
    rig *g = user;
    if (ask) return true;
    const value *v = value_of(g, n);
    switch (v->op) {
    case OP_KV_WRITE: take_keys(g, n, v); break;
    case OP_ATTENTION: check_attention(g, n, v); break;
    case OP_CONV: check_conv(g, n, v); break;
    case OP_SCAN: check_scan(g, n); break;
    default: break;
    }
    return !(g->stop_after >= 0 && g->stop_after-- == 0);
}

/* ---- the rig ---- */

static bool same_list(const list *a, const list *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->e[i] != b->e[i]) return false;
    return true;
}

static int32_t last_pos(const list *l)
{
    int32_t most = -1;
    for (int i = 0; i < l->n; i++) most = l->e[i]->pos > most ? l->e[i]->pos : most;
    return most;
}

static int32_t first_pos(const list *l)
{
    int32_t least = -1;
    for (int i = 0; i < l->n; i++) least = least < 0 || l->e[i]->pos < least ? l->e[i]->pos : least;
    return least;
}

static void free_records(rig *g)
{
    for (int i = 0; i < g->n_records; i++)
        for (int l = 0; l < MOST_LAYERS; l++) {
            free(g->records[i].key[l]);
            free(g->records[i].value[l]);
            free(g->records[i].window[l]);
            free(g->records[i].state[l]);
        }
    g->n_records = 0;
}

static void expect_positions(rig *g, const char *after)
{
    for (int q = 0; q < N_SEQ; q++) {
        int32_t most = loam_memory_seq_pos_max(g->ctx, q), least = loam_memory_seq_pos_min(g->ctx, q);
        bool exact = !g->states && !g->limited;
        if (most == last_pos(&g->seqs[q]) && (!exact || least == first_pos(&g->seqs[q])) && least >= first_pos(&g->seqs[q]) && !g->wrong) continue;
        fail_msg("%s, seed %llu, after %s: sequence %d has positions %d .. %d, should have %d .. %d", g->name, (unsigned long long)g->seed, after,
                 q, least, most, first_pos(&g->seqs[q]), last_pos(&g->seqs[q]));
    }
}

/* ---- decoding ---- */

static void plan_tokens(rig *g, int32_t lead, int n, int32_t next[N_SEQ])
{
    int32_t with[N_SEQ] = { lead }, n_with = 1;
    for (int q = 0; q < N_SEQ && below(g, 2); q++)
        if (q != lead && next[q] == next[lead] && same_list(&g->seqs[q], &g->seqs[lead]) && g->seqs[lead].n > 0) with[n_with++] = q;
    for (int i = 0; i < n && g->n < 48; i++, g->n++) {
        g->ids[g->n] = (int32_t)below(g, (uint32_t)loam_model_n_vocab(g->model));
        g->pos[g->n] = next[lead];
        g->n_seq[g->n] = n_with;
        for (int j = 0; j < n_with; j++) g->seq[g->n][j] = with[j];
        for (int j = 0; j < n_with; j++) next[with[j]] = g->pos[g->n] + 1;
    }
}

/* Several groups; a sequence may come again later in the batch, but not where it was joined by others in between. */
static void compose(rig *g)
{
    int32_t next[N_SEQ];
    bool joined[N_SEQ] = { false };
    g->n = 0;
    memset(g->done, 0, sizeof g->done);
    for (int q = 0; q < N_SEQ; q++) next[q] = last_pos(&g->seqs[q]) + 1;
    for (int groups = 1 + (int)below(g, 4); groups > 0; groups--) {
        int32_t lead = (int32_t)below(g, N_SEQ);
        int first = g->n;
        if (joined[lead]) continue;
        plan_tokens(g, lead, 1 + (int)below(g, g->large ? 40 : below(g, 3) ? 4 : 20), next);
        for (int j = 0; j < g->n_seq[first]; j++) joined[g->seq[first][j]] = g->n_seq[first] > 1 || below(g, 2);
        for (int q = 0; q < N_SEQ; q++) joined[q] = joined[q] || next[q] != last_pos(&g->seqs[q]) + 1; /* lists differ from memory from here on */
    }
    if (g->n == 0) {
        int32_t lead = (int32_t)below(g, N_SEQ);
        plan_tokens(g, lead, 1, next);
    }
}

static bool fits(const rig *g)
{
    for (int q = 0; q < N_SEQ; q++)
        if (g->seqs[q].n + 48 > MOST_TOKENS) return false;
    return g->n_records + 48 <= MOST_RECORDS;
}

/* The sequence of the last token from nothing: the same logits. */
static void redo(rig *g)
{
    static int32_t ids[MOST_TOKENS];
    loam_error err;
    const list *l = &g->seqs[g->seq[g->n - 1][0]];
    size_t n_vocab = (size_t)loam_model_n_vocab(g->model);
    for (int i = 0; i < l->n; i++) {
        if (l->e[i]->pos != i) return;
        ids[i] = l->e[i]->id;
    }
    loam_memory_clear(g->cold);
    for (int i = 0; i < l->n; i += 128) {
        loam_batch b = { .n_tokens = l->n - i < 128 ? l->n - i : 128, .token = ids + i };
        if (loam_decode(g->cold, &b, &err)) fail_msg("%s, seed %llu, from nothing: %s", g->name, (unsigned long long)g->seed, err.message);
    }
    const float *a = loam_logits(g->ctx, g->n - 1), *b = loam_logits(g->cold, -1);
    double most = 0;
    for (size_t i = 0; i < n_vocab; i++) most = fabs((double)b[i]) > most ? fabs((double)b[i]) : most;
    double far = max_abs_diff(a, b, n_vocab) / (1 + most);
    g->redone++;
    if (!(far <= TOLERANCE))
        fail_msg("%s, seed %llu: logits of sequence %d at %d are %g away from those from nothing", g->name, (unsigned long long)g->seed,
                 g->seq[g->n - 1][0], g->pos[g->n - 1], far);
}

static void keep_batch(rig *g)
{
    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < g->n_seq[i]; j++) {
            list *l = &g->seqs[g->seq[i][j]];
            l->e[l->n++] = g->made[i];
        }
}

static void decode(rig *g)
{
    loam_error err;
    const int32_t *seqs[64];
    int8_t want[64];
    if (!fits(g)) return;
    compose(g);
    for (int i = 0; i < g->n; i++) {
        seqs[i] = g->seq[i];
        want[i] = i == g->n - 1 || below(g, 4) == 0;
        g->made[i] = &g->records[g->n_records++];
        *g->made[i] = (record){ .id = g->ids[i], .pos = g->pos[i] };
    }
    loam_batch b = { .n_tokens = g->n, .token = g->ids, .pos = below(g, 2) ? g->pos : NULL, .n_seq_id = g->n_seq, .seq_id = seqs, .logits = want };
    bool bad = below(g, 12) == 0, starve = !bad && below(g, 24) == 0;
    int32_t spoiled = (int32_t)below(g, (uint32_t)g->n), sound_id = g->ids[spoiled];
    g->stop_after = below(g, 8) == 0 ? (int)below(g, 300) : -1;
    if (bad) g->ids[spoiled] = below(g, 2) ? -1 : loam_model_n_vocab(g->model);
    if (starve) fault_arm(1 + (long)below(g, 6), false);
    int code = loam_decode(g->ctx, &b, &err);
    fault_arm(0, false);
    g->ids[spoiled] = sound_id;
    if (code == 0) keep_batch(g);
    g->decodes++, g->refused += code == -1, g->full += code == 1, g->stopped += code == 2, g->failed += code == -2;
    if (code == -3 || (code == -1) != bad || (code == -2 && !starve) || (code == 2 && g->stop_after >= 0))
        fail_msg("%s, seed %llu: a decode of %d tokens gives %d: %s", g->name, (unsigned long long)g->seed, g->n, code, err.message);
    expect_positions(g, "a decode");
    if (code == 0 && !g->seqs[g->seq[g->n - 1][0]].moved && below(g, 6) == 0) redo(g);
}

/* ---- operations on sequences ---- */

static void cut(list *l, int32_t p0, int32_t p1, int32_t until)
{
    int n = 0, before_n = l->n;
    int32_t last = last_pos(l);
    for (int i = 0; i < l->n; i++)
        if (l->e[i]->pos < p0 || l->e[i]->pos >= p1) l->e[n++] = l->e[i];
    l->n = n;
    if (n == 0) l->moved = false;
    else if (n != before_n && until <= last) l->moved = true;
}

static bool shares(const rig *g, int32_t q)
{
    for (int s = 0; s < N_SEQ; s++)
        for (int i = 0; s != q && i < g->seqs[s].n && i < g->seqs[q].n; i++)
            if (g->seqs[s].e[i] == g->seqs[q].e[i]) return true;
    return false;
}

static void operate(rig *g)
{
    loam_error err;
    int32_t q = (int32_t)below(g, N_SEQ), r = (int32_t)below(g, N_SEQ), end = last_pos(&g->seqs[q]) + 1;
    int32_t p0 = below(g, 3) ? (int32_t)below(g, (uint32_t)end + 2) : -1, p1 = below(g, 2) ? (int32_t)below(g, (uint32_t)end + 2) : -1;
    int32_t low = p0 < 0 ? 0 : p0, high = p1 < 0 ? INT32_MAX : p1;
    list *l = &g->seqs[q];
    switch (below(g, 8)) {
    case 0: case 1: /* the end, often by a little */
        if (below(g, 2)) low = p0 = end > 3 ? end - 1 - (int32_t)below(g, 3) : 0, p1 = -1, high = INT32_MAX;
        if (loam_memory_seq_rm(g->ctx, q, p0, p1)) cut(l, low, high, high);
        break;
    case 2:
        if (loam_memory_seq_rm(g->ctx, q, p0, p1)) cut(l, low, high, high);
        break;
    case 3: case 4: /* mostly a whole sequence */
        if (below(g, 3) || g->states) low = 0, high = INT32_MAX, p0 = p1 = -1; /* cut copies of states: tests/unit/states.c */
        if (loam_memory_seq_cp(g->ctx, q, r, p0, p1, &err) != LOAM_OK || q == r || low >= high) break;
        cut(&g->seqs[r], low, high, high);
        bool whole = g->seqs[r].n == 0 && (low == 0 || l->n == 0);
        for (int i = 0; i < l->n; i++)
            if (l->e[i]->pos >= low && l->e[i]->pos < high) g->seqs[r].e[g->seqs[r].n++] = l->e[i];
        g->seqs[r].moved = whole ? l->moved : true;
        break;
    case 5:
        if (below(g, 6) || !loam_memory_seq_keep(g->ctx, q)) break;
        for (int s = 0; s < N_SEQ; s++)
            if (s != q) cut(&g->seqs[s], 0, INT32_MAX, INT32_MAX);
        break;
    default: {
        int32_t add = below(g, 3) ? (int32_t)below(g, 13) - 6 : 0, div = add ? 1 : 1 + (int32_t)below(g, 3);
        if (g->states && shares(g, q)) break; /* the position of a state parts from those of its tokens: tests/unit/states.c */
        if (g->states) low = 0, high = INT32_MAX, p0 = p1 = -1;
        loam_status status = add ? loam_memory_seq_add(g->ctx, q, p0, p1, add, &err) : loam_memory_seq_div(g->ctx, q, p0, p1, div, &err);
        if (status != LOAM_OK || low >= high || (add == 0 && div == 1)) break;
        for (int i = 0; i < l->n; i++)
            if (l->e[i]->pos >= low && l->e[i]->pos < high) l->e[i]->pos = l->e[i]->pos + add < 0 ? -1 : (l->e[i]->pos + add) / div;
        for (int s = 0; s < N_SEQ; s++) {
            g->seqs[s].moved = g->seqs[s].n > 0; /* any of them may share a token */
            cut(&g->seqs[s], -1, 0, 0);
        }
    } break;
    }
    expect_positions(g, "an operation");
}

static void run_schedule(rig *g, uint64_t seed)
{
    g->seed = seed;
    g->d = (dice){ seed };
    loam_memory_clear(g->ctx);
    memset(g->seqs, 0, sizeof g->seqs);
    free_records(g);
    expect_positions(g, "clearing");
    g->large = below(g, 16) == 0;
    for (int i = 0, n = g->large ? 30 : 6 + (int)below(g, 10); i < n; i++) {
        if (below(g, g->large ? 6 : 2)) decode(g);
        else operate(g);
    }
}

/* ---- the families ---- */

static long schedules = 150;
static uint64_t first_seed = 1;

static loam_context *make(loam_model *m, uint32_t n_seq, int variant)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_batch = 128, p.n_seq_max = n_seq, p.n_threads = 1, p.type_k = p.type_v = LOAM_F32;
    if (variant >= 0) p.n_ubatch = variant == 0 ? 16 : variant == 1 ? 5 : 48, p.n_threads = variant == 1 ? 2 : 1;
    if (variant >= 0) p.n_rs_seq = (uint32_t)variant * 2, p.window_full = variant != 1, p.unified = variant != 2;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static void family(const char *name)
{
    static rig g;
    char rel[64], path[512];
    loam_error err;
    snprintf(rel, sizeof rel, "arch/%s.gguf", name);
    golden_path(path, rel);
    memset(&g, 0, sizeof g);
    g.name = name;
    if (loam_model_open(&g.model, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    g.cold = make(g.model, 1, -1);
    long each = (schedules + 14) / 15; /* five families, three variants */
    for (int variant = 0; variant < 3; variant++) {
        g.ctx = make(g.model, N_SEQ, variant);
        g.states = memory_has_states(g.ctx->mem);
        g.limited = variant == 1;
        loam_context_set_observer(g.ctx, watch, &g);
        for (long i = 0; i < each; i++) run_schedule(&g, first_seed + (uint64_t)i * 3 + (uint64_t)variant);
        free_records(&g);
        loam_context_free(g.ctx);
    }
    print_message("%s: seeds %llu .. %llu, %ld decodes (%ld bad, %ld full, %ld stopped, %ld without memory), %ld values checked, worst %.2g, "
                  "%ld sequences from nothing\n", name, (unsigned long long)first_seed, (unsigned long long)first_seed + (uint64_t)each * 3 - 1,
                  g.decodes, g.refused, g.full, g.stopped, g.failed, g.checked, g.worst, g.redone);
    assert_true(g.checked > 0 && !g.wrong);
    if (schedules >= 150) assert_true(g.refused > 0 && g.stopped > 0 && (g.full > 0 || !strcmp(name, "mamba2-dense")) && g.redone > 0);
    loam_context_free(g.cold);
    loam_model_free(g.model);
}

static void dense_rotary(void **state) { (void)state; family("internlm2"); }
static void windowed(void **state) { (void)state; family("gemma3-dense"); }
static void recurrent(void **state) { (void)state; family("mamba2-dense"); }
static void hybrid(void **state) { (void)state; family("lfm2-dense"); }
static void latent(void **state) { (void)state; family("minicpm3"); }

int main(int argc, char **argv)
{
    if (argc > 1) schedules = strtol(argv[1], NULL, 10);
    if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(dense_rotary), cmocka_unit_test(windowed), cmocka_unit_test(recurrent),
                                        cmocka_unit_test(hybrid), cmocka_unit_test(latent) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
