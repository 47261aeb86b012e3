/* Merging, special tokens and best paths against the plainest way to do the same: random vocabularies, random texts, the
 * shortcuts (heap, cuts, cache, one pass over special tokens) on one side, a few loops on the other. */
#include "check.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "toy.h"

static toy v;
static char text[8192], work[16384];
static int32_t want[16384];
static size_t n_want;
static dice d = { 20 };

static size_t random_text(char *out, size_t most, const char *const *units, uint32_t n_units)
{
    size_t n = dice_below(&d, (uint32_t)most), len = 0;
    while (len < n) {
        const char *unit = units[dice_below(&d, n_units)];
        memcpy(out + len, unit, strlen(unit));
        len += strlen(unit);
    }
    return len;
}

static int32_t find(const char *s, size_t n)
{
    for (uint32_t i = 0; i < v.view.n_tokens; i++)
        if (v.tokens[i].len == n && memcmp(v.tokens[i].data, s, n) == 0) return (int32_t)i;
    return -1;
}

/* Adds up to n random texts of up to `longest` units that are not there yet. */
static void random_tokens(int n, int longest, int type, const char *const *units, uint32_t n_units)
{
    for (int i = 0; i < n; i++) {
        char token[64];
        size_t len = 0;
        for (uint32_t k = dice_below(&d, (uint32_t)longest) + 1; k > 0; k--) {
            const char *unit = units[dice_below(&d, n_units)];
            memcpy(token + len, unit, strlen(unit));
            len += strlen(unit);
        }
        if (find(token, len) < 0) toy_add_n(&v, token, len, type, (float)dice_below(&d, 12) / 4 - 5);
    }
}

/* ---- SPM: the best pair, again and again ---- */

static void spm_reference(const char *s, size_t n)
{
    static size_t at[16384];
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        at[count] = i;
        i += uni_step(s[i]) < n - i ? uni_step(s[i]) : n - i;
    }
    at[count] = n;
    for (;;) {
        size_t best = SIZE_MAX;
        float score = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            int32_t id = find(s + at[i], at[i + 2] - at[i]);
            if (id >= 0 && (best == SIZE_MAX || v.scores[id] > score)) {
                best = i;
                score = v.scores[id];
            }
        }
        if (best == SIZE_MAX) break;
        memmove(at + best + 1, at + best + 2, (count - best - 1) * sizeof *at);
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        int32_t id = find(s + at[i], at[i + 1] - at[i]);
        if (id >= 0) want[n_want++] = id;
        for (size_t k = at[i]; id < 0 && k < at[i + 1]; k++) want[n_want++] = 1 + (uint8_t)s[k];
    }
}

static const char *const spm_units[] = { "a", "b", "c", " ", SPACE_MARK, "\xC3\xA9", "\xE2\x96\x82", "\xFF" };

static void test_spm(void **state)
{
    (void)state;
    for (int round = 0; round < 150; round++) {
        toy_begin(&v, "llama", NULL);
        toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
        toy_hex_bytes(&v);
        random_tokens(40, 4, TOY_NORMAL, (const char *const[]){ "a", "b", SPACE_MARK, "\xC3\xA9" }, 4);
        random_tokens(10, 6, TOY_NORMAL, (const char *const[]){ "a", SPACE_MARK, "c" }, 3);
        toy_key(&v, "add_bos_token", 0);
        loam_tokenizer *t = toy_make(&v);
        for (int k = 0; k < 8; k++) {
            size_t n = random_text(text, k == 0 ? 600 : 150, spm_units, 8), len = 0;
            if (n) {
                memcpy(work, SPACE_MARK, 3);
                len = 3;
            }
            for (size_t i = 0; i < n; i++) {
                bool space = text[i] == ' ';
                memcpy(work + len, space ? SPACE_MARK : text + i, space ? 3 : 1);
                len += space ? 3 : 1;
            }
            n_want = 0;
            spm_reference(work, len);
            want[n_want] = -1;
            check_ids(t, text, n, 0, want);
        }
        loam_tokenizer_free(t);
    }
}

/* ---- BPE: the best rank, again and again; byte alphabet left out by staying inside ASCII letters ---- */

static int rank_of(const char *a, size_t n, const char *b, size_t m)
{
    for (uint32_t r = 0; r < v.view.n_merges; r++) {
        text_view merge = v.merges[r];
        if (merge.len == n + 1 + m && memcmp(merge.data, a, n) == 0 && merge.data[n] == ' ' &&
            memcmp(merge.data + n + 1, b, m) == 0)
            return (int)r;
    }
    return -1;
}

