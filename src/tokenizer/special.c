/* special.c - cuts the special tokens out of a text and hands what lies between them to the algorithm of the kind.
 *
 * Special tokens have ranks: longest text first, then by id. The first rank takes all its occurrences in the text, leftmost
 * first; the next rank looks in what is left, and so on. Here all ranks are done in one pass: every place where special texts
 * begin enters a heap with the best rank that it offers; the heap yields (rank, place) in order; a place whose text overlaps
 * one already taken offers its next shorter text, if any. As taken texts are never shorter than the one in hand, two bits (of
 * its first and last byte) tell an overlap.
 *
 *   text   a b < s > c d        taken bits   0 0 1 1 1 0 0        fragments   "ab"  <s>  "cd" */
#include "tokenizer/tokenizer.h"

static bool is_special(const loam_tokenizer *t, uint32_t id)
{
    return t->attrs[id] & (LOAM_ATTR_CONTROL | LOAM_ATTR_USER | LOAM_ATTR_UNKNOWN);
}

/* True where the token is recognized without parsing of special tokens. */
static bool always(const loam_tokenizer *t, uint32_t rank)
{
    return !(t->attrs[t->special_id[rank]] & (LOAM_ATTR_CONTROL | LOAM_ATTR_UNKNOWN));
}

static loam_status rank_specials(loam_tokenizer *t, loam_error *err)
{
    heap order = { 0 };
    bool ok = true;
    for (uint32_t id = 0; id < t->n_tokens && ok; id++)
        if (is_special(t, id)) ok = heap_push(&order, (uint64_t)(UINT32_MAX - t->texts[id].len) << 32 | id);
    size_t n = order.n;
    if (ok && n) {
        t->special_id = mem_alloc_array(n, sizeof *t->special_id);
        t->special_text = mem_alloc_array(n, sizeof *t->special_text);
        t->special_shorter = mem_alloc_array(n, sizeof *t->special_shorter);
        ok = t->special_id && t->special_text && t->special_shorter;
    }
    for (; ok && order.n; t->n_special++) {
        uint32_t id = (uint32_t)heap_pop(&order);
        t->special_id[t->n_special] = (loam_token)id;
        t->special_text[t->n_special] = t->texts[id];
    }
    mem_free(order.items);
    return ok ? LOAM_OK : fail_nomem(err, "the special tokens", n * sizeof(text_view));
}

loam_status special_build(loam_tokenizer *t, loam_error *err)
{
    loam_status st = rank_specials(t, err);
    if (st != LOAM_OK || t->n_special == 0) return st;
    for (uint32_t rank = 0; rank < t->n_special; rank++) t->special_shorter[rank] = rank;
    if (!trie_build(&t->special_trie, t->special_text, t->special_shorter, t->n_special))
        return fail_nomem(err, "the special tokens", t->n_special * sizeof(trie_node));
    for (uint32_t rank = 0; rank < t->n_special; rank++) {
        text_view s = t->special_text[rank];
        trie_walk w = trie_at(&t->special_trie, s.data, s.len);
        t->special_shorter[rank] = TRIE_NONE;
        while (trie_next(&w) && w.value != rank) t->special_shorter[rank] = w.value;
        t->special_first[1][(uint8_t)s.data[0]] = true;
        if (always(t, rank)) t->special_first[0][(uint8_t)s.data[0]] = true;
    }
    return LOAM_OK;
}

/* One text being cut. */
typedef struct cutter {
    const loam_tokenizer *t;
    const char *s;
    size_t n;
    bool parse;
    heap places;     /* rank << 32 | place */
    uint8_t *taken;  /* a bit for each byte */
    uint64_t *found; /* place << 32 | rank: tokens that were taken */
    size_t n_found, cap_found;
} cutter;

static bool is_taken(const cutter *c, size_t i) { return c->taken[i / 8] >> i % 8 & 1; }
static void take(cutter *c, size_t i) { c->taken[i / 8] |= (uint8_t)(1u << i % 8); }
static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The rank itself or the next shorter one that may be recognized; TRIE_NONE. */
static uint32_t allowed(const cutter *c, uint32_t rank)
{
    while (rank != TRIE_NONE && !c->parse && !always(c->t, rank)) rank = c->t->special_shorter[rank];
    return rank;
}

