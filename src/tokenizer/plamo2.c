/* plamo2.c - PLaMo 2: the cheapest segmentation, from the end of the text to its beginning, with byte fallback.
 *
 * A token costs minus its score in units of 1/10000; a character without a token costs 1000 and becomes its bytes.
 * Refuses vocabularies that lack one of the 256 byte tokens, or have id 0 among them. */
#include "tokenizer/tokenizer.h"

#include <math.h>

#define COST_SCALE      10000.0
#define COST_UNKNOWN    10000000
#define SCORE_LEAST     (-20000000) /* scaled scores at or below it never match */
#define SCORE_MOST      1e9         /* keeps sums over the longest text inside 64 bits */
#define BYTE_ORDER_MARK 0xFEFF

/* Token texts as the decoded input will be written: decoded and encoded again. Of texts that become equal the first stays. */
static bool decode_text(loam_tokenizer *t, uint32_t id)
{
    text_view s = t->texts[id];
    char *out = arena_take(&t->arena, 3 * s.len);
    if (!out) return false;
    size_t n = 0;
    for (size_t i = 0, used; i < s.len; i += used) n += uni_encode(uni_decode(s.data + i, s.len - i, &used), out + n);
    arena_return(&t->arena, 3 * s.len - n);
    t->word_text[id] = (text_view){ out, n };
    return true;
}

/* The cost of a token; false where it never matches. */
static bool cost_of(const loam_tokenizer *t, uint32_t id, int64_t *cost)
{
    double q = round((t->scores ? t->scores[id] : 0) * COST_SCALE);
    if (!(q > SCORE_LEAST)) return false; /* also NaN */
    *cost = -(int64_t)(q < SCORE_MOST ? q : SCORE_MOST);
    return true;
}

static bool build_trie(loam_tokenizer *t)
{
    uint32_t *list = mem_alloc_array(t->n_tokens, sizeof *list), n = 0;
    bool ok = list != NULL;
    for (uint32_t id = 0; id < t->n_tokens && ok; id++) {
        int byte = t->attrs[id] & LOAM_ATTR_BYTE ? tok_byte_of(t->texts[id], true) : -1;
        if (byte >= 0) t->byte_token[byte] = (loam_token)id;
        else if (cost_of(t, id, &t->word_cost[id])) ok = decode_text(t, list[n++] = id);
    }
    ok = ok && trie_build(&t->matches, t->word_text, list, n);
    mem_free(list);
    return ok;
}

loam_status plamo2_build(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    for (int b = 0; b < 256; b++) t->byte_token[b] = LOAM_TOKEN_NULL;
    t->word_text = mem_zalloc_array(t->n_tokens, sizeof *t->word_text);
    t->word_cost = mem_zalloc_array(t->n_tokens, sizeof *t->word_cost);
    if (!t->word_text || !t->word_cost || !build_trie(t))
        return fail_nomem(err, "the token trie", t->n_tokens * sizeof(trie_node));
    for (int b = 0; b < 256; b++)
        if (t->byte_token[b] <= 0)
            return fail(err, LOAM_E_FORMAT, "%s: the vocabulary has no usable token for byte 0x%02X", v->source, b);
    return LOAM_OK;
}

/* The cheapest way from a byte of the text to its end. */
typedef struct way {
    int64_t cost;
    uint32_t len;  /* of the first step */
    loam_token id; /* of its token; LOAM_TOKEN_NULL: bytes */
} way;

/* The matches at one place, compared from the longest to the shortest, which keeps the first of equals: so here, where they
 * come shortest first, a later one wins a tie. */
static void cheapest(const loam_tokenizer *t, const char *s, size_t n, way *at)
{
    trie_walk w = trie_at(&t->matches, s, n);
    bool any = false;
    while (trie_next(&w)) {
        int64_t cost = at[w.len].cost + t->word_cost[w.value];
        if (!any || cost <= at->cost) *at = (way){ cost, (uint32_t)w.len, (loam_token)w.value };
        any = true;
    }
    size_t k = uni_step(s[0]);
    if (!any || at[k].cost + COST_UNKNOWN < at->cost) *at = (way){ at[k].cost + COST_UNKNOWN, (uint32_t)k, LOAM_TOKEN_NULL };
}

loam_status plamo2_encode(tok_run *r, const char *s, size_t n)
{
    loam_status st = run_text(r, 3 * n + 4); /* one byte becomes at most three */
    size_t len = 0;
    for (size_t i = 0, used; i < n && st == LOAM_OK; i += used) {
        uint32_t cp = uni_decode(s + i, n - i, &used);
        if (i > 0 || cp != BYTE_ORDER_MARK) len += uni_encode(cp, r->text + len);
    }
    if (st == LOAM_OK) st = run_work(r, len + 1, sizeof(way));
    if (st != LOAM_OK) return st;
    way *ways = r->work;
    ways[len] = (way){ 0 };
    for (size_t i = len; i-- > 0;)
        if ((r->text[i] & 0xC0) != 0x80) cheapest(r->t, r->text + i, len - i, &ways[i]);
    for (size_t i = 0; i < len && st == LOAM_OK; i += ways[i].len) {
        if (ways[i].id >= 0) st = run_push(r, ways[i].id);
        for (size_t k = 0; ways[i].id < 0 && k < ways[i].len && st == LOAM_OK; k++)
            st = run_push(r, r->t->byte_token[(uint8_t)r->text[i + k]]);
    }
    return st;
}