static void bpe_reference(const char *s, size_t n)
{
    static size_t at[16384];
    size_t count = n;
    for (size_t i = 0; i <= n; i++) at[i] = i;
    for (;;) {
        size_t best = SIZE_MAX;
        int least = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            int rank = rank_of(s + at[i], at[i + 1] - at[i], s + at[i + 1], at[i + 2] - at[i + 1]);
            if (rank >= 0 && (best == SIZE_MAX || rank < least)) {
                best = i;
                least = rank;
            }
        }
        if (best == SIZE_MAX) break;
        memmove(at + best + 1, at + best + 2, (count - best - 1) * sizeof *at);
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        int32_t id = find(s + at[i], at[i + 1] - at[i]);
        if (id >= 0) want[n_want++] = id;
        for (size_t k = at[i]; id < 0 && k < at[i + 1]; k++)
            if ((id = find(s + k, 1)) >= 0) want[n_want++] = id, id = -1;
    }
}

static void random_merges(int n)
{
    for (int i = 0; i < n; i++) {
        char merge[64];
        size_t len = 0;
        for (int part = 0; part < 2; part++) {
            if (part) merge[len++] = ' ';
            for (uint32_t k = dice_below(&d, 3) + 1; k > 0; k--) merge[len++] = "abc"[dice_below(&d, 3)];
        }
        merge[len] = 0;
        toy_merge(&v, merge);
    }
}

static void test_bpe(void **state)
{
    (void)state;
    for (int round = 0; round < 150; round++) {
        toy_begin(&v, "gpt2", "gpt-2");
        random_tokens(30, 5, TOY_NORMAL, (const char *const[]){ "a", "b", "c" }, 3);
        random_merges(30);
        loam_tokenizer *t = toy_make(&v);
        for (int k = 0; k < 8; k++) {
            size_t n = random_text(text, k == 0 ? 400 : 70, (const char *const[]){ "a", "b", "c", "ab" }, 4);
            n_want = 0;
            if (n) bpe_reference(text, n);
            want[n_want] = -1;
            check_ids(t, text, n, 0, want);
        }
        loam_tokenizer_free(t);
    }
}

/* ---- unigram: one path over the whole text ---- */

static void unigram_reference(const char *s, size_t n, float unknown)
{
    static double best[16384];
    static size_t from[16384];
    static int32_t id[16384];
    for (size_t j = 0; j <= n; j++) best[j] = j ? -DBL_MAX : 0;
    for (size_t i = 0, k; i < n; i += k) {
        bool covered = false;
        k = uni_step(s[i]) < n - i ? uni_step(s[i]) : n - i;
        for (size_t len = 1; len <= 24 && len <= n - i; len++) {
            int32_t token = find(s + i, len);
            if (token < 0 || v.types[token] == TOY_UNKNOWN || v.types[token] == TOY_CONTROL) continue;
            covered |= len == k;
            if (best[i] + v.scores[token] <= best[i + len]) continue;
            best[i + len] = best[i] + v.scores[token];
            from[i + len] = i;
            id[i + len] = token;
        }
        if (covered || best[i] + unknown <= best[i + k]) continue;
        best[i + k] = best[i] + unknown;
        from[i + k] = i;
        id[i + k] = 0;
    }
    static int32_t back[16384];
    size_t count = 0;
    for (size_t j = n; j > 0; j = from[j])
        if (id[j] != 0 || count == 0 || back[count - 1] != 0) back[count++] = id[j];
    while (count > 0) want[n_want++] = back[--count];
}

static void test_unigram(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        toy_begin(&v, "t5", NULL);
        toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
        random_tokens(30, 4, TOY_NORMAL, (const char *const[]){ "a", "b", SPACE_MARK, "\xC3\xA9" }, 4);
        toy_key(&v, "unknown_token_id", 0);
        toy_key(&v, "add_eos_token", 0);
        if (round % 3 == 0) random_tokens(10, 3, TOY_NORMAL, (const char *const[]){ SPACE_MARK, "a" }, 2);
        float least = FLT_MAX;
        for (uint32_t i = 0; i < v.view.n_tokens; i++) {
            if (i && round % 2) v.scores[i] = dice_normal(&d) - 8; /* not round numbers */
            if (v.types[i] == TOY_NORMAL && v.scores[i] < least) least = v.scores[i];
        }
        loam_tokenizer *t = toy_make(&v);
        for (int k = 0; k < 8; k++) {
            size_t n = random_text(text, k == 0 ? 2000 : 200, (const char *const[]){ "a", "b", "c", " ", SPACE_MARK, "\xC3\xA9" },
                                   6),
                   len = 0;
            for (size_t i = 0; i < n; i++) {
                bool space = text[i] == ' ';
                memcpy(work + len, space ? SPACE_MARK : text + i, space ? 3 : 1);
                len += space ? 3 : 1;
            }
            n_want = 0;
            unigram_reference(work, len, least - 10.0f);
            want[n_want] = -1;
            check_ids(t, text, n, 0, want);
        }
        loam_tokenizer_free(t);
    }
}

