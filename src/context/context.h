/* context.h - the conductor: owns a memory, kept plans, buffers, outputs and threads. */
#ifndef LOAM_CONTEXT_CONTEXT_H
#define LOAM_CONTEXT_CONTEXT_H

#include "base/limits.h"
#include "base/pool.h"
#include "device/sched.h"
#include "graph/plan.h"
#include "loam/context.h"
#include "memory/memory.h"
#include "model/model.h"

#define PLANS_KEPT 8

typedef enum plan_kind { PLAN_DECODE, PLAN_ENCODE, PLAN_POOLED /* what comes behind pooling: n_tokens rows */ } plan_kind;

/* One plan per shape class: how many tokens, how many outputs, which outputs. */
typedef struct plan_shape {
    plan_kind kind;
    int n_tokens, n_outputs;
    bool embd_input;
    bool watched;                  /* products are shown to a watcher */
    bool far;                      /* with the long rotary factors */
} plan_shape;

typedef struct kept_plan {
    plan_shape shape;
    bool want_embd, causal;
    uint64_t used;                 /* when it ran last: the oldest makes room */
    plan *p;
    sched_plan *spread;            /* the same on several devices, with memory there; else NULL */
} kept_plan;

/* A batch with every default filled in. Arrays have room for n_batch tokens. */
typedef struct full_batch {
    bool encode;
    int n_tokens, n_outputs;
    const int32_t *token;
    const float *embd;
    int32_t *pos;
    int32_t *first_seq;            /* [n_tokens + 1] into seqs */
    int32_t *seqs;
    size_t cap_seqs;
    bool *output;
} full_batch;

/* Tokens of the cache that the batch under way computes again with the other set of rotary factors; see replay.c. Arrays have
 * room for cap tokens. */
typedef struct replay {
    memory_cached *cached;
    int32_t *id, *pos, *seq;
    int n, cap;
    bool far[LIMIT_SEQUENCES];     /* of sequences of the batch: they take the long factors */
    bool again[LIMIT_SEQUENCES];   /* all of the sequence is computed again */
    float *strengths;              /* [n_ubatch][LOAM_MAX_ADAPTERS] */
} replay;

/* As plan_run.observe. */
typedef bool (*context_watch_fn)(void *user, const value *v, worker *w, bool ask, uint64_t ns);

struct loam_context {
    const loam_model *model;
    loam_context_params p;
    int64_t n_ctx_seq;
    memory *mem;
    memory_layer *layers;
    bool running;                  /* inside a decode: callbacks must not come back in */
    pool *threads;                 /* own ones; NULL while pools are lent */
    int n_most;                    /* threads that plans and buffers are made for */
    const kernels *k;
    kept_plan plans[PLANS_KEPT];
    uint64_t charged[LIMIT_DEVICES]; /* bytes of the cache on each device */
    uint64_t clock;
    uint8_t *arena, *scratch, *shared;
    uint64_t arena_bytes;
    size_t scratch_stride, shared_bytes;
    float *logits, *embeddings;    /* rows of the last batch */
    size_t cap_outputs;
    int n_outputs;
    int32_t *row_of;               /* [n_batch] output row of each batch index, -1: none */
    int last_n_tokens;
    bool have_logits, have_embeddings;
    loam_pooling pooling;          /* in force: never MODEL */
    float *rows, *pooled;          /* [n_seq_max] rows of n_embd; results of n_pooled values */
    int n_pooled, n_rows;          /* n_rows: sequences of the last batch, 0 without pooling */
    int32_t *row_of_seq;           /* [n_seq_max] -1: not in the last batch */
    int32_t *out_rows;             /* [n_ubatch] */
    full_batch batch;
    int64_t n_short;               /* longest sequence that takes the short rotary factors; INT64_MAX: there is one set */
    replay replay;                 /* empty where there is one set */
    loam_perf perf;
    context_watch_fn watch;        /* takes the place of the observer */
    void *watch_user;
    loam_adapter *adapters[LOAM_MAX_ADAPTERS];
    graph_adapter adapter_pairs[LOAM_MAX_ADAPTERS];
    int n_adapters;
    float *strengths;              /* [n_seq_max][LOAM_MAX_ADAPTERS] */
    float *token_strengths;        /* [n_batch][n_adapters] of the batch */
    bool invoked[LOAM_MAX_ADAPTERS][LIMIT_SEQUENCES]; /* activated adapters that have met their invocation ids */
    weight *control;               /* [n_layer] or NULL */
    float *control_data;
};

