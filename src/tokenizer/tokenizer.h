/* tokenizer.h - the inside of a loam_tokenizer, and what its files offer each other.
 *
 *   text ── special.c ──► fragments ── spm.c bpe.c wordpiece.c unigram.c rwkv.c plamo2.c small.c ──► ids ── decode.c ──► text
 *            (cuts out special tokens)        (one algorithm per kind; merge.c and words.c serve several)    stream.c
 *
 * load.c makes a tokenizer from a vocabulary view; names.c finds the tokens that have a role by their text. */
#ifndef LOAM_TOKENIZER_TOKENIZER_H
#define LOAM_TOKENIZER_TOKENIZER_H

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/vocab.h"
#include "loam/tokenizer.h"
#include "tokenizer/arena.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/heap.h"
#include "tokenizer/pre.h"
#include "tokenizer/table.h"
#include "tokenizer/trie.h"
#include "tokenizer/unicode.h"

#define SPACE_MARK     "\xE2\x96\x81" /* U+2581, how vocabularies write a space */
#define SPACE_MARK_LEN 3

/* What becomes of BPE beside the plain algorithm. */
typedef enum tok_dialect { DIALECT_PLAIN, DIALECT_DNA, DIALECT_WHITESPACE } tok_dialect;

typedef struct tok_flags {
    bool add_bos, add_eos, add_sep;
    bool space_prefix;  /* put a space before text; drop it from decoded text */
    bool remove_ws;     /* unigram: collapse spaces */
    bool clean;         /* remove spaces before punctuation from decoded text */
    bool escape;        /* write spaces as SPACE_MARK */
    bool ignore_merges; /* a piece that is a token is that token */
    bool raw;           /* no byte alphabet */
    bool newline_whole; /* as ignore_merges, for pieces of newlines */
    bool lowercase, strip_accents;
} tok_flags;

struct loam_tokenizer {
    loam_tokenizer_kind kind;
    tok_dialect dialect;
    tok_flags flags;
    const pre_row *pre; /* BPE: the splitters */

    uint32_t n_tokens;
    size_t longest;   /* bytes of the longest token text */
    text_view *texts; /* [n_tokens] as printed */
    uint16_t *attrs;  /* [n_tokens] LOAM_ATTR_* */
    float *scores;    /* [n_tokens] or NULL */
    table table;      /* text to symbol */
    text_view *keys;  /* [n_symbols] what the table compares with; `texts` itself except for BPE */
    size_t n_symbols, cap_symbols;
    arena arena;     /* texts that are not borrowed */
    uint64_t secret; /* of the hash tables */

    loam_token role[LOAM_TOKEN_ROLES];
    loam_token *suppress;
    size_t n_suppress;

    /* Special tokens by rank: longest first, then by id. */
    uint32_t n_special;
    loam_token *special_id;     /* [n_special] */
    text_view *special_text;    /* [n_special] */
    uint32_t *special_shorter;  /* [n_special] rank of the longest special text that begins this one, TRIE_NONE without */
    trie special_trie;          /* of ranks */
    bool special_first[2][256]; /* bytes that some special text begins with: [0] user-defined ones, [1] all */

    /* Merging (SPM, BPE). */
    pair_table pairs;           /* BPE */
    uint32_t char_symbol[256];  /* BPE: the symbol of a byte (byte alphabet) or of an ASCII character (raw) */
    loam_token byte_token[256]; /* the fall-back: of a byte; with the byte alphabet: of a byte of the encoded form */
    bool joins_space[256];      /* bytes that some token (merge) has directly before a SPACE_MARK */

    trie matches;         /* UGM: matchable tokens; RWKV, PLAMO2: likewise, over `word_text`; WPM: all */
    text_view *word_text; /* RWKV, PLAMO2: [n_tokens] decoded texts */
    int64_t *word_cost;   /* PLAMO2: [n_tokens] */
    trie user_prefixes;   /* UGM: user-defined texts */
    charsmap charsmap;    /* UGM */
    float unknown_score;  /* UGM */
    double exact_bytes;   /* UGM: length of a text up to which sums of scores are exact */
    loam_token dna[3];    /* <dna> </dna> <oov> */
};

/* One call of encode: its output and its scratch memory. */
typedef struct tok_run {
    const loam_tokenizer *t;
    loam_error *err;
    loam_token *ids;
    size_t n, cap;
    char *text; /* the fragment as it is merged or matched */
    size_t text_cap;
    glyph *glyphs;
    size_t glyph_cap;
    void *work; /* arrays of the algorithm */
    size_t work_cap;
    heap heap;
    struct word_slot *words; /* cache of short words; NULL for short texts */
    unsigned words_shift;
} tok_run;

/* ---- making (load.c, names.c, ...) ---- */

/* Makes a tokenizer from a vocabulary; free it with loam_tokenizer_free. Errors name v->source and the key or token:
 * LOAM_E_FORMAT, LOAM_E_UNSUPPORTED (kind or pre-tokenizer unknown), LOAM_E_NOMEM. On failure *out is NULL. */
