/* bpe.c - pair merging by rank: byte-level BPE with its pre-tokenizers, and the dialects that merge raw UTF-8.
 *
 *   fragment ──► glyphs ──► pieces (pre.c) ──► symbols ──► merges (merge.c) ──► ids
 *
 * With the byte alphabet, token texts are stored decoded (load.c), so that pieces are merged as the bytes they are.
 * Merges act on strings: parts and results that are no tokens become further symbols.
 * Refuses: a vocabulary without merges. A merge whose parts are empty, hold a space or lie outside the byte alphabet can never
 * apply and is left out. */
#include "tokenizer/tokenizer.h"

/* The symbol of a text; made where it is new. */
static bool symbol_of(loam_tokenizer *t, table_key key, const char *s, size_t n, uint32_t *id)
{
    *id = table_find(&t->table, t->keys, key, s, n);
    if (*id != TABLE_NONE) return true;
    if (!mem_grow(&t->keys, &t->cap_symbols, t->n_symbols + 1, sizeof *t->keys, UINT32_MAX - 1)) return false;
    char *copy = arena_copy(&t->arena, s, n);
    if (!copy) return false;
    *id = (uint32_t)t->n_symbols;
    t->keys[t->n_symbols++] = (text_view){ copy, n };
    return table_put(&t->table, t->keys, key, s, n, id);
}

/* One merge: left and right back to back at s, in the form the table holds. */
typedef struct merge_text_pair {
    const char *s;
    size_t left, right;
} merge_text_pair;

/* Splits "left right" and undoes the byte alphabet, into buffer (as large as the merge). False where it can never apply. */
static bool parse_merge(const loam_tokenizer *t, text_view merge, char *buffer, merge_text_pair *p)
{
    const char *space = merge.len > 1 ? memchr(merge.data + 1, ' ', merge.len - 1) : NULL;
    if (!space) return false;
    size_t left = (size_t)(space - merge.data), right = merge.len - left - 1;
    p->s = buffer;
    if (t->flags.raw) {
        memcpy(buffer, merge.data, left);
        memcpy(buffer + left, space + 1, right);
        p->left = left;
        p->right = right;
        return right > 0 && !memchr(buffer, ' ', left + right);
    }
    p->left = bytes_from_alphabet(merge.data, left, buffer);
    if (p->left == SIZE_MAX) return false;
    p->right = bytes_from_alphabet(space + 1, right, buffer + p->left);
    return p->right != SIZE_MAX && p->right > 0;
}

/* True where the symbol has this text. Merges mostly make tokens in order, so that trying the next id saves a search. */
static bool has_text(const loam_tokenizer *t, size_t id, const char *s, size_t n)
{
    return id < t->n_symbols && t->keys[id].len == n && memcmp(t->keys[id].data, s, n) == 0;
}

/* Merges are taken in batches, so that the tables' memory is on its way before it is needed. */
#define BATCH 32

typedef struct pending {
    merge_text_pair p;
    table_key left, right;
    pair_slot slot;
} pending;

/* Reads up to BATCH merges from `rank` on into m, their texts into buffer; returns how many are left of them. */
static unsigned read_batch(const loam_tokenizer *t, const vocab_view *v, uint32_t rank, char *buffer, pending *m)
{
    unsigned n = 0;
    for (uint32_t end = v->n_merges - rank < BATCH ? v->n_merges : rank + BATCH; rank < end; rank++) {
        if (!parse_merge(t, v->merges[rank], buffer, &m[n].p)) continue;
        m[n].left = table_key_of(&t->table, buffer, m[n].p.left, 0);
        m[n].right = table_key_of(&t->table, buffer + m[n].p.left, m[n].p.right, 0);
        table_prefetch(&t->table, m[n].left);
        table_prefetch(&t->table, m[n].right);
        buffer += m[n].p.left + m[n].p.right;
        m[n++].slot.rank = rank;
    }
    return n;
}

