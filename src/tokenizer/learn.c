/* learn.c - see learn.h.
 *
 *   words    each different piece once: its count, and its symbols (a stretch of `symbols` that shrinks as pairs merge)
 *   pairs    each different pair of neighbours: its count over all words, and the words that may hold it
 *   heap     pairs by count; an entry whose count is out of date is put back with the right one when it comes up
 *
 * A merge takes the words of its pair, takes their pairs out of the counts, joins, and puts the new pairs in: the work is
 * proportional to the words that change. */
#include "tokenizer/learn.h"

#include <string.h>

#include "base/map.h"
#include "tokenizer/tokenizer.h"

#define PIECE_BYTES (1u << 20) /* of a text that is cut into words at once */
#define MAX_WORDS   UINT32_MAX / 2

typedef struct word {
    uint64_t count;
    uint32_t at, n; /* symbols */
} word;

typedef struct pair {
    uint32_t left, right;
    uint64_t count;
    uint32_t *words; /* that have or had it */
    size_t n_words, cap_words;
    bool touched; /* its count grew in the merge under way */
} pair;

typedef struct candidate {
    uint64_t count;
    uint32_t pair;
} candidate;

struct bpe_learner {
    const pre_row *pre;
    uint64_t bytes;
    arena arena;
    glyph *glyphs;
    size_t glyph_cap;
    char *text; /* a piece of text that had to be repaired */
    size_t text_cap;

    map map; /* text of a word -> its index */
    text_view *texts;
    size_t text_views_cap;
    word *words;
    size_t n_words, words_cap;
    uint32_t *symbols;

    text_view *names; /* of symbols */
    size_t n_names, names_cap;
    map name_map;
    bpe_merge *merges;
    size_t n_merges, merges_cap;

    pair *pairs;
    size_t n_pairs, pairs_cap;
    uint32_t *slots; /* hash of a pair -> its index + 1 */
    size_t slot_mask;
    candidate *heap;
    size_t n_heap, heap_cap;
    uint32_t *touched;
    size_t n_touched, touched_cap;
};

loam_status learner_new(bpe_learner **out, const char *pre, loam_error *err)
{
    *out = NULL;
    const pre_row *row = pre_find(pre, strlen(pre));
    if (!row) return fail(err, LOAM_E_ARG, "there is no pre-tokenizer '%.64s'", pre);
    if (row->flags & (PRE_RAW | PRE_ESCAPE | PRE_NLWHOLE))
        return fail(err, LOAM_E_ARG, "pre-tokenizer '%.64s' does not use the byte alphabet", pre);
    bpe_learner *l = mem_zalloc(sizeof *l);
    if (!l) return fail_nomem(err, "a tokenizer's learner", sizeof *l);
    l->pre = row;
    if (!map_init(&l->map, 4096) || !map_init(&l->name_map, 4096)) {
        learner_free(l);
        return fail_nomem(err, "the words of a tokenizer", 4096 * sizeof(map_slot));
    }
    *out = l;
    return LOAM_OK;
}

void learner_free(bpe_learner *l)
{
    if (!l) return;
    for (size_t i = 0; i < l->n_pairs; i++) mem_free(l->pairs[i].words);
    arena_free(&l->arena);
    map_free(&l->map);
    map_free(&l->name_map);
    mem_free(l->glyphs);
    mem_free(l->text);
    mem_free(l->texts);
    mem_free(l->words);
    mem_free(l->symbols);
    mem_free(l->names);
    mem_free(l->merges);
    mem_free(l->pairs);
    mem_free(l->slots);
    mem_free(l->heap);
    mem_free(l->touched);
    mem_free(l);
}

const text_view *learner_symbols(const bpe_learner *l, uint32_t *n) { return *n = (uint32_t)l->n_names, l->names; }
const bpe_merge *learner_merges(const bpe_learner *l, uint32_t *n) { return *n = (uint32_t)l->n_merges, l->merges; }
uint64_t learner_bytes(const bpe_learner *l) { return l->bytes; }

/* ---- words ---- */