/* Puts every place with a special text on the heap. */
static bool find_places(cutter *c)
{
    const bool *first = c->t->special_first[c->parse];
    for (size_t i = 0; i < c->n; i++) {
        size_t len;
        if (!first[(uint8_t)c->s[i]]) continue;
        uint32_t rank = allowed(c, trie_longest(&c->t->special_trie, c->s + i, c->n - i, &len));
        if (rank != TRIE_NONE && !heap_push(&c->places, (uint64_t)rank << 32 | i)) return false;
    }
    return true;
}

/* Takes the text of a rank at a place, with the white space that its token strips. */
static bool take_token(cutter *c, uint32_t rank, size_t at)
{
    size_t end = at + c->t->special_text[rank].len;
    uint16_t attr = c->t->attrs[c->t->special_id[rank]];
    if (!mem_grow(&c->found, &c->cap_found, c->n_found + 1, sizeof *c->found, SIZE_MAX / 16)) return false;
    c->found[c->n_found++] = (uint64_t)at << 32 | rank;
    for (size_t i = at; i < end; i++) take(c, i);
    if (attr & LOAM_ATTR_LSTRIP)
        for (size_t i = at; i > 0 && is_blank(c->s[i - 1]) && !is_taken(c, i - 1); i--) take(c, i - 1);
    if (attr & LOAM_ATTR_RSTRIP)
        for (size_t i = end; i < c->n && is_blank(c->s[i]) && !is_taken(c, i); i++) take(c, i);
    return true;
}

static bool take_all(cutter *c)
{
    while (c->places.n) {
        uint64_t top = heap_pop(&c->places);
        uint32_t rank = (uint32_t)(top >> 32), at = (uint32_t)top;
        if (is_taken(c, at)) continue;
        if (!is_taken(c, at + c->t->special_text[rank].len - 1)) {
            if (!take_token(c, rank, at)) return false;
            continue;
        }
        rank = allowed(c, c->t->special_shorter[rank]);
        if (rank != TRIE_NONE && !heap_push(&c->places, (uint64_t)rank << 32 | at)) return false;
    }
    return true;
}

/* The fragments and tokens in the order of the text. The heap, empty now, sorts the tokens. */
static loam_status emit(cutter *c, tok_run *r)
{
    for (size_t i = 0; i < c->n_found; i++)
        if (!heap_push(&c->places, c->found[i])) return fail_nomem(r->err, "special tokens of a text", c->n_found * 8);
    loam_status st = LOAM_OK;
    for (size_t at = 0; at < c->n && st == LOAM_OK;) {
        uint64_t next = c->places.n ? c->places.items[0] : (uint64_t)c->n << 32;
        size_t end = (size_t)(next >> 32), from = at;
        while (from < end && is_taken(c, from)) from++; /* stripped behind the token before */
        size_t to = end;
        while (to > from && is_taken(c, to - 1)) to--; /* stripped before this one */
        if (to > from) st = encode_fragment(r, c->s + from, to - from);
        if (!c->places.n) break;
        uint32_t rank = (uint32_t)heap_pop(&c->places);
        if (st == LOAM_OK) st = run_push(r, c->t->special_id[rank]);
        at = end + c->t->special_text[rank].len;
    }
    return st;
}

loam_status encode_special(tok_run *r, const char *s, size_t n, bool parse)
{
    cutter c = { .t = r->t, .s = s, .n = n, .parse = parse };
    bool ok = find_places(&c);
    if (ok && !c.places.n) return encode_fragment(r, s, n);
    c.taken = ok ? mem_zalloc(n / 8 + 1) : NULL;
    loam_status st = c.taken && take_all(&c) ? LOAM_OK : fail_nomem(r->err, "special tokens of a text", n / 8);
    if (st == LOAM_OK) st = emit(&c, r);
    mem_free(c.places.items);
    mem_free(c.taken);
    mem_free(c.found);
    return st;
}
