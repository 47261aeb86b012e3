/* merge.c - pair merging for SPM and BPE: join the best adjacent pair of symbols until none can be joined.
 *
 * Best is the lowest key: the rank of a merge, or a score turned around (SPM: the joined text must be a token); among equal
 * keys the leftmost pair. Short words are merged in arrays by looking for the least key again and again; long ones with a
 * linked list and a heap of (key, left symbol), O(n log n). A heap entry counts only while the pair at its place still has
 * its key: equal keys at one place mean the same step, so an entry that is out of date can do no harm.
 *
 *   symbols   at[0] at[1] at[2] ... at[n]      byte offsets
 *   pairs        key[0] key[1] ...             of (i, i + 1), NO_KEY where they cannot be joined
 */
#include "tokenizer/tokenizer.h"

#define NO_KEY     UINT32_MAX
#define SHORT_WORD 48 /* symbols; above, the heap is cheaper */

/* The symbols of a short word. */
typedef struct word {
    uint32_t n;
    uint32_t at[SHORT_WORD + 1];
    uint32_t id[SHORT_WORD];
    uint32_t key[SHORT_WORD];
    uint32_t result[SHORT_WORD];
} word;

/* A symbol of a long word. */
typedef struct chain {
    uint32_t at, len;
    uint32_t prev, next; /* indices, UINT32_MAX at the ends */
    uint32_t id;
    uint32_t key, result; /* of the pair (this, next) */
} chain;

/* Higher scores become lower keys; NaN comes last. */
static uint32_t score_key(float score)
{
    uint32_t bits;
    if (score != score) return NO_KEY - 1;
    if (score == 0) score = 0; /* the two zeros are equal */
    memcpy(&bits, &score, sizeof bits);
    return ~(bits >> 31 ? ~bits : bits | 0x80000000u);
}

/* The key of joining two symbols, whose texts are the len bytes at s; *result gets the joined symbol. */
static inline uint32_t join(const loam_tokenizer *t, uint32_t left, uint32_t right, const char *s, size_t len, uint32_t *result)
{
    if (t->kind == LOAM_TOKENIZER_BPE) {
        const pair_slot *p = left == TABLE_NONE || right == TABLE_NONE ? NULL : pair_get(&t->pairs, left, right);
        if (!p) return NO_KEY;
        *result = p->result;
        return p->rank;
    }
    if (len > t->longest) return NO_KEY;
    *result = table_get(&t->table, t->keys, s, len, 0);
    if (*result == TABLE_NONE) return NO_KEY;
    return t->scores ? score_key(t->scores[*result]) : score_key(0);
}

/* One byte of text without a token. */
static loam_status push_byte(tok_run *r, uint8_t byte)
{
    const loam_tokenizer *t = r->t;
    if (t->kind == LOAM_TOKENIZER_SPM) {
        loam_token id = t->byte_token[byte];
        return run_push(r, id >= 0 ? id : t->role[LOAM_TOKEN_UNK]);
    }
    if (t->flags.raw) return run_push(r, t->byte_token[byte]);
    char encoded[4];
    size_t n = uni_encode(byte_to_cp(byte), encoded);
    loam_status s = LOAM_OK;
    for (size_t i = 0; i < n && s == LOAM_OK; i++) s = run_push(r, t->byte_token[(uint8_t)encoded[i]]);
    return s;
}

/* The ids of a symbol that will not be joined any more. */
static loam_status push_symbol(tok_run *r, uint32_t id, const char *s, size_t len)
{
    const loam_tokenizer *t = r->t;
    if (id == TABLE_NONE && t->kind == LOAM_TOKENIZER_SPM) id = table_get(&t->table, t->keys, s, len, 0);
    if (id < t->n_tokens) return run_push(r, (loam_token)id);
    loam_status st = LOAM_OK;
    for (size_t i = 0; i < len && st == LOAM_OK; i++) st = push_byte(r, (uint8_t)s[i]);
    return st;
}

/* Bytes of the symbol that begins at s, and its id. With the byte alphabet each byte is one symbol. */
static inline size_t first_symbol(const loam_tokenizer *t, const char *s, size_t n, uint32_t *id)
{
    size_t len = 1;
    if (t->kind == LOAM_TOKENIZER_BPE && !t->flags.raw) {
        *id = t->char_symbol[(uint8_t)s[0]];
        return 1;
    }
    len = uni_step(s[0]);
    if (len > n) len = n;
    if (t->kind == LOAM_TOKENIZER_SPM) *id = TABLE_NONE; /* looked up only where it stays alone */
    else *id = len == 1 ? t->char_symbol[(uint8_t)s[0]] : table_get(&t->table, t->keys, s, len, 0);
    return len;
}

