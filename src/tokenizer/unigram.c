/* unigram.c - SentencePiece Unigram: normalize, then the most probable segmentation (Viterbi).
 *
 *   fragment ──► charsmap ──► spaces ──► best path over all tokens that match at each character ──► ids
 *
 * best[j] is the score of the best segmentation of the first j bytes, with the token that ends it and where that begins. A
 * character that no token of its length covers may be unknown, at a price. Scores add up in double precision; as long as such
 * sums are exact, words that no token crosses (words.c) can be solved one by one. Refuses a malformed normalization table. */
#include "tokenizer/tokenizer.h"

#include <float.h>
#include <math.h>

#define UNKNOWN_PENALTY 10.0f

/* Sums of scores are exact while they stay below 2^53 times the smallest step between scores: the length of text, at one token
 * a byte, that guarantees it. */
static double exact_bytes(const loam_tokenizer *t)
{
    double largest = fabs((double)t->unknown_score);
    int step = 1024;
    for (uint32_t id = 0; id <= t->n_tokens; id++) {
        float score = id == t->n_tokens ? t->unknown_score : t->scores ? t->scores[id] : 0;
        int exponent;
        if (score == 0) continue;
        if (!isfinite(score)) return 0;
        frexpf(score, &exponent);
        uint32_t bits;
        memcpy(&bits, &score, sizeof bits);
        int lowest = exponent - 24 + __builtin_ctz(bits | 1u << 23); /* weight of the lowest set bit; exact for normal numbers */
        if (lowest < step) step = lowest;
        if (fabsf(score) > largest) largest = fabsf(score);
    }
    return largest > 0 ? ldexp(1, 53 + step) / largest : 0;
}

/* The tokens that text may match, and the user-defined ones among them, each as a trie. */
static bool build_tries(loam_tokenizer *t)
{
    uint32_t *list = mem_alloc_array(t->n_tokens, sizeof *list), n = 0;
    bool ok = list != NULL;
    for (uint32_t id = 0; id < t->n_tokens && ok; id++)
        if (t->attrs[id] & LOAM_ATTR_USER) list[n++] = id;
    ok = ok && trie_build(&t->user_prefixes, t->texts, list, n);
    n = 0;
    for (uint32_t id = 0; id < t->n_tokens && ok; id++) {
        if (!(t->attrs[id] & (LOAM_ATTR_NORMAL | LOAM_ATTR_USER | LOAM_ATTR_UNUSED))) continue;
        list[n++] = id;
        words_note_joint(t, t->texts[id]);
    }
    ok = ok && trie_build(&t->matches, t->texts, list, n);
    mem_free(list);
    return ok;
}

loam_status unigram_build(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    float least = FLT_MAX;
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        float score = t->scores ? t->scores[id] : 0;
        if (t->attrs[id] & LOAM_ATTR_NORMAL && score < least) least = score;
    }
    t->unknown_score = least - UNKNOWN_PENALTY;
    t->exact_bytes = exact_bytes(t);
    if (!build_tries(t)) return fail_nomem(err, "the token trie", t->n_tokens * sizeof(trie_node));
    if (!v->charsmap.data || v->charsmap.len == 0) return LOAM_OK;
    const char *data = v->borrow ? v->charsmap.data : arena_copy(&t->arena, v->charsmap.data, v->charsmap.len);
    if (!data) return fail_nomem(err, "the normalization table", v->charsmap.len);
    if (!charsmap_open(&t->charsmap, data, v->charsmap.len))
        return fail(err, LOAM_E_FORMAT,
                    "%s: the normalization table (tokenizer.ggml.precompiled_charsmap, %zu bytes) is malformed", v->source,
                    v->charsmap.len);
    return LOAM_OK;
}

/* ---- normalization: into r->text ---- */

/* The filter behind the charsmap: spaces. */
typedef struct filter {
    tok_run *r;
    size_t len;
    bool in_word, prefixed;
} filter;

static loam_status filter_add(filter *f, const char *s, size_t n)
{
    const tok_flags *flags = &f->r->t->flags;
    if (n > LIMIT_TEXT_BYTES - f->len / SPACE_MARK_LEN)
        return fail(f->r->err, LOAM_E_ARG, "a text is too long when normalized (at most %u bytes)", LIMIT_TEXT_BYTES);
    loam_status st = run_text(f->r, f->len + SPACE_MARK_LEN * (n + 1));
    if (st != LOAM_OK) return st;
    for (size_t i = 0; i < n; i++) {
        bool space = s[i] == ' ';
        bool mark = space ? !flags->remove_ws : !f->in_word && ((flags->space_prefix && !f->prefixed) || flags->remove_ws);
        if (mark) {
            memcpy(f->r->text + f->len, SPACE_MARK, SPACE_MARK_LEN);
            f->len += SPACE_MARK_LEN;
        }
        if (mark && !space) f->prefixed = true;
        f->in_word = !space;
        if (!space) f->r->text[f->len++] = s[i];
    }
    return LOAM_OK;
}