/* ---- special tokens: one text after the other, longest first ---- */

#define MAX_PARTS 8192

typedef struct part {
    size_t from, to; /* raw text */
    int32_t id;      /* or a token */
} part;

static part parts[MAX_PARTS], next_parts[MAX_PARTS];
static size_t n_parts;

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Cuts every occurrence of a token out of one raw part. */
static size_t cut_part(const loam_tokenizer *t, part p, int32_t id, part *out)
{
    size_t n = 0, len = v.tokens[id].len;
    unsigned attr = loam_tokenizer_attributes(t, id);
    for (;;) {
        const char *hit = memmem(text + p.from, p.to - p.from, v.tokens[id].data, len);
        if (!hit) break;
        size_t left = (size_t)(hit - text), right = left + len;
        while (attr & LOAM_ATTR_LSTRIP && left > p.from && blank(text[left - 1])) left--;
        while (attr & LOAM_ATTR_RSTRIP && right < p.to && blank(text[right])) right++;
        if (left > p.from) out[n++] = (part){ p.from, left, -1 };
        out[n++] = (part){ 0, 0, id };
        p.from = right;
    }
    if (p.to > p.from) out[n++] = p;
    return n;
}

static void special_reference(const loam_tokenizer *t, size_t n, bool parse)
{
    n_parts = n ? 1 : 0;
    parts[0] = (part){ 0, n, -1 };
    for (size_t len = 64; len > 0; len--)
        for (int32_t id = 0; id < (int32_t)v.view.n_tokens; id++) {
            unsigned attr = loam_tokenizer_attributes(t, id);
            if (v.tokens[id].len != len || !(attr & (LOAM_ATTR_CONTROL | LOAM_ATTR_USER | LOAM_ATTR_UNKNOWN))) continue;
            if (!parse && attr & (LOAM_ATTR_CONTROL | LOAM_ATTR_UNKNOWN)) continue;
            size_t count = 0;
            for (size_t i = 0; i < n_parts; i++)
                if (parts[i].id >= 0) next_parts[count++] = parts[i];
                else count += cut_part(t, parts[i], id, next_parts + count);
            memcpy(parts, next_parts, count * sizeof *parts);
            n_parts = count;
        }
    n_want = 0;
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].id >= 0) want[n_want++] = parts[i].id;
        for (size_t k = parts[i].from; k < parts[i].to; k++) want[n_want++] = 1 + (uint8_t)text[k];
    }
}

static void test_special(void **state)
{
    static const char *const units[] = { "a", "b", "<", ">", " ", "\t" };
    (void)state;
    for (int round = 0; round < 400; round++) {
        toy_begin(&v, "rwkv", NULL);
        toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
        for (int b = 0; b < 256; b++) {
            char byte[8];
            toy_add_n(&v, byte, (size_t)snprintf(byte, sizeof byte, "\\x%02x", (unsigned)b), TOY_NORMAL, 0);
        }
        if (round % 2) v.view.name = (text_view){ "A Phi-3 toy", 11 }; /* all of them strip on the right */
        random_tokens(6, 4, TOY_USER, units, 6);
        random_tokens(6, 4, TOY_CONTROL, units, 6);
        random_tokens(2, 2, TOY_USER, units, 6);
        loam_tokenizer *t = toy_make(&v);
        /* the special texts must not take part in matching: then a raw part is its bytes */
        for (int k = 0; k < 8; k++) {
            size_t n = random_text(text, 60, units, 6);
            for (int parse = 0; parse < 2; parse++) {
                special_reference(t, n, parse);
                bool plain = true;
                for (size_t i = 0; i < n_parts && plain; i++)
                    for (uint32_t id = 257; id < v.view.n_tokens && plain; id++)
                        plain = parts[i].id >= 0 ||
                                !memmem(text + parts[i].from, parts[i].to - parts[i].from, v.tokens[id].data, v.tokens[id].len);
                want[n_want] = -1;
                if (plain) check_ids(t, text, n, parse ? LOAM_ENCODE_PARSE_SPECIAL : 0, want);
            }
        }
        loam_tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_spm), cmocka_unit_test(test_bpe), cmocka_unit_test(test_unigram),
                                        cmocka_unit_test(test_special) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
