/* vocab.c - the tokenizer that comes with a model's file. */
#include "model/model_impl.h"

loam_status model_attach_tokenizer(loam_model *m, loam_error *err)
{
    gguf_vocab v;
    loam_status s = gguf_vocab_view(&v, m->file, err);
    if (s != LOAM_OK) return s;
    m->n_vocab = (int32_t)v.view.n_tokens;
    gguf_vocab_free(&v);
    return LOAM_OK;
}

void model_detach_tokenizer(loam_model *m) { m->tokenizer = NULL; }