static bool count_word(bpe_learner *l, const char *s, size_t n)
{
    uint32_t at = map_get(&l->map, s, n);
    if (at != MAP_NONE) {
        l->words[at].count++;
        return true;
    }
    if (!mem_grow(&l->words, &l->words_cap, l->n_words + 1, sizeof *l->words, MAX_WORDS) ||
        !mem_grow(&l->texts, &l->text_views_cap, l->n_words + 1, sizeof *l->texts, MAX_WORDS))
        return false;
    char *copy = arena_copy(&l->arena, s, n);
    if (!copy || !map_put(&l->map, copy, n, (uint32_t)l->n_words, &at)) return false;
    l->texts[l->n_words] = (text_view){ copy, n };
    l->words[l->n_words++] = (word){ .count = 1 };
    return true;
}

/* The words of at most PIECE_BYTES, as bpe_encode cuts them. */
static bool count_piece(bpe_learner *l, const char *s, size_t n)
{
    bool same;
    if (!mem_grow(&l->glyphs, &l->glyph_cap, n, sizeof *l->glyphs, SIZE_MAX / 8)) return false;
    size_t count = uni_glyphs(s, n, ' ', l->glyphs, &same), from, to;
    if (!same) {
        if (!mem_grow(&l->text, &l->text_cap, count * 4, 1, SIZE_MAX / 8)) return false;
        char *out = l->text;
        for (size_t i = 0; i < count; i++) out += uni_encode(glyph_cp(l->glyphs[i]), out);
        s = l->text;
    }
    pre_walk w;
    pre_start(&w, l->pre, l->glyphs, count);
    while (pre_next(&w, &from, &to)) {
        size_t bytes = to - from;
        for (size_t i = from; i < to; i++) bytes += l->glyphs[i] >> 30;
        if (!count_word(l, s, bytes)) return false;
        s += bytes;
    }
    return true;
}

loam_status learner_add(bpe_learner *l, const char *text, size_t len, loam_error *err)
{
    for (size_t at = 0; at < len;) {
        size_t n = len - at < PIECE_BYTES ? len - at : PIECE_BYTES;
        /* A long text is cut before a space, where a word begins, if there is one. */
        for (size_t back = n; at + n < len && back > n / 2; back--)
            if (text[at + back] == ' ' && text[at + back - 1] != ' ') {
                n = back;
                break;
            }
        if (!count_piece(l, text + at, n)) return fail_nomem(err, "the words of a tokenizer", n);
        at += n;
    }
    l->bytes += len;
    return LOAM_OK;
}

/* ---- pairs ---- */

