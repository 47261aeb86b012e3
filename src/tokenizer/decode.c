/* decode.c - from ids to text: the piece of one token, whole sequences, and what the vocabulary says about its tokens.
 *
 * Refuses: ids outside the vocabulary, by name; unknown flags. */
#include "tokenizer/tokenizer.h"

#include <stdio.h>

bool buffer_add(text_buffer *b, const char *s, size_t n)
{
    if (n == 0) return true;
    if (!mem_grow(&b->data, &b->cap, b->len + n, 1, SIZE_MAX / 4)) return false;
    memcpy(b->data + b->len, s, n);
    b->len += n;
    return true;
}

loam_status check_token(const loam_tokenizer *t, loam_token id, loam_error *err)
{
    if (id >= 0 && (uint32_t)id < t->n_tokens) return LOAM_OK;
    return fail(err, LOAM_E_ARG, "token %d is outside the vocabulary (0 to %lld)", id, (long long)t->n_tokens - 1);
}

/* Every SPACE_MARK as a space. */
static bool add_unescaped(text_buffer *b, text_view s)
{
    const char *at = s.data, *end = s.data + s.len;
    for (const char *p; (p = memmem(at, (size_t)(end - at), SPACE_MARK, SPACE_MARK_LEN)) != NULL; at = p + SPACE_MARK_LEN)
        if (!buffer_add(b, at, (size_t)(p - at)) || !buffer_add(b, " ", 1)) return false;
    return buffer_add(b, at, (size_t)(end - at));
}

/* The byte alphabet undone; a character outside it is written out with the whole text of the token. */
static bool add_from_alphabet(text_buffer *b, text_view s)
{
    for (size_t i = 0, used; i < s.len; i += used) {
        int byte = cp_to_byte(uni_decode(s.data + i, s.len - i, &used));
        char c = (char)byte;
        if (byte >= 0) {
            if (!buffer_add(b, &c, 1)) return false;
            continue;
        }
        char text[32];
        int n = snprintf(text, sizeof text, "[UNK_BYTE_0x");
        for (size_t k = 0; k < used; k++) n += snprintf(text + n, sizeof text - (size_t)n, "%x", (unsigned char)s.data[i + k]);
        if (!buffer_add(b, text, (size_t)n) || !buffer_add(b, s.data, s.len) || !buffer_add(b, "]", 1)) return false;
    }
    return true;
}

static bool add_number(text_buffer *b, loam_token id)
{
    char text[16];
    return buffer_add(b, text, (size_t)snprintf(text, sizeof text, "%x", (unsigned)id));
}

static bool add_byte(text_buffer *b, text_view text)
{
    int byte = tok_byte_of(text, true);
    char c = (char)byte;
    return byte < 0 || buffer_add(b, &c, 1);
}

bool piece_add(const loam_tokenizer *t, loam_token id, bool special, text_buffer *b)
{
    text_view text = t->texts[id];
    unsigned attr = t->attrs[id];
    if (!special && attr & (LOAM_ATTR_CONTROL | LOAM_ATTR_UNKNOWN)) return true;
    bool as_is = attr & (LOAM_ATTR_CONTROL | LOAM_ATTR_UNKNOWN | LOAM_ATTR_USER);
    switch (t->kind) {
    case LOAM_TOKENIZER_NONE: return true;
    case LOAM_TOKENIZER_TEST: return add_number(b, id);
    case LOAM_TOKENIZER_RWKV: return buffer_add(b, t->word_text[id].data, t->word_text[id].len);
    case LOAM_TOKENIZER_PLAMO2: return attr & LOAM_ATTR_BYTE && !as_is ? add_byte(b, text) : buffer_add(b, text.data, text.len);
    default: break;
    }
    if (as_is) return buffer_add(b, text.data, text.len);
    if (attr & LOAM_ATTR_NORMAL)
        return t->kind == LOAM_TOKENIZER_BPE && !t->flags.escape ? add_from_alphabet(b, text) : add_unescaped(b, text);
    return attr & LOAM_ATTR_BYTE ? add_byte(b, text) : true;
}

/* Hands a finished text to the caller, or tells its length. */
static loam_status give(const text_buffer *b, char *out, size_t cap, size_t *len, loam_error *err)
{
    *len = b->len;
    if (b->len > cap) return fail(err, LOAM_E_FULL, "room for %zu bytes, but the text has %zu", cap, b->len);
    if (b->len) memcpy(out, b->data, b->len);
    return LOAM_OK;
}

loam_status loam_tokenizer_piece(const loam_tokenizer *t, loam_token id, unsigned flags, char *out, size_t cap, size_t *len,
                                 loam_error *err)
{
    *len = 0;
    if (flags & ~LOAM_DECODE_SPECIAL) return fail(err, LOAM_E_ARG, "unknown decoding flags %#x", flags);
    loam_status st = check_token(t, id, err);
    if (st != LOAM_OK) return st;
    text_buffer b = { 0 };
    st = piece_add(t, id, flags & LOAM_DECODE_SPECIAL, &b) ? give(&b, out, cap, len, err)
                                                           : fail_nomem(err, "a token's text", b.len);
    mem_free(b.data);
    return st;
}