static void word_pair(const loam_tokenizer *t, word *w, uint32_t i, const char *s)
{
    w->key[i] = join(t, w->id[i], w->id[i + 1], s + w->at[i], w->at[i + 2] - w->at[i], &w->result[i]);
}

static loam_status merge_short(tok_run *r, word *w, const char *s)
{
    const loam_tokenizer *t = r->t;
    for (uint32_t i = 0; i + 1 < w->n; i++) word_pair(t, w, i, s);
    while (w->n > 1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < w->n; i++)
            if (w->key[i] < w->key[best]) best = i;
        if (w->key[best] == NO_KEY) break;
        w->id[best] = w->result[best];
        w->n--;
        for (uint32_t i = best + 1; i < w->n; i++) {
            w->at[i] = w->at[i + 1];
            w->id[i] = w->id[i + 1];
            w->key[i] = w->key[i + 1];
            w->result[i] = w->result[i + 1];
        }
        w->at[w->n] = w->at[w->n + 1];
        if (best + 1 < w->n) word_pair(t, w, best, s);
        if (best > 0) word_pair(t, w, best - 1, s);
    }
    loam_status st = LOAM_OK;
    for (uint32_t i = 0; i < w->n && st == LOAM_OK; i++) st = push_symbol(r, w->id[i], s + w->at[i], w->at[i + 1] - w->at[i]);
    return st;
}

/* Computes the pair (i, next of i) and puts it on the heap. */
static bool link_pair(tok_run *r, chain *x, uint32_t i, const char *s)
{
    uint32_t next = x[i].next;
    x[i].key = NO_KEY;
    if (next == UINT32_MAX) return true;
    x[i].key = join(r->t, x[i].id, x[next].id, s + x[i].at, x[i].len + x[next].len, &x[i].result);
    return x[i].key == NO_KEY || heap_push(&r->heap, (uint64_t)x[i].key << 32 | i);
}

static loam_status merge_long(tok_run *r, const char *s, size_t n)
{
    loam_status st = run_work(r, n, sizeof(chain));
    if (st != LOAM_OK) return st;
    chain *x = r->work;
    uint32_t count = 0;
    for (size_t at = 0; at < n; count++) {
        uint32_t id;
        size_t len = first_symbol(r->t, s + at, n - at, &id);
        x[count] = (chain){ .at = (uint32_t)at, .len = (uint32_t)len, .prev = count - 1, .next = count + 1, .id = id };
        at += len;
    }
    x[count - 1].next = UINT32_MAX;
    r->heap.n = 0;
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) ok = link_pair(r, x, i, s);
    while (ok && r->heap.n) {
        uint64_t top = heap_pop(&r->heap);
        uint32_t i = (uint32_t)top;
        if (x[i].key != top >> 32) continue;
        uint32_t gone = x[i].next;
        x[i].id = x[i].result;
        x[i].len += x[gone].len;
        x[i].next = x[gone].next;
        x[gone].key = NO_KEY;
        if (x[i].next != UINT32_MAX) x[x[i].next].prev = i;
        ok = link_pair(r, x, i, s) && (x[i].prev == UINT32_MAX || link_pair(r, x, x[i].prev, s));
    }
    if (!ok) return fail_nomem(r->err, "merging a word", n * sizeof(uint64_t));
    for (uint32_t i = 0; i != UINT32_MAX && st == LOAM_OK; i = x[i].next) st = push_symbol(r, x[i].id, s + x[i].at, x[i].len);
    return st;
}

loam_status merge_word(tok_run *r, const char *s, size_t n)
{
    const loam_tokenizer *t = r->t;
    word w;
    if (t->flags.ignore_merges) {
        uint32_t whole = table_get(&t->table, t->keys, s, n, 0);
        if (whole < t->n_tokens) return run_push(r, (loam_token)whole);
    }
    size_t at = 0;
    for (w.n = 0; at < n && w.n < SHORT_WORD; w.n++) {
        w.at[w.n] = (uint32_t)at;
        at += first_symbol(t, s + at, n - at, &w.id[w.n]);
    }
    if (at < n) return merge_long(r, s, n);
    w.at[w.n] = (uint32_t)n;
    return merge_short(r, &w, s);
}
