/* loam/context.h - running a model: sequences, batches, the cache and its state, outputs.
 *
 * A context belongs to one thread at a time; only loam_abort_fn is called from inside a running decode, and may look at
 * what other threads set. Several contexts may share one model.
 *
 *     loam_context_params p = loam_context_defaults();
 *     p.n_ctx = 4096;
 *     loam_context_new(&ctx, model, &p, &err);
 *     loam_batch batch = { .n_tokens = n, .token = ids };      // sequence 0, positions continue, last token's logits
 *     if (loam_decode(ctx, &batch, &err) == 0) next = argmax(loam_logits(ctx, -1));
 */
#ifndef LOAM_CONTEXT_H
#define LOAM_CONTEXT_H

#include <stdbool.h>

#include "loam/model.h"
#include "loam/pool.h"
#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_context loam_context;

typedef struct loam_node loam_node; /* an operation of a decode, see below */
/* First called with ask = true for each operation: true to be shown its result. Then with ask = false and the data; false
 * stops the decode, which returns 2. It is called by the thread that called loam_decode while the others wait. */
typedef bool (*loam_observe_fn)(void *user, const loam_node *node, bool ask);

/* Which tokens a token sees. */
typedef enum loam_attention {
    LOAM_ATTENTION_MODEL = -1,     /* what the model was made for */
    LOAM_ATTENTION_CAUSAL = 0,     /* those before it and itself */
    LOAM_ATTENTION_NON_CAUSAL = 1  /* also those after it in the same batch, which then has at most n_ubatch tokens */
} loam_attention;

typedef enum loam_rope_scaling { LOAM_ROPE_MODEL = -1, LOAM_ROPE_NONE = 0, LOAM_ROPE_LINEAR = 1, LOAM_ROPE_YARN = 2,
                                 LOAM_ROPE_LONGROPE = 3 } loam_rope_scaling;

/* Whether rows of a cache of block types go through a Hadamard transform before they are rounded; queries and results are turned
 * accordingly, so that only the rounding changes. AUTO: where it was measured to help (docs/cache-types.md). */
typedef enum loam_cache_rotation { LOAM_ROTATION_AUTO = 0, LOAM_ROTATION_OFF = 1, LOAM_ROTATION_ON = 2 } loam_cache_rotation;

/* Get it from loam_context_defaults(), then change what you need. */
typedef struct loam_context_params {
    size_t struct_size;
    uint32_t n_ctx;            /* tokens of the cache, all sequences together; default 512, 0 = the model's training context.
                                  Rounded up to a multiple of 256 */
    uint32_t n_batch;          /* most tokens of one loam_decode; default 2048, at most n_ctx where a cache is kept */
    uint32_t n_ubatch;         /* tokens computed at once; default 512, 0 = n_batch. Changes speed and memory, not results */
    uint32_t n_seq_max;        /* sequences, at most 256; default 1, also for 0 */
    bool unified;              /* true (default): sequences share the n_ctx tokens; false: each has n_ctx / n_seq_max */
    int32_t n_threads;         /* for one token at a time; default 0 = CPUs of this process */
    int32_t n_threads_batch;   /* for several tokens; default 0 = n_threads */
    loam_type type_k, type_v;  /* element types of the cache: F32, F16 (default), BF16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0, IQ4_NL */
    bool window_full;          /* true (default): layers with a sliding window keep all tokens; false: only the window, which
                                  saves memory but limits how far a sequence can be cut back */
    bool embeddings;           /* also give the output embedding of each wanted token; default false */
    int32_t rope_scaling;      /* loam_rope_scaling; default LOAM_ROPE_MODEL. Which of two sets of factors
                                  (LongRoPE) a sequence takes depends on its length: see "sequences" below */
    float rope_freq_base;      /* 0 = model */
    float rope_freq_scale;     /* 0 = model */
    float yarn_ext_factor;     /* negative = model, as all yarn_ fields */
    float yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    uint32_t yarn_orig_ctx;    /* 0 = model */
    loam_abort_fn abort;       /* default NULL */
    void *abort_user;
    loam_pooling pooling;      /* how embeddings of a sequence become one; default LOAM_POOLING_MODEL. RANK needs a classifier */
    uint32_t n_rs_seq;         /* recurrent layers: the end of a sequence can be removed by up to so many tokens; costs a state
                                  per token and sequence. Default 0: only whole sequences can be removed */
    loam_attention attention;  /* default LOAM_ATTENTION_MODEL */
    uint32_t n_outputs_max;    /* rows of outputs that are reserved at once; default 0 = n_seq_max. More are made when needed */
    loam_observe_fn observe;   /* default NULL; see loam_context_set_observer */
    void *observe_user;
    loam_log_fn log;           /* messages about this context; default NULL: those of the library (loam_set_log) */
    void *log_user;
    loam_pool *pool, *pool_batch; /* lent from the start, as by loam_context_attach_pools; default NULL: own threads */
    int32_t cache_rotation;    /* loam_cache_rotation; default LOAM_ROTATION_AUTO */
} loam_context_params;

