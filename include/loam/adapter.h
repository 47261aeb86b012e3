/* loam/adapter.h - low-rank adapters (LoRA) and control vectors: changes to a model that a context switches on and off. */
#ifndef LOAM_ADAPTER_H
#define LOAM_ADAPTER_H

#include "loam/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_adapter loam_adapter;

/* Opens a LoRA adapter for this model, which must outlive it: a GGUF file, whose data stays mapped, or a folder of PEFT
 * (adapter_config.json, adapter_model.safetensors). Errors: IO; FORMAT (not an
 * adapter, another architecture, a missing half, a tensor that the model does not have, a shape that does not fit: each by
 * name); UNSUPPORTED (another kind of adapter); NOMEM. On failure *out is NULL. */
LOAM_API loam_status loam_adapter_open(loam_adapter **out, const loam_model *model, const char *path, loam_error *err);
LOAM_API void loam_adapter_free(loam_adapter *adapter); /* no context may have it set; NULL is fine */

LOAM_API int32_t loam_adapter_n_weights(const loam_adapter *adapter);
LOAM_API float loam_adapter_alpha(const loam_adapter *adapter); /* 0: none in the file */
/* Ids from which on the adapter is active ("activated" LoRA); n 0: always active. */
LOAM_API const int32_t *loam_adapter_invocation(const loam_adapter *adapter, size_t *n);

#define LOAM_MAX_ADAPTERS 16

/* From the next decode on exactly these adapters are added, each with its strength (1 = as trained; the file's alpha / rank
 * is applied on top), for every sequence; n 0: none. What the cache holds stays as it was computed. */
LOAM_API loam_status loam_context_set_adapters(loam_context *ctx, loam_adapter *const *adapters, const float *strengths, size_t n,
                                               loam_error *err);
/* Other strengths for the tokens of one sequence, in the order of loam_context_set_adapters; 0 switches one off. */
LOAM_API loam_status loam_context_set_seq_adapters(loam_context *ctx, int32_t seq, const float *strengths, size_t n, loam_error *err);

/* Control vectors: n_embd floats for each block from block 1 on (len = n_embd * (n_layer - 1)); those of blocks first .. last
 * (both included) are added to the output of the block. data NULL: none. */
LOAM_API loam_status loam_context_set_control(loam_context *ctx, const float *data, size_t len, int32_t n_embd, int32_t first,
                                              int32_t last, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
