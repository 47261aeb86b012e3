/* stream.c - a stream of ids as a stream of valid UTF-8.
 *
 *   pieces ──► waiting bytes (at most 3) ──► complete characters ──► the caller
 *
 * Bytes that can still become a character wait; bytes that cannot give U+FFFD, one for each maximal part of a character, as
 * Unicode recommends. */
#include "tokenizer/tokenizer.h"

struct loam_detokenizer {
    const loam_tokenizer *t;
    bool special, from_start;
    bool at_start; /* nothing was taken yet, and a leading space is to be dropped */
    char wait[4];  /* the beginning of a character */
    size_t n_wait;
    text_buffer piece; /* wait and the new piece */
    text_buffer out;
};

loam_status loam_detokenizer_new(loam_detokenizer **out, const loam_tokenizer *t, unsigned flags, loam_error *err)
{
    *out = NULL;
    if (flags & ~(LOAM_DECODE_SPECIAL | LOAM_DECODE_FROM_START))
        return fail(err, LOAM_E_ARG, "unknown decoding flags %#x", flags);
    loam_detokenizer *d = mem_zalloc(sizeof *d);
    /* finish() must not fail: it needs room for one U+FFFD */
    if (!d || !mem_grow(&d->out.data, &d->out.cap, 64, 1, 64)) {
        mem_free(d);
        return fail_nomem(err, "a detokenizer", sizeof *d);
    }
    d->t = t;
    d->special = flags & LOAM_DECODE_SPECIAL;
    d->from_start = d->at_start = flags & LOAM_DECODE_FROM_START && t->flags.space_prefix;
    *out = d;
    return LOAM_OK;
}

/* How many of the n > 0 bytes at s are one character, or the longest beginning of one: *state tells which. */
typedef enum utf8_state { UTF8_WHOLE, UTF8_PART, UTF8_BROKEN } utf8_state;

static size_t next_character(const char *s, size_t n, utf8_state *state)
{
    unsigned char lead = (unsigned char)s[0];
    size_t len = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    *state = len ? UTF8_WHOLE : UTF8_BROKEN;
    if (len < 2) return 1;
    for (size_t i = 1; i < len; i++) {
        unsigned char low = 0x80, high = 0xBF; /* of the second byte: no overlong forms, surrogates, or values too large */
        if (i == n) {
            *state = UTF8_PART;
            return n;
        }
        if (i == 1 && lead == 0xE0) low = 0xA0;
        if (i == 1 && lead == 0xED) high = 0x9F;
        if (i == 1 && lead == 0xF0) low = 0x90;
        if (i == 1 && lead == 0xF4) high = 0x8F;
        if ((unsigned char)s[i] < low || (unsigned char)s[i] > high) {
            *state = UTF8_BROKEN;
            return i;
        }
    }
    return len;
}

loam_status loam_detokenizer_push(loam_detokenizer *d, loam_token id, const char **text, size_t *len, loam_error *err)
{
    *text = d->out.data;
    *len = 0;
    loam_status st = check_token(d->t, id, err);
    if (st != LOAM_OK) return st;
    text_buffer *p = &d->piece;
    p->len = 0;
    if (!buffer_add(p, d->wait, d->n_wait) || !piece_add(d->t, id, d->special, p) ||
        !mem_grow(&d->out.data, &d->out.cap, 3 * p->len + 3, 1, SIZE_MAX / 4))
        return fail_nomem(err, "decoded text", p->len);
    size_t at = d->at_start && p->len && p->data[0] == ' ';
    d->at_start = false;
    d->n_wait = d->out.len = 0;
    while (at < p->len) {
        utf8_state state;
        size_t n = next_character(p->data + at, p->len - at, &state);
        if (state == UTF8_PART) {
            memcpy(d->wait, p->data + at, n);
            d->n_wait = n;
        } else {
            buffer_add(&d->out, state == UTF8_WHOLE ? p->data + at : "\xEF\xBF\xBD", state == UTF8_WHOLE ? n : 3);
        }
        at += n;
    }
    *text = d->out.data;
    *len = d->out.len;
    return LOAM_OK;
}

void loam_detokenizer_finish(loam_detokenizer *d, const char **text, size_t *len)
{
    d->out.len = 0;
    if (d->n_wait) buffer_add(&d->out, "\xEF\xBF\xBD", 3);
    d->n_wait = 0;
    d->at_start = d->from_start;
    *text = d->out.data;
    *len = d->out.len;
}

void loam_detokenizer_free(loam_detokenizer *d)
{
    if (!d) return;
    mem_free(d->piece.data);
    mem_free(d->out.data);
    mem_free(d);
}