LOAM_API loam_context_params loam_context_defaults(void);

/* Bytes of a configuration, before anything is taken. */
typedef struct loam_memory_use {
    uint64_t weights;          /* of the model: mapped, shared by its contexts */
    uint64_t cache;            /* keys and values */
    uint64_t buffers;          /* activations and scratch */
    uint64_t outputs;          /* logits and embeddings, n_outputs_max rows or what has been made since */
    uint64_t tables;           /* everything else on the heap: plans, tables of pages, arrays of a batch */
} loam_memory_use;

LOAM_API loam_status loam_context_estimate(const loam_model *model, const loam_context_params *params, loam_memory_use *use,
                                           loam_error *err);

/* On success *out owns the context; the model must outlive it. params NULL: the defaults. Errors: ARG (a field out of
 * range, by name; block types whose block does not divide the head width), NOMEM (with what is needed and what is left).
 * Of a model opened with vocab_only the context has no memory and no buffers: decoding is refused, memory operations do nothing. */
LOAM_API loam_status loam_context_new(loam_context **out, const loam_model *model, const loam_context_params *params,
                                      loam_error *err);
LOAM_API void loam_context_free(loam_context *ctx); /* NULL is fine */

LOAM_API const loam_model *loam_context_model(const loam_context *ctx);
LOAM_API uint32_t loam_context_n_ctx(const loam_context *ctx);
LOAM_API uint32_t loam_context_n_ctx_seq(const loam_context *ctx); /* most tokens of one sequence */
LOAM_API uint32_t loam_context_n_batch(const loam_context *ctx);
LOAM_API uint32_t loam_context_n_ubatch(const loam_context *ctx);
LOAM_API uint32_t loam_context_n_seq_max(const loam_context *ctx);
LOAM_API int32_t loam_context_n_threads(const loam_context *ctx);
LOAM_API int32_t loam_context_n_threads_batch(const loam_context *ctx);
LOAM_API void loam_context_memory_use(const loam_context *ctx, loam_memory_use *use); /* what is really taken */
/* All parameters as they are in force: with every 0 and "model" that could be settled, and what was set since. */
LOAM_API loam_context_params loam_context_settings(const loam_context *ctx);

LOAM_API void loam_context_set_abort(loam_context *ctx, loam_abort_fn fn, void *user);
LOAM_API void loam_context_set_embeddings(loam_context *ctx, bool on);
/* From the next batch on; false: as LOAM_ATTENTION_NON_CAUSAL. What the cache holds stays as it was computed. */
LOAM_API void loam_context_set_causal(loam_context *ctx, bool on);
/* Threads for one token and for several, 0 as in the parameters. Errors: ARG, NOMEM; nothing has changed then. */
LOAM_API loam_status loam_context_set_threads(loam_context *ctx, int32_t n_threads, int32_t n_threads_batch, loam_error *err);
/* Runs on these pools, the second for several tokens (NULL: the first), with at most the context's numbers of threads. They
 * must outlive the context or be taken off. ARG when pool is NULL. */