/* Fills in the defaults and checks every field of every token; changes nothing else. LOAM_E_ARG with the token and field. */
loam_status batch_fill(loam_context *ctx, const loam_batch *in, bool encode, loam_error *err);

/* Of a model that was opened for its vocabulary: no layers, no buffers, nothing to decode. */
static inline bool context_is_empty(const loam_context *ctx) { return model_vocab_only(ctx->model); }

/* settings.c: ctx->p and n_ctx_seq from what the caller gave; a message to the log of the context. */
loam_status context_settle(loam_context *ctx, const loam_context_params *given, loam_error *err);
void context_log(const loam_context_params *p, loam_log_level level, const char *fmt, ...) LOAM_PRINTF(3, 4);

/* threads.c: those of a run of n_tokens; own threads where none are lent; buffers and own threads for at least n. */
pool *context_pool(const loam_context *ctx, int n_tokens);
loam_status context_start_threads(loam_context *ctx, loam_error *err);
loam_status context_fit_threads(loam_context *ctx, int n, loam_error *err);

/* Forgets all kept plans: they were made for other adapters, threads or weights. */
void context_drop_plans(loam_context *ctx);
/* Room for n output rows. */
loam_status context_fit_outputs(loam_context *ctx, size_t n, bool logits, loam_error *err);

/* The plan of a shape, made now if it is not kept; buffers are large enough for it afterwards. */
loam_status context_plan(loam_context *ctx, plan_shape s, plan **out, loam_error *err);
/* A run of p with the context's buffers and threads, for n tokens. */
plan_run context_run(loam_context *ctx, plan *p, int n);
/* devices.c: p on the devices of the model, with memory there; the cache's bytes are counted on the devices of its blocks. */
loam_status context_spread(loam_context *ctx, plan *p, sched_plan **out, loam_error *err);
loam_status context_charge(loam_context *ctx, uint64_t cache_bytes, loam_error *err);
void context_refund(loam_context *ctx);
/* Runs it, on whatever devices the model is. */
loam_status context_execute(loam_context *ctx, plan_run *run);

/* pool.c: settles the kind when the context is made; room for results; one row per sequence of the batch from its embeddings. */
loam_status pooling_settle(loam_context *ctx, loam_error *err);
bool pooling_on(const loam_context *ctx);
loam_status pooling_fit(loam_context *ctx, loam_error *err);
loam_status pooling_run(loam_context *ctx, loam_error *err);

/* Turns the keys of moved tokens to their new positions. */
loam_status context_apply_shifts(loam_context *ctx, loam_error *err);

/* Shows every product of the decodes from now on to fn (NULL: to nobody), with its input in floats: of a product v that is
 * v->src[1], or v->src[1]->src[0] where src[1] is an ENCODE. All rows go through all blocks, whatever outputs are wanted. */
void context_set_watch(loam_context *ctx, context_watch_fn fn, void *user);

/* Shows a step to the observer; plan_run.observe of a context that has one. */
bool context_observe(void *ctx, const value *v, worker *w, bool ask, uint64_t ns);

/* Of the model with the adapters and control vectors that are on for a sequence, -1: for all: what a state belongs to. */
uint64_t context_fingerprint(const loam_context *ctx, int32_t seq);

/* replay.c: room, made with the context; which factors each sequence of the filled batch takes, and what is to be computed again
 * (UNSUPPORTED where it cannot be, FULL); adds those tokens to the open batch of the memory; strengths of adapters for some. */
loam_status replay_new(loam_context *ctx, loam_error *err);
void replay_free(loam_context *ctx);
loam_status replay_settle(loam_context *ctx, loam_error *err);
loam_status replay_add(loam_context *ctx);
const float *replay_strengths(loam_context *ctx, int first, int n);
int64_t replay_cap(const loam_context *ctx);   /* tokens that one batch can compute again */
int64_t replay_room(const loam_context *ctx);  /* places for them beside n_ctx */
uint64_t replay_bytes(const loam_context *ctx);
static inline bool replay_can(const loam_context *ctx) { return ctx->n_short != INT64_MAX; }

/* Strength of every adapter for every token of the filled batch. */
void context_fill_strengths(loam_context *ctx);

#endif