loam_status tokenizer_new(loam_tokenizer **out, const vocab_view *v, loam_error *err);

int64_t tok_key(const vocab_view *v, const char *key); /* an integer or bool key; VOCAB_ABSENT */
bool tok_is(text_view s, const char *text);            /* equality with a C string */
bool tok_has(text_view s, const char *part);           /* part occurs in s */
bool tok_has_any_case(text_view s, const char *part);  /* part (lower case) occurs in s in any case of ASCII letters */

/* The symbol whose text, as the vocabulary writes it, is s; TABLE_NONE where there is none. */
uint32_t tok_lookup(const loam_tokenizer *t, const char *s, size_t n);
/* As above, for tokens only: LOAM_TOKEN_NULL where there is none. */
loam_token tok_find(const loam_tokenizer *t, const char *s, size_t n);

void names_apply(loam_tokenizer *t, const vocab_view *v);      /* roles by name, end-of-generation set */
void names_strip(loam_tokenizer *t, const vocab_view *v);      /* which tokens take white space beside them */
loam_status special_build(loam_tokenizer *t, loam_error *err); /* the list of special tokens */
void spm_build(loam_tokenizer *t);
loam_status bpe_build(loam_tokenizer *t, const vocab_view *v, loam_error *err);
loam_status wordpiece_build(loam_tokenizer *t, loam_error *err);
loam_status unigram_build(loam_tokenizer *t, const vocab_view *v, loam_error *err);
loam_status rwkv_build(loam_tokenizer *t, loam_error *err);
loam_status plamo2_build(loam_tokenizer *t, const vocab_view *v, loam_error *err);
/* A byte token: its text is <0xHH>. The byte, or -1. any_case: lower-case digits too. */
int tok_byte_of(text_view text, bool any_case);
/* Fills byte_token with the tokens <0xHH>, or with the tokens that are the byte itself; with `both`, the latter where the
 * former is missing. */
typedef enum byte_form { BYTE_HEX, BYTE_ITSELF, BYTE_BOTH } byte_form;
void tok_fill_bytes(loam_tokenizer *t, byte_form form);

/* ---- encoding: every function appends the ids of one raw fragment, n > 0 bytes ---- */

loam_status encode_fragment(tok_run *r, const char *s, size_t n);            /* by the kind of the tokenizer */
loam_status encode_special(tok_run *r, const char *s, size_t n, bool parse); /* a whole text */
loam_status spm_encode(tok_run *r, const char *s, size_t n);
loam_status bpe_encode(tok_run *r, const char *s, size_t n);
loam_status wordpiece_encode(tok_run *r, const char *s, size_t n);
loam_status unigram_encode(tok_run *r, const char *s, size_t n);
loam_status rwkv_encode(tok_run *r, const char *s, size_t n);
loam_status plamo2_encode(tok_run *r, const char *s, size_t n);
loam_status test_encode(tok_run *r, const char *s, size_t n);
loam_status dna_encode(tok_run *r, const char *s, size_t n);
loam_status whitespace_encode(tok_run *r, const char *s, size_t n);

/* Words (words.c). words_begin comes before the words of a text of this size. words_next: bytes of the word that n > 0 bytes
 * at s begin with. words_add: its ids. words_note_joint: a text within which nothing may be cut. */
void words_begin(tok_run *r, size_t text_bytes);
size_t words_next(const loam_tokenizer *t, const char *s, size_t n);
loam_status words_add(tok_run *r, const char *s, size_t n);
void words_forget(tok_run *r); /* what was remembered */
void words_note_joint(loam_tokenizer *t, text_view s);
loam_status merge_word(tok_run *r, const char *s, size_t n);   /* SPM, BPE: by merging */
loam_status unigram_word(tok_run *r, const char *s, size_t n); /* UGM: by the best path; n bytes normalized text */

void run_free(tok_run *r);
loam_status run_push_slow(tok_run *r, loam_token id);
/* Appends an id; LOAM_TOKEN_NULL appends nothing. */
static inline loam_status run_push(tok_run *r, loam_token id)
{
    if (r->n == r->cap || id < 0) return run_push_slow(r, id);
    r->ids[r->n++] = id;
    return LOAM_OK;
}
loam_status run_text(tok_run *r, size_t bytes);              /* room in r->text; contents stay */
loam_status run_glyphs(tok_run *r, size_t count);            /* room in r->glyphs */
loam_status run_work(tok_run *r, size_t count, size_t size); /* room in r->work; contents do not stay */

/* ---- decoding ---- */

/* The piece of a valid id: appended to *out (capacity *cap, length *len), which grows. False: out of memory. */
typedef struct text_buffer {
    char *data;
    size_t len, cap;
} text_buffer;

bool buffer_add(text_buffer *b, const char *s, size_t n);
bool piece_add(const loam_tokenizer *t, loam_token id, bool special, text_buffer *b);
loam_status check_token(const loam_tokenizer *t, loam_token id, loam_error *err);

#endif