LOAM_API loam_status loam_context_attach_pools(loam_context *ctx, loam_pool *pool, loam_pool *pool_batch, loam_error *err);
/* Back to own threads. Where none can be started, the caller's thread does all, with a warning in the log. */
LOAM_API void loam_context_detach_pools(loam_context *ctx);
/* Reads every weight once on all threads, so that the first token finds them in memory, and touches the buffers; it changes
 * no sequence and no output. Errors: ABORTED (by the abort callback). */
LOAM_API loam_status loam_context_warm_up(loam_context *ctx, loam_error *err);

/* Tokens to compute. Arrays have n_tokens entries; a NULL array means its default. */
typedef struct loam_batch {
    int32_t n_tokens;
    const int32_t *token;             /* ids; exactly one of token and embd is given */
    const float *embd;                /* [n_tokens][n_embd] */
    const int32_t *pos;               /* default: each sequence continues after its last position */
    const int32_t *n_seq_id;          /* sequences of each token; default: 1 */
    const int32_t *const *seq_id;     /* their ids; default: sequence 0 */
    const int8_t *logits;             /* nonzero: outputs of this token are wanted; default: of the last one only */
} loam_batch;

/* How the last batch was spread over the devices of the model (loam_model_params.devices). */
#define LOAM_MAX_DEVICES 16
typedef struct loam_context_split {
    int32_t n_devices;
    int32_t n_splits;          /* runs of operations of one device */
    int32_t n_copies;          /* values copied from device to device */
    uint64_t buffers[LOAM_MAX_DEVICES]; /* bytes of intermediate results on each */
} loam_context_split;
LOAM_API bool loam_context_splits(const loam_context *ctx, loam_context_split *out); /* false before the first batch */

/* Computes the batch and adds it to the cache. All or nothing: whatever is returned but 0, every sequence is as before.
 *    0  done
 *    1  the cache has no room for the batch: make it smaller, or remove tokens
 *    2  the abort callback stopped it
 *   -1  the batch is invalid; err names the token and field
 *   -2  out of memory
 *   -3  the computation failed */
LOAM_API int loam_decode(loam_context *ctx, const loam_batch *batch, loam_error *err);

/* Runs the encoder over the batch: every token sees all those of its first sequence in the batch, and every one is an output.
 * Results as loam_decode, and -1 also where the model has no encoder (loam_model_has_encoder) or the batch has more than
 * n_ubatch tokens. Positions begin at 0 for each sequence unless given.
 *   encoders and decoders without causal mask  nothing is kept; loam_decode does the same
 *   encoder-decoder models                     the rows are kept for the batch's sequences in place of their former ones;
 *                                              loam_decode of a sequence reads them, and is refused where there are none */
LOAM_API int loam_encode(loam_context *ctx, const loam_batch *batch, loam_error *err);

/* Logits [n_vocab] of a token of the last batch, by batch index; negative counts back from the last token whose outputs
 * were wanted (-1 is that one). NULL when that token's outputs were not wanted or nothing was decoded. The memory belongs
 * to the context and is valid until the next decode. */
LOAM_API const float *loam_logits(const loam_context *ctx, int32_t i);
/* The same for output embeddings [n_embd] (after the final norm); NULL also when embeddings are off. */
LOAM_API const float *loam_embeddings(const loam_context *ctx, int32_t i);
/* With embeddings on and pooling: the one row of a sequence of the last batch, loam_n_pooled() values (n_embd, or the scores
 * of RANK); every token of the batch then counts, whatever its flag. Nothing is normalised. NULL for a sequence that was not
 * in the batch, and without pooling. */
