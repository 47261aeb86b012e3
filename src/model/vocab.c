/* vocab.c - the tokenizer that comes with a model's file. */
#include "model/model_impl.h"
#include "tokenizer/tokenizer.h"

static bool is_text(const text_view *t, const char *s) { return t->len == strlen(s) && !memcmp(t->data, s, t->len); }

/* "test" and "none" stand for ids without text. A kind of vocabulary that is not there yet is a warning: ids still work. */
loam_status model_attach_tokenizer(loam_model *m, loam_error *err)
{
    gguf_vocab v;
    loam_error why;
    loam_status s = gguf_vocab_view(&v, m->file, err);
    if (s != LOAM_OK) return s;
    m->n_vocab = (int32_t)v.view.n_tokens;
    bool none = !v.view.n_tokens || is_text(&v.view.model, "test") || is_text(&v.view.model, "none");
    v.view.borrow = true;
    if (!none) s = tokenizer_new(&m->tokenizer, &v.view, &why);
    gguf_vocab_free(&v);
    if (s == LOAM_E_UNSUPPORTED && !m->vocab_only) {
        log_at(LOAM_LOG_WARN, "no tokenizer: %s", why.message);
        return LOAM_OK;
    }
    if (s != LOAM_OK && err) *err = why;
    return s;
}

void model_detach_tokenizer(loam_model *m) { loam_tokenizer_free(m->tokenizer); }