static uint64_t pair_hash(uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static bool grow_slots(bpe_learner *l)
{
    size_t n = l->slots ? (l->slot_mask + 1) * 2 : 1 << 12;
    uint32_t *slots = mem_zalloc_array(n, sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; i < l->n_pairs; i++) {
        size_t at = pair_hash(l->pairs[i].left, l->pairs[i].right) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = i + 1;
    }
    mem_free(l->slots);
    l->slots = slots;
    l->slot_mask = n - 1;
    return true;
}

/* The slot of a pair: where its index is, or where it would go. */
static uint32_t *find_pair(const bpe_learner *l, uint32_t left, uint32_t right)
{
    size_t at = pair_hash(left, right) & l->slot_mask;
    for (; l->slots[at]; at = (at + 1) & l->slot_mask) {
        const pair *p = &l->pairs[l->slots[at] - 1];
        if (p->left == left && p->right == right) break;
    }
    return &l->slots[at];
}

/* The index of a pair, made where it is new; UINT32_MAX: out of memory. */
static uint32_t pair_of(bpe_learner *l, uint32_t left, uint32_t right)
{
    if ((!l->slots || l->n_pairs * 2 > l->slot_mask) && !grow_slots(l)) return UINT32_MAX;
    uint32_t *slot = find_pair(l, left, right);
    if (*slot) return *slot - 1;
    if (!mem_grow(&l->pairs, &l->pairs_cap, l->n_pairs + 1, sizeof *l->pairs, UINT32_MAX / 2)) return UINT32_MAX;
    l->pairs[l->n_pairs] = (pair){ .left = left, .right = right };
    *slot = (uint32_t)++l->n_pairs;
    return (uint32_t)l->n_pairs - 1;
}

static bool add_pair(bpe_learner *l, uint32_t w, uint32_t left, uint32_t right)
{
    uint32_t id = pair_of(l, left, right);
    if (id == UINT32_MAX) return false;
    pair *p = &l->pairs[id];
    p->count += l->words[w].count;
    if (!p->touched) {
        if (!mem_grow(&l->touched, &l->touched_cap, l->n_touched + 1, sizeof *l->touched, UINT32_MAX)) return false;
        l->touched[l->n_touched++] = id;
        p->touched = true;
    }
    if (p->n_words && p->words[p->n_words - 1] == w) return true;
    if (!mem_grow(&p->words, &p->cap_words, p->n_words + 1, sizeof *p->words, UINT32_MAX)) return false;
    p->words[p->n_words++] = w;
    return true;
}

static bool add_pairs(bpe_learner *l, uint32_t w)
{
    const uint32_t *s = l->symbols + l->words[w].at;
    for (uint32_t i = 0; i + 1 < l->words[w].n; i++)
        if (!add_pair(l, w, s[i], s[i + 1])) return false;
    return true;
}

static void remove_pairs(bpe_learner *l, uint32_t w)
{
    const uint32_t *s = l->symbols + l->words[w].at;
    for (uint32_t i = 0; i + 1 < l->words[w].n; i++) l->pairs[*find_pair(l, s[i], s[i + 1]) - 1].count -= l->words[w].count;
}

/* ---- the heap ---- */

/* Does a come before b? More frequent, then smaller ids. */
static bool before(const bpe_learner *l, candidate a, candidate b)
{
    if (a.count != b.count) return a.count > b.count;
    const pair *p = &l->pairs[a.pair], *q = &l->pairs[b.pair];
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static bool push(bpe_learner *l, candidate c)
{
    if (!mem_grow(&l->heap, &l->heap_cap, l->n_heap + 1, sizeof *l->heap, SIZE_MAX / 32)) return false;
    size_t i = l->n_heap++;
    for (; i > 0 && before(l, c, l->heap[(i - 1) / 2]); i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = c;
    return true;
}

static candidate pop(bpe_learner *l)
{
    candidate top = l->heap[0], c = l->heap[--l->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= l->n_heap) break;
        if (child + 1 < l->n_heap && before(l, l->heap[child + 1], l->heap[child])) child++;
        if (!before(l, l->heap[child], c)) break;
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = c;
    return top;
}

static bool push_touched(bpe_learner *l)
{
    for (size_t i = 0; i < l->n_touched; i++) {
        pair *p = &l->pairs[l->touched[i]];
        p->touched = false;
        if (p->count && !push(l, (candidate){ p->count, l->touched[i] })) return false;
    }
    l->n_touched = 0;
    return true;
}

/* The most frequent pair; UINT32_MAX where none occurs least times. */
static uint32_t best_pair(bpe_learner *l, uint64_t least)
{
    while (l->n_heap) {
        candidate c = pop(l);
        uint64_t count = l->pairs[c.pair].count;
        if (count == c.count) return count >= least ? c.pair : UINT32_MAX;
        /* Fewer than when it was pushed; the entry it left keeps its memory, so that pushing cannot fail. */
        if (count && count < c.count) push(l, (candidate){ count, c.pair });
    }
    return UINT32_MAX;
}

/* ---- merging ---- */

static bool add_name(bpe_learner *l, const char *s, size_t n, uint32_t *id)
{
    *id = map_get(&l->name_map, s, n);
    if (*id != MAP_NONE) return true;
    uint32_t old;
    if (!mem_grow(&l->names, &l->names_cap, l->n_names + 1, sizeof *l->names, LIMIT_VOCAB)) return false;
    if (!map_put(&l->name_map, s, n, (uint32_t)l->n_names, &old)) return false;
    *id = (uint32_t)l->n_names;
    l->names[l->n_names++] = (text_view){ s, n };
    return true;
}

/* The symbol of two joined ones. The same text may come from different pairs: it is one token. */
static bool joined(bpe_learner *l, uint32_t left, uint32_t right, uint32_t *id)
{
    text_view a = l->names[left], b = l->names[right];
    char *s = arena_take(&l->arena, a.len + b.len);
    if (!s) return false;
    memcpy(s, a.data, a.len);
    memcpy(s + a.len, b.data, b.len);
    return add_name(l, s, a.len + b.len, id);
}

static bool has_pair(const bpe_learner *l, uint32_t w, uint32_t left, uint32_t right)
{
    const uint32_t *s = l->symbols + l->words[w].at;
    for (uint32_t i = 0; i + 1 < l->words[w].n; i++)
        if (s[i] == left && s[i + 1] == right) return true;
    return false;
}

static bool merge_in_word(bpe_learner *l, uint32_t w, uint32_t left, uint32_t right, uint32_t result)
{
    if (!has_pair(l, w, left, right)) return true;
    remove_pairs(l, w);
    uint32_t *s = l->symbols + l->words[w].at, n = l->words[w].n, out = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool here = i + 1 < n && s[i] == left && s[i + 1] == right;
        s[out++] = here ? result : s[i];
        i += here;
    }
    l->words[w].n = out;
    return add_pairs(l, w);
}

static bool merge_pair(bpe_learner *l, uint32_t id)
{
    uint32_t left = l->pairs[id].left, right = l->pairs[id].right, result;
    if (!joined(l, left, right, &result)) return false;
    if (!mem_grow(&l->merges, &l->merges_cap, l->n_merges + 1, sizeof *l->merges, LIMIT_VOCAB * 2)) return false;
    l->merges[l->n_merges++] = (bpe_merge){ left, right };
    /* The list is taken away first: adding pairs moves and grows lists. */
    uint32_t *words = l->pairs[id].words;
    size_t n = l->pairs[id].n_words;
    l->pairs[id].words = NULL;
    l->pairs[id].n_words = l->pairs[id].cap_words = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) ok = merge_in_word(l, words[i], left, right, result);
    mem_free(words);
    return ok && push_touched(l);
}

static bool prepare(bpe_learner *l)
{
    uint64_t total = 0;
    for (size_t i = 0; i < l->n_words; i++) total += l->texts[i].len;
    if (total > UINT32_MAX) return false;
    l->symbols = mem_alloc_array((size_t)total + 1, sizeof *l->symbols);
    if (!l->symbols) return false;
    char *bytes = arena_take(&l->arena, 256);
    uint32_t id, at = 0;
    for (int b = 0; bytes && b < 256; b++) {
        bytes[b] = (char)b;
        if (!add_name(l, bytes + b, 1, &id)) return false;
    }
    for (uint32_t w = 0; bytes && w < l->n_words; w++) {
        l->words[w].at = at;
        l->words[w].n = (uint32_t)l->texts[w].len;
        for (size_t i = 0; i < l->texts[w].len; i++) l->symbols[at++] = (uint8_t)l->texts[w].data[i];
        if (!add_pairs(l, w)) return false;
    }
    return bytes && push_touched(l);
}

loam_status learner_learn(bpe_learner *l, uint32_t n_symbols, uint64_t min_count, learner_progress progress, void *user,
                          loam_error *err)
{
    if (n_symbols < 256 || n_symbols > LIMIT_VOCAB)
        return fail(err, LOAM_E_ARG, "%u symbols; a byte-level vocabulary has 256 at least and %u at most", n_symbols, LIMIT_VOCAB);
    if (l->n_names) return fail(err, LOAM_E_ARG, "this vocabulary has been learned already");
    if (!prepare(l)) return fail_nomem(err, "the words of a tokenizer", l->bytes);
    while (l->n_names < n_symbols) {
        uint32_t id = best_pair(l, min_count ? min_count : 1);
        if (id == UINT32_MAX) break;
        if (!merge_pair(l, id)) return fail_nomem(err, "the pairs of a tokenizer", l->n_pairs * sizeof(pair));
        if (progress && !progress(user, l->n_names, n_symbols)) return fail(err, LOAM_E_ABORTED, "learning was stopped");
    }
    return LOAM_OK;
}