static bool add_merges(loam_tokenizer *t, const vocab_view *v, char *buffer)
{
    pending batch[BATCH];
    uint32_t result = 0;
    for (uint32_t rank = 0; rank < v->n_merges; rank += BATCH) {
        unsigned n = read_batch(t, v, rank, buffer, batch);
        for (unsigned i = 0; i < n; i++) {
            pending *m = &batch[i];
            const char *s = m->p.s;
            size_t left = m->p.left, len = left + m->p.right;
            if (!symbol_of(t, m->left, s, left, &m->slot.left) || !symbol_of(t, m->right, s + left, m->p.right, &m->slot.right))
                return false;
            pair_prefetch(&t->pairs, m->slot.left, m->slot.right);
            if (has_text(t, result + 1u, s, len)) result++;
            else if (!has_text(t, result, s, len) && !symbol_of(t, table_key_of(&t->table, s, len, 0), s, len, &result))
                return false;
            m->slot.result = result;
            if (t->flags.escape && m->p.right >= SPACE_MARK_LEN && memcmp(s + left, SPACE_MARK, SPACE_MARK_LEN) == 0)
                t->joins_space[(uint8_t)s[left - 1]] = true;
        }
        for (unsigned i = 0; i < n; i++) pair_put(&t->pairs, batch[i].slot);
    }
    return true;
}

loam_status bpe_build(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    if (!v->merges && !tok_is(v->pre, "kimi-k2"))
        return fail(err, LOAM_E_FORMAT, "%s: key 'tokenizer.ggml.merges' is missing", v->source);
    size_t longest = 0, n_merges = v->merges ? v->n_merges : 0;
    for (uint32_t i = 0; i < n_merges; i++)
        if (v->merges[i].len > longest) longest = v->merges[i].len;
    char *buffer = mem_alloc_array(longest, BATCH);
    bool ok = buffer && pair_init(&t->pairs, n_merges, t->secret) && (n_merges == 0 || add_merges(t, v, buffer));
    mem_free(buffer);
    if (!ok) return fail_nomem(err, "the merges", n_merges * sizeof(pair_slot));
    tok_fill_bytes(t, t->flags.raw ? BYTE_HEX : BYTE_ITSELF);
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        t->char_symbol[b] = table_get(&t->table, t->keys, &c, 1, 0);
    }
    t->dna[0] = tok_find(t, "<dna>", 5);
    t->dna[1] = tok_find(t, "</dna>", 6);
    t->dna[2] = tok_find(t, "<oov>", 5);
    return LOAM_OK;
}

static size_t bytes_of(const glyph *g, size_t from, size_t to)
{
    size_t n = to - from;
    for (size_t i = from; i < to; i++) n += g[i] >> 30;
    return n;
}

/* Writes glyphs as UTF-8 into r->text. */
static loam_status write_glyphs(tok_run *r, size_t n, size_t *bytes)
{
    *bytes = bytes_of(r->glyphs, 0, n);
    loam_status st = run_text(r, *bytes);
    char *out = r->text;
    for (size_t i = 0; i < n && st == LOAM_OK; i++) out += uni_encode(glyph_cp(r->glyphs[i]), out);
    return st;
}

/* A piece in which spaces are SPACE_MARKs: its words are found by them. */
static loam_status add_words(tok_run *r, const char *s, size_t n)
{
    loam_status st = LOAM_OK;
    for (size_t at = 0, word; at < n && st == LOAM_OK; at += word) {
        word = words_next(r->t, s + at, n - at);
        st = words_add(r, s + at, word);
    }
    return st;
}