/* ---- sequences ---- */

/* The three passes of cleaning; each writes over its own input, which it never overtakes. */
static void clean_marks(text_buffer *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        char next = i + 1 < b->len ? b->data[i + 1] : 0;
        if (b->data[i] == ' ' && (next == '?' || next == '!' || next == '.' || next == ',')) continue;
        b->data[n++] = b->data[i];
    }
    b->len = n;
}

/* " ' " loses both spaces; the second one does not count as a space before the next apostrophe. */
static void clean_apostrophes(text_buffer *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        if (b->len - i >= 3 && memcmp(b->data + i, " ' ", 3) == 0) {
            b->data[n++] = '\'';
            i += 2;
        } else {
            b->data[n++] = b->data[i];
        }
    }
    b->len = n;
}

static void clean_contractions(text_buffer *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        const char *p = b->data + i;
        size_t left = b->len - i;
        bool drop = left >= 3 && p[0] == ' ' && p[1] == '\'' &&
                    (p[2] == 's' || p[2] == 'm' || (left >= 4 && p[3] == 'e' && (p[2] == 'r' || p[2] == 'v')));
        if (!drop) b->data[n++] = *p;
    }
    b->len = n;
}

static loam_status join(const loam_tokenizer *t, const loam_token *ids, size_t n, unsigned flags, text_buffer *b, loam_error *err)
{
    bool drop_space = t->flags.space_prefix;
    if (flags & LOAM_DECODE_REMOVE_SPECIAL) {
        if (t->flags.add_bos && n && ids[0] == t->role[LOAM_TOKEN_BOS]) {
            drop_space = false;
            ids++;
            n--;
        }
        if (t->flags.add_eos && n && ids[n - 1] == t->role[LOAM_TOKEN_EOS]) n--;
    }
    for (size_t i = 0; i < n; i++) {
        loam_status st = check_token(t, ids[i], err);
        if (st != LOAM_OK) return st;
        if (!piece_add(t, ids[i], flags & LOAM_DECODE_SPECIAL, b)) return fail_nomem(err, "decoded text", b->len);
        if (i == 0 && drop_space && b->len && b->data[0] == ' ') memmove(b->data, b->data + 1, --b->len);
    }
    if (t->flags.clean) {
        clean_marks(b);
        clean_apostrophes(b);
        clean_contractions(b);
    }
    return LOAM_OK;
}

loam_status loam_tokenizer_decode(const loam_tokenizer *t, const loam_token *ids, size_t n, unsigned flags, char *out, size_t cap,
                                  size_t *len, loam_error *err)
{
    *len = 0;
    if (flags & ~(LOAM_DECODE_SPECIAL | LOAM_DECODE_REMOVE_SPECIAL))
        return fail(err, LOAM_E_ARG, "unknown decoding flags %#x", flags);
    text_buffer b = { 0 };
    loam_status st = join(t, ids, n, flags, &b, err);
    if (st == LOAM_OK) st = give(&b, out, cap, len, err);
    mem_free(b.data);
    return st;
}

/* ---- what the vocabulary says ---- */

static bool inside(const loam_tokenizer *t, loam_token id) { return id >= 0 && (uint32_t)id < t->n_tokens; }

loam_tokenizer_kind loam_tokenizer_kind_of(const loam_tokenizer *t) { return t->kind; }
int32_t loam_tokenizer_size(const loam_tokenizer *t) { return (int32_t)t->n_tokens; }
bool loam_tokenizer_adds_bos(const loam_tokenizer *t) { return t->flags.add_bos; }
bool loam_tokenizer_adds_eos(const loam_tokenizer *t) { return t->flags.add_eos; }
bool loam_tokenizer_adds_sep(const loam_tokenizer *t) { return t->flags.add_sep; }

loam_token loam_tokenizer_special(const loam_tokenizer *t, loam_token_role role)
{
    return (unsigned)role < LOAM_TOKEN_ROLES ? t->role[role] : LOAM_TOKEN_NULL;
}

unsigned loam_tokenizer_attributes(const loam_tokenizer *t, loam_token id) { return inside(t, id) ? t->attrs[id] : 0; }
bool loam_tokenizer_is_eog(const loam_tokenizer *t, loam_token id) { return loam_tokenizer_attributes(t, id) & LOAM_ATTR_EOG; }
bool loam_tokenizer_is_control(const loam_tokenizer *t, loam_token id)
{
    return loam_tokenizer_attributes(t, id) & LOAM_ATTR_CONTROL;
}
float loam_tokenizer_score(const loam_tokenizer *t, loam_token id) { return inside(t, id) && t->scores ? t->scores[id] : 0; }
loam_token loam_tokenizer_find(const loam_tokenizer *t, const char *text, size_t len) { return tok_find(t, text, len); }

const char *loam_tokenizer_text(const loam_tokenizer *t, loam_token id, size_t *len)
{
    *len = inside(t, id) ? t->texts[id].len : 0;
    return inside(t, id) ? t->texts[id].data : NULL;
}

const loam_token *loam_tokenizer_suppressed(const loam_tokenizer *t, size_t *n)
{
    *n = t->n_suppress;
    return t->n_suppress ? t->suppress : NULL;
}
