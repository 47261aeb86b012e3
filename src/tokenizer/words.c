/* words.c - cutting text into words where no token can cross, and remembering the ids of words during a call.
 *
 * A cut before a SPACE_MARK changes nothing when no token (no merge) holds the byte before it and the mark side by side: then
 * no step of the algorithm looks across. Short words come again and again; their ids are copied from where they lie in the
 * output already.
 *
 *   ... |▁the|▁cat|▁and|▁the| ...      cache: "▁the" -> index of its first id in r->ids, number of ids */
#include "tokenizer/tokenizer.h"

#define CACHE_BYTES    32  /* of a word that is remembered */
#define CACHE_MIN_TEXT 256 /* bytes of a text that is worth a cache */
#define CACHE_MIN_LOG2 6
#define CACHE_MAX_LOG2 14

struct word_slot {
    uint64_t part[CACHE_BYTES / 8]; /* the word, padded with zeros */
    uint32_t first;                 /* index of its first id in the output */
    uint16_t count;
    uint16_t len; /* 0: free */
};

/* The slots of the cache: about one for eight bytes of text. Without memory there is no cache. */
void words_begin(tok_run *r, size_t text_bytes)
{
    unsigned log2 = CACHE_MIN_LOG2;
    if (r->words || text_bytes < CACHE_MIN_TEXT) return;
    while (log2 < CACHE_MAX_LOG2 && (size_t)8 << log2 < text_bytes) log2++;
    r->words_shift = 64 - log2;
    r->words = mem_zalloc(((size_t)1 << log2) * sizeof *r->words);
}

void words_forget(tok_run *r)
{
    mem_free(r->words);
    r->words = NULL;
}

static loam_status encode_word(tok_run *r, const char *s, size_t n)
{
    return r->t->kind == LOAM_TOKENIZER_UGM ? unigram_word(r, s, n) : merge_word(r, s, n);
}

/* The slot of a word, with the word packed into *w. */
static struct word_slot *slot_of(const tok_run *r, const char *s, size_t n, struct word_slot *w)
{
    uint64_t hash = n;
    *w = (struct word_slot){ .first = (uint32_t)r->n, .len = (uint16_t)n };
    for (size_t i = 0; i < n; i += 8) {
        w->part[i / 8] = table_pack(s + i, n - i < 8 ? n - i : 8);
        hash = (hash ^ hash >> 31 ^ w->part[i / 8]) * 0x9E3779B97F4A7C15u;
    }
    return &r->words[hash >> r->words_shift];
}

loam_status words_add(tok_run *r, const char *s, size_t n)
{
    struct word_slot w, *known;
    loam_status st = LOAM_OK;
    if (n == 0) return st;
    if (!r->words || n > CACHE_BYTES) return encode_word(r, s, n);
    known = slot_of(r, s, n, &w);
    if (known->len == n && memcmp(known->part, w.part, sizeof w.part) == 0) {
        for (size_t i = 0; i < known->count && st == LOAM_OK; i++) st = run_push(r, r->ids[known->first + i]);
        return st;
    }
    st = encode_word(r, s, n);
    w.count = (uint16_t)(r->n - w.first);
    if (st == LOAM_OK && r->n <= UINT32_MAX) *known = w;
    return st;
}

void words_note_joint(loam_tokenizer *t, text_view s)
{
    const char *end = s.data + s.len;
    for (const char *p = s.data; (p = memchr(p, SPACE_MARK[0], (size_t)(end - p))) != NULL; p++)
        if (p > s.data && end - p >= SPACE_MARK_LEN && memcmp(p, SPACE_MARK, SPACE_MARK_LEN) == 0)
            t->joins_space[(uint8_t)p[-1]] = true;
}

size_t words_next(const loam_tokenizer *t, const char *s, size_t n)
{
    for (size_t i = uni_step(s[0]); i < n;) {
        size_t step = uni_step(s[i]);
        if (step == SPACE_MARK_LEN && n - i >= SPACE_MARK_LEN && !t->joins_space[(uint8_t)s[i - 1]] &&
            memcmp(s + i, SPACE_MARK, SPACE_MARK_LEN) == 0)
            return i;
        i += step;
    }
    return n;
}