static loam_status normalize(tok_run *r, const char *s, size_t n, size_t *len)
{
    const loam_tokenizer *t = r->t;
    filter f = { .r = r };
    loam_status st = LOAM_OK;
    for (size_t i = 0, used; i < n && st == LOAM_OK; i += used) {
        text_view out = { s + i, 0 };
        used = trie_prefix(&t->user_prefixes, s + i, n - i);
        if (used) out.len = used;
        else if ((used = charsmap_match(&t->charsmap, s + i, n - i, &out)) > 0) { /* out is the replacement */
        } else if (uni_decodable(s + i, n - i, &used)) out.len = used;
        else out = (text_view){ "\xEF\xBF\xBD", 3 };
        st = filter_add(&f, out.data, out.len);
    }
    *len = f.len;
    return st;
}

/* ---- the best path ---- */

typedef struct step {
    double score;
    uint32_t from; /* where the token begins */
    loam_token id;
} step;

static void improve(step *best, double score, size_t from, loam_token id)
{
    if (score > best->score) *best = (step){ score, (uint32_t)from, id };
}

static void find_path(const loam_tokenizer *t, const char *s, size_t n, step *best)
{
    loam_token unknown = t->role[LOAM_TOKEN_UNK];
    for (size_t j = 1; j <= n; j++) best[j] = (step){ -DBL_MAX, 0, unknown };
    best[0] = (step){ 0, 0, unknown };
    for (size_t i = 0, k; i < n; i += k) {
        bool covered = false;
        trie_walk w = trie_at(&t->matches, s + i, n - i);
        k = uni_step(s[i]);
        if (k > n - i) k = n - i;
        while (trie_next(&w)) {
            bool user = t->attrs[w.value] & LOAM_ATTR_USER;
            double score = user || !t->scores ? 0 : t->scores[w.value];
            improve(&best[i + w.len], best[i].score + score, i, (loam_token)w.value);
            covered |= w.len == k;
        }
        if (!covered) improve(&best[i + k], best[i].score + t->unknown_score, i, unknown);
    }
}

/* Walks the path backwards, which leaves the ids in reverse; of unknown ones in a row only one stays. */
static loam_status push_path(tok_run *r, const step *best, size_t n)
{
    loam_token unknown = r->t->role[LOAM_TOKEN_UNK];
    size_t first = r->n;
    bool was_unknown = false;
    loam_status st = LOAM_OK;
    for (size_t j = n; j > 0 && st == LOAM_OK; j = best[j].from) {
        bool is_unknown = best[j].id == unknown;
        if (!(is_unknown && was_unknown)) st = run_push(r, best[j].id);
        was_unknown = is_unknown;
    }
    for (size_t a = first, b = r->n; a + 1 < b; a++, b--) {
        loam_token id = r->ids[a];
        r->ids[a] = r->ids[b - 1];
        r->ids[b - 1] = id;
    }
    return st;
}

loam_status unigram_word(tok_run *r, const char *s, size_t n)
{
    step small[65], *best = small;
    if (n >= sizeof small / sizeof *small) {
        loam_status st = run_work(r, n + 1, sizeof *best);
        if (st != LOAM_OK) return st;
        best = r->work;
    }
    find_path(r->t, s, n, best);
    return push_path(r, best, n);
}

/* Unknown ids in a row are one, across words too. Ids that the cache points at may move, so it forgets. */
static void join_unknowns(tok_run *r, size_t first)
{
    loam_token unknown = r->t->role[LOAM_TOKEN_UNK];
    size_t n = first;
    for (size_t i = first; i < r->n; i++)
        if (i == first || r->ids[i] != unknown || r->ids[i - 1] != unknown) r->ids[n++] = r->ids[i];
    if (n != r->n) words_forget(r);
    r->n = n;
}

loam_status unigram_encode(tok_run *r, const char *s, size_t n)
{
    size_t len, first = r->n;
    loam_status st = normalize(r, s, n, &len);
    if (st != LOAM_OK || len == 0) return st;
    if ((double)len > r->t->exact_bytes) return unigram_word(r, r->text, len);
    words_begin(r, len);
    for (size_t at = 0, word; at < len && st == LOAM_OK; at += word) {
        word = words_next(r->t, r->text + at, len - at);
        st = words_add(r, r->text + at, word);
    }
    join_unknowns(r, first);
    return st;
}