LOAM_API const float *loam_embeddings_seq(const loam_context *ctx, int32_t seq);
LOAM_API int32_t loam_n_pooled(const loam_context *ctx);   /* 0: no pooling */
LOAM_API loam_pooling loam_context_pooling(const loam_context *ctx); /* what is in force */
LOAM_API int32_t loam_n_outputs(const loam_context *ctx);

/* Models with two sets of rotary factors (LongRoPE): a sequence takes the short ones while it ends within the original context
 * (of the model, or yarn_orig_ctx), the long ones beyond; n_ctx has no part in it. A sequence never mixes them: a batch that
 * takes it across computes all of its cached tokens again with the other set, at the positions that they have, as part of the
 * same transaction (0, or everything is as before), and so does the first batch after the end of a long sequence was removed.
 * Copies (loam_memory_seq_cp) keep the set of their source until they are decoded further; copying a part beside tokens of the
 * other set is UNSUPPORTED. loam_memory_seq_add turns a key by the set that it was made with; states keep sets and ids.
 * loam_decode answers -3 with the sequence named where tokens cannot be computed again: they came as embd, a limited window has
 * given them back, two of them have one position (loam_memory_seq_div), an adapter has invocation ids, there is no causal mask,
 * the model has recurrent states; and for a token of two sequences that take different sets. Control vectors and strengths of
 * adapters are those of that moment. The cache of such a model has room for one original context more than n_ctx. */

/* ---- sequences in the cache. Ranges are half-open [p0, p1); negative bounds are open ends. ---- */

/* Removes positions of a sequence; seq -1: of every sequence. False for a sequence id out of range, and, with nothing changed,
 *   - where the range cuts a recurrent state which cannot be taken back so far (n_rs_seq); for seq -1 where there are states
 *   - where layers whose cache is limited to a window would lack tokens that the next token sees: the end was cut too far back
 *   - where a page that other sequences share would have to be copied and the cache has none left */
LOAM_API bool loam_memory_seq_rm(loam_context *ctx, int32_t seq, int32_t p0, int32_t p1);
/* dst gets the tokens of src in the range in place of its own there: pages are shared, nothing is copied until one of them
 * changes. A recurrent state is copied whatever the range. UNSUPPORTED where a limited window of dst would lack tokens. */
LOAM_API loam_status loam_memory_seq_cp(loam_context *ctx, int32_t src, int32_t dst, int32_t p0, int32_t p1, loam_error *err);
/* Removes every other sequence. */
LOAM_API bool loam_memory_seq_keep(loam_context *ctx, int32_t seq);
/* Adds delta to the positions in the range; the keys are turned to their new positions before the next decode. A token has one
 * position for all sequences that share it. Tokens whose position becomes negative are removed. UNSUPPORTED where
 * loam_memory_can_shift() is false, or a limited window would lack tokens; NOMEM. */
LOAM_API loam_status loam_memory_seq_add(loam_context *ctx, int32_t seq, int32_t p0, int32_t p1, int32_t delta, loam_error *err);
/* Divides the positions in the range by d > 0, rounding down. */
LOAM_API loam_status loam_memory_seq_div(loam_context *ctx, int32_t seq, int32_t p0, int32_t p1, int32_t d, loam_error *err);
LOAM_API int32_t loam_memory_seq_pos_min(const loam_context *ctx, int32_t seq); /* -1: empty */
LOAM_API int32_t loam_memory_seq_pos_max(const loam_context *ctx, int32_t seq); /* -1: empty */
LOAM_API void loam_memory_clear(loam_context *ctx);
LOAM_API bool loam_memory_can_shift(const loam_context *ctx);
LOAM_API int64_t loam_memory_n_tokens(const loam_context *ctx); /* in the cache; those that sequences got from each other
                                                                     once at most; 0 where it has no pages */