loam_status bpe_encode(tok_run *r, const char *s, size_t n)
{
    const loam_tokenizer *t = r->t;
    bool same;
    loam_status st = run_glyphs(r, n);
    if (st != LOAM_OK) return st;
    size_t count = uni_glyphs(s, n, t->flags.escape ? 0x2581 : ' ', r->glyphs, &same), bytes = n;
    if (!same) {
        st = write_glyphs(r, count, &bytes);
        s = r->text;
    }
    words_begin(r, bytes);
    pre_walk w;
    pre_start(&w, t->pre, r->glyphs, count);
    for (size_t from, to; st == LOAM_OK && pre_next(&w, &from, &to);) {
        size_t len = bytes_of(r->glyphs, from, to);
        uint32_t whole = TABLE_NONE;
        if (t->flags.newline_whole && s[0] == '\n') whole = table_get(&t->table, t->keys, s, len, 0);
        if (whole < t->n_tokens) st = run_push(r, (loam_token)whole);
        else st = t->flags.escape ? add_words(r, s, len) : words_add(r, s, len);
        s += len;
    }
    return st;
}

/* ---- dialects ---- */

/* Text without its white space; each stretch between is merged as it is. */
loam_status whitespace_encode(tok_run *r, const char *s, size_t n)
{
    bool same;
    loam_status st = run_glyphs(r, n);
    if (st != LOAM_OK) return st;
    size_t count = uni_glyphs(s, n, ' ', r->glyphs, &same), bytes;
    for (size_t i = 0; r->t->flags.lowercase && i < count; i++) r->glyphs[i] = uni_glyph(uni_lower(glyph_cp(r->glyphs[i])));
    st = write_glyphs(r, count, &bytes);
    if (st != LOAM_OK) return st;
    words_begin(r, bytes);
    const char *at = r->text;
    for (size_t i = 0; i < count && st == LOAM_OK;) {
        size_t end = i;
        while (end < count && !(r->glyphs[end] & G_WS)) end++;
        size_t len = bytes_of(r->glyphs, i, end);
        st = words_add(r, at, len);
        at += len;
        i = end;
        for (; i < count && r->glyphs[i] & G_WS; i++) at += glyph_bytes(r->glyphs[i]);
    }
    return st;
}

#define DNA_BLOCK 6
#define DNA_MARK  "\xEE\x80\x80" /* U+E000, behind every block in the vocabulary */

/* Blocks of six letters, in upper case, the last one filled up. */
static loam_status dna_blocks(tok_run *r, const char *s, size_t n)
{
    loam_status st = LOAM_OK;
    for (size_t i = 0; i < n && st == LOAM_OK; i += DNA_BLOCK) {
        char block[DNA_BLOCK + 3] = "AAAAAA";
        for (size_t k = 0; k < DNA_BLOCK && i + k < n; k++)
            block[k] = s[i + k] >= 'a' && s[i + k] <= 'z' ? (char)(s[i + k] - 32) : s[i + k];
        memcpy(block + DNA_BLOCK, DNA_MARK, 3);
        loam_token id = tok_find(r->t, block, sizeof block);
        st = run_push(r, id >= 0 ? id : r->t->dna[2]);
    }
    return st;
}

loam_status dna_encode(tok_run *r, const char *s, size_t n)
{
    const loam_token *dna = r->t->dna;
    if (dna[0] < 0 || dna[1] < 0 || dna[2] < 0) return bpe_encode(r, s, n);
    loam_status st = LOAM_OK;
    for (const char *end = s + n; s < end && st == LOAM_OK;) {
        const char *open = memmem(s, (size_t)(end - s), "<dna>", 5);
        if (open != s) st = bpe_encode(r, s, (size_t)((open ? open : end) - s));
        if (!open || st != LOAM_OK) break;
        const char *from = open + 5, *close = memmem(from, (size_t)(end - from), "</dna>", 6);
        st = run_push(r, dna[0]);
        if (st == LOAM_OK) st = dna_blocks(r, from, (size_t)((close ? close : end) - from));
        if (st == LOAM_OK && close) st = run_push(r, dna[1]);
        s = close ? close + 6 : end;
    }
    return st;
}
