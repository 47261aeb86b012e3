/* loam/model.h - opening a model file. A model is immutable: any number of contexts and threads may share it. */
#ifndef LOAM_MODEL_H
#define LOAM_MODEL_H

#include <stdbool.h>

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_model loam_model;
typedef struct loam_tokenizer loam_tokenizer;

/* How the rows of a sequence become one. */
typedef enum loam_pooling {
    LOAM_POOLING_MODEL = -1,  /* what the model's file says, else none */
    LOAM_POOLING_NONE = 0,
    LOAM_POOLING_MEAN = 1,
    LOAM_POOLING_CLS = 2,     /* the row of the smallest position */
    LOAM_POOLING_LAST = 3,    /* the row of the largest position */
    LOAM_POOLING_RANK = 4     /* scores of the model's classifier */
} loam_pooling;

/* How a model is spread over several devices. */
typedef enum loam_split_mode {
    LOAM_SPLIT_LAYER = 0,  /* each device has whole blocks */
    LOAM_SPLIT_ROW = 1     /* each device has rows of every matrix of the blocks */
} loam_split_mode;
struct loam_devices; /* loam/device.h */

/* Options of loam_model_open. Get them from loam_model_defaults(), then change what you need. */
typedef struct loam_model_params {
    size_t struct_size;   /* set by loam_model_defaults() */
    bool use_mmap;        /* map the file (default true); false reads it into memory: immune to truncation by others */
    bool use_mlock;       /* ask the system to keep the weights in memory (default false); a refusal is only logged */
    bool vocab_only;      /* only metadata and tokenizer: no weights are bound (default false) */
    bool check_tensors;   /* read all weights once and refuse non-finite scales and values (default false) */
    /* Several devices: results are the same bits on CPU devices. The set must outlive the model and its contexts. */
    struct loam_devices *devices; /* NULL (default): the CPU as one */
    int32_t n_gpu_layers; /* so many of the last blocks go to the devices behind the first; -1 (default): all devices share all blocks */
    int32_t split_mode;   /* loam_split_mode; default LAYER */
    const float *tensor_split; /* share of each CPU device, in any unit; NULL (default): equal */
    const char *const *overrides; /* "REGEX=DEVICE": tensors whose names match go there, before all other rules; NULL (default) */
    size_t n_overrides;
} loam_model_params;

LOAM_API loam_model_params loam_model_defaults(void);

/* Opens a GGUF file (for a split file: its first part) or a Hugging Face folder. On success *out owns the model; on failure *out is NULL.
 * params NULL: the defaults. Errors: IO (file), FORMAT (malformed, a missing or misshapen tensor, each by name),
 * UNSUPPORTED (an architecture or feature that Loam does not have yet, by name), NOMEM. */
LOAM_API loam_status loam_model_open(loam_model **out, const char *path, const loam_model_params *params, loam_error *err);

/* Frees the model; NULL is fine. No context may be using it. */
LOAM_API void loam_model_free(loam_model *model);

/* The tokenizer of the model, owned by it; NULL when the file has no vocabulary that text can be turned into
 * (tokenizer.ggml.model "test" or "none"). */
LOAM_API const loam_tokenizer *loam_model_tokenizer(const loam_model *model);

/* Facts. Widths in values, sizes in bytes. */
LOAM_API const char *loam_model_architecture(const loam_model *model);  /* "llama", "qwen3", ... */
LOAM_API const char *loam_model_description(const loam_model *model);   /* "llama 1.24 B Q4_K_M": for people */
LOAM_API int32_t loam_model_n_vocab(const loam_model *model);
LOAM_API int32_t loam_model_n_ctx_train(const loam_model *model);
LOAM_API int32_t loam_model_n_embd(const loam_model *model);
LOAM_API int32_t loam_model_n_layer(const loam_model *model);
LOAM_API int32_t loam_model_n_head(const loam_model *model);
LOAM_API int32_t loam_model_n_head_kv(const loam_model *model);
LOAM_API uint64_t loam_model_n_params(const loam_model *model);         /* values of all tensors */
LOAM_API uint64_t loam_model_bytes(const loam_model *model);            /* bytes of all tensors */
LOAM_API bool loam_model_is_causal(const loam_model *model);
LOAM_API bool loam_model_has_encoder(const loam_model *model);          /* loam_encode works */
LOAM_API bool loam_model_has_decoder(const loam_model *model);          /* there are logits; false: embeddings only */
/* The token that starts the decoder of an encoder-decoder model; -1: the model has none. */
LOAM_API int32_t loam_model_decoder_start(const loam_model *model);
LOAM_API loam_pooling loam_model_pooling(const loam_model *model);      /* the file's; NONE where it says nothing */
LOAM_API int32_t loam_model_n_labels(const loam_model *model);          /* scores of LOAM_POOLING_RANK; 0: no classifier */
/* Name of label i of the classifier, *len bytes, not terminated; NULL where the file names none. */
LOAM_API const char *loam_model_label(const loam_model *model, int32_t i, size_t *len);

/* A metadata value of the file as text ("general.name"); false where absent or an array. Writes at most `size` bytes
 * with terminator; *len (may be NULL) receives the full length. */
LOAM_API bool loam_model_meta(const loam_model *model, const char *key, char *text, size_t size, size_t *len);

#ifdef __cplusplus
}
#endif
#endif