/* ---- the state of the sequences, in memory, in files, through a callback. Versioned, little-endian, with a checksum, bound
 * to the model, to the adapters and control vectors that are on, and to the types of the cache; a context of another size takes it where it fits. What is decoded after a
 * restore has the same bits. seq -1: all sequences; else that one, which a state of one sequence also replaces, whatever
 * its number was. Errors of loading: FORMAT (damaged, cut off, foreign), ARG (another model or cache, wrong kind), FULL (no
 * room), UNSUPPORTED (a newer version); the context is then as it was. ---- */

/* Receives the state in order; false stops. */
typedef bool (*loam_write_fn)(void *user, const void *data, size_t n);
typedef struct loam_writer {
    loam_write_fn write;
    void *user;
} loam_writer;

/* Token ids stored beside a state: the prompt that it is the state of. */
typedef struct loam_state_tokens {
    int32_t *ids;                  /* caller's array */
    size_t cap;                    /* its room */
    size_t n;                      /* out: ids stored */
} loam_state_tokens;

LOAM_API size_t loam_state_size(loam_context *ctx, int32_t seq);   /* bytes without tokens; 0: seq is out of range, or no memory */
LOAM_API loam_status loam_state_save(loam_context *ctx, int32_t seq, void *data, size_t size, size_t *written, loam_error *err);
LOAM_API loam_status loam_state_load(loam_context *ctx, int32_t seq, const void *data, size_t size, loam_error *err);
LOAM_API loam_status loam_state_write(loam_context *ctx, int32_t seq, const int32_t *tokens, size_t n_tokens,
                                      const loam_writer *writer, loam_error *err);
/* The file appears whole or not at all. tokens may be NULL. */
LOAM_API loam_status loam_state_save_file(loam_context *ctx, int32_t seq, const char *path, const int32_t *tokens, size_t n_tokens,
                                          loam_error *err);
LOAM_API loam_status loam_state_load_file(loam_context *ctx, int32_t seq, const char *path, loam_state_tokens *tokens,
                                          loam_error *err);

/* ---- looking into a decode: an observer is shown every operation, in order ---- */

struct loam_node {
    const char *op;                /* operation ("MATMUL"); "WEIGHT", "INPUT", "VIEW" for sources */
    const char *name;              /* of the weight or of the value; static or of the model */
    int32_t layer;                 /* block, -1 outside */
    int32_t id;                    /* the same for the same value within a decode */
    loam_type type;
    int64_t ne[4];                 /* extents: width, heads or experts, tokens; weights as in the file */
    int64_t nb[4];                 /* strides in bytes */
    const void *data;              /* valid during the call only; NULL when asking */
    uint64_t ns;                   /* time of the operation on all threads; 0 when asking */
    int32_t n_src;
    const loam_node *const *src;   /* inputs, without their own inputs; an elementwise result may have taken the place of one */
};

/* NULL takes it off. An observed decode meets after every operation: slower, with the same bits. */
LOAM_API void loam_context_set_observer(loam_context *ctx, loam_observe_fn fn, void *user);

/* ---- times, in nanoseconds since the last reset. A batch in which no sequence has more than one token is generation, any
 * other is prompt; both count when they are done, so any number of them may follow each other. ---- */
typedef struct loam_perf {
    uint64_t load_ns;              /* of the context: construction; a reset leaves it */
    uint64_t prompt_ns, gen_ns;
    int64_t n_prompt, n_gen;       /* tokens */
    int64_t n_prompt_batches, n_gen_batches;
    int64_t n_plans;               /* plans that had to be made; every other step used a kept one */
    uint64_t start_ns;             /* of the monotonic clock: construction, or the last reset */
    uint64_t cache_bytes;          /* keys and values that attention has read, of all batches: a page that sequences share is
                                    * read once for all of them */
} loam_perf;
LOAM_API loam_perf loam_context_perf(const loam_context *ctx);
LOAM_API void loam_context_perf_reset(loam_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
