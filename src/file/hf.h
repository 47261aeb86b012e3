/* hf.h - Hugging Face folders presented as GGUF directories: what gguf_open does with a folder. See hf_impl.h. */
#ifndef LOAM_FILE_HF_H
#define LOAM_FILE_HF_H

#include "file/gguf.h"

typedef struct hf_weights hf_weights;

/* Fills f, whose path is a folder with config.json and safetensors: keys and tensors as a converted file would have them.
 * Tensors whose bits differ from what is stored have no data yet; hf_fill computes them. */
loam_status hf_open(gguf_file *f, unsigned flags, loam_error *err);

/* Opens an adapter for the model in `base`: a GGUF file, or a folder of PEFT (adapter_config.json, adapter_model.safetensors)
 * presented as one. */
loam_status hf_open_adapter(gguf_file **out, const char *path, const gguf_file *base, loam_error *err);

/* Computes the values of tensor i into out, which has room for its bytes. May be called by several threads. */
loam_status hf_fill(const hf_weights *w, uint32_t i, void *out, loam_error *err);
void hf_weights_free(hf_weights *w); /* NULL is fine */

#endif
