/* data_text.c - a document becomes ids, each with a mark whether it is to be learned.
 *
 *   begin token (where the vocabulary adds one) | segments, each encoded by itself | end tokens where segments ask for them
 *
 * Control tokens are recognized only in what the template writes, never in the text of a document. */
#include <stdio.h>
#include <string.h>

#include "train/data.h"

bool data_has_chat_tokens(const loam_tokenizer *t)
{
    return loam_tokenizer_find(t, "<|im_start|>", 12) != LOAM_TOKEN_NULL && loam_tokenizer_find(t, "<|im_end|>", 10) != LOAM_TOKEN_NULL;
}

void data_doc_name(const loam_data *d, int64_t doc, char *out, size_t size)
{
    const data_doc *x = &d->docs[doc];
    const data_file *f = &d->files[x->file];
    uint64_t line = 1;
    for (uint64_t i = 0; i < x->at; i++) line += f->file.data[i] == '\n';
    snprintf(out, size, "%.200s: line %llu", f->path, (unsigned long long)line);
}

static loam_status push(data_ids *s, const loam_token *ids, size_t n, bool counts, loam_error *err)
{
    if (!mem_grow(&s->ids, &s->cap, s->n + n, sizeof *s->ids, SIZE_MAX / 16) || !mem_grow(&s->mask, &s->mask_cap, s->n + n, 1, SIZE_MAX / 16))
        return fail_nomem(err, "the tokens of a document", (s->n + n) * 5);
    if (n) memcpy(s->ids + s->n, ids, n * sizeof *ids);
    memset(s->mask + s->n, counts, n);
    s->n += n;
    return LOAM_OK;
}

static loam_status encode_segment(loam_data *d, const data_segment *g, loam_error *err)
{
    loam_token *ids;
    size_t n;
    loam_status s = loam_tokenizer_encode_all(d->tokenizer, g->text, g->len, g->special ? LOAM_ENCODE_PARSE_SPECIAL : 0, &ids, &n, err);
    if (s != LOAM_OK) return s;
    s = push(&d->scratch, ids, n, g->counts, err);
    loam_tokens_free(ids);
    loam_token end = loam_tokenizer_special(d->tokenizer, LOAM_TOKEN_EOS);
    if (s == LOAM_OK && g->ends && end != LOAM_TOKEN_NULL) s = push(&d->scratch, &end, 1, g->counts, err);
    return s;
}

loam_status data_encode(loam_data *d, int64_t doc, loam_error *err)
{
    const data_doc *x = &d->docs[doc];
    const data_file *f = &d->files[x->file];
    const char *text = (const char *)f->file.data + x->at;
    loam_token begin = loam_tokenizer_special(d->tokenizer, LOAM_TOKEN_BOS);
    loam_status s = LOAM_OK;
    d->scratch.n = 0;
    if (loam_tokenizer_adds_bos(d->tokenizer) && begin != LOAM_TOKEN_NULL) s = push(&d->scratch, &begin, 1, false, err);
    if (s == LOAM_OK && !f->json)
        return encode_segment(d, &(data_segment){ .text = (char *)text, .len = x->len, .counts = true, .ends = true }, err);
    data_segments parts = { 0 };
    if (s == LOAM_OK) s = data_json_segments(text, x->len, data_has_chat_tokens(d->tokenizer), &parts, err);
    for (size_t i = 0; i < parts.n && s == LOAM_OK; i++) s = encode_segment(d, &parts.items[i], err);
    data_segments_free(&parts);
    return s;
}
