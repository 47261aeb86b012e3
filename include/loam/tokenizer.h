/* loam/tokenizer.h - text to token ids and back.
 *
 * A tokenizer is made from the vocabulary of a model file and belongs to what it came from (see there how it is obtained).
 * It never changes afterwards: any number of threads may use one at once, without locks. A loam_detokenizer belongs to one
 * thread at a time.
 *
 * Text is pointer and length, in bytes. It may hold zero bytes and invalid UTF-8; nothing about a text is an error but its
 * length (at most 1 GiB). Ids are 32-bit; LOAM_TOKEN_NULL stands for "there is none".
 */
#ifndef LOAM_TOKENIZER_H
#define LOAM_TOKENIZER_H

#include <stdbool.h>

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_tokenizer loam_tokenizer;
typedef int32_t loam_token;

#define LOAM_TOKEN_NULL (-1)

/* Frees a tokenizer that its maker gave away. NULL is fine. Nothing may use it any more: neither threads nor detokenizers. */
LOAM_API void loam_tokenizer_free(loam_tokenizer *t);

/* ---- text to ids ---- */

/* Put the ids around the text that the model expects there (begin of text, separators, ...), as its vocabulary says. */
#define LOAM_ENCODE_ADD_SPECIAL 1u
/* Recognize control tokens (<|im_end|>, </s>, ...) written in the text. Leave it off for text of users: then they cannot
 * write control tokens. User-defined tokens are recognized always. */
#define LOAM_ENCODE_PARSE_SPECIAL 2u

/* Encodes `len` bytes of text. `ids` has room for `cap` ids (it may be NULL when cap is 0).
 * *n gets the number of ids of the text, also when they do not fit. flags: LOAM_ENCODE_*, default 0.
 * LOAM_E_FULL: cap is too small; *n is what is needed and ids is untouched. LOAM_E_ARG: text too long, unknown flags.
 * LOAM_E_UNSUPPORTED: the file has no vocabulary. LOAM_E_NOMEM. *n is 0 then. */
LOAM_API loam_status loam_tokenizer_encode(const loam_tokenizer *t, const char *text, size_t len, unsigned flags, loam_token *ids,
                                           size_t cap, size_t *n, loam_error *err);

/* As above, into memory of its own: *ids gets *n ids, to be freed with loam_tokens_free. On failure *ids is NULL. */
LOAM_API loam_status loam_tokenizer_encode_all(const loam_tokenizer *t, const char *text, size_t len, unsigned flags,
                                               loam_token **ids, size_t *n, loam_error *err);
LOAM_API void loam_tokens_free(loam_token *ids); /* NULL is fine */

/* ---- ids to text ---- */

/* Print control and unknown tokens as their text; without it they print as nothing. */
#define LOAM_DECODE_SPECIAL 1u
/* Leave out what LOAM_ENCODE_ADD_SPECIAL put around the text (begin and end of text). */
#define LOAM_DECODE_REMOVE_SPECIAL 2u

/* The text of n ids as a whole: a leading space that encoding put there is dropped, and vocabularies that ask for it have
 * spaces before punctuation cleaned. `out` has room for `cap` bytes; no terminator is written.
 * *len gets the number of bytes, also when they do not fit (LOAM_E_FULL, out is untouched).
 * LOAM_E_ARG: an id outside the vocabulary, named in the message; unknown flags. LOAM_E_NOMEM. */
LOAM_API loam_status loam_tokenizer_decode(const loam_tokenizer *t, const loam_token *ids, size_t n, unsigned flags, char *out,
                                           size_t cap, size_t *len, loam_error *err);

/* The bytes of one token, without any of that. flags: LOAM_DECODE_SPECIAL. They may be part of a character only; only the
 * joined pieces of a text are UTF-8. Statuses as above. */
LOAM_API loam_status loam_tokenizer_piece(const loam_tokenizer *t, loam_token id, unsigned flags, char *out, size_t cap,
                                          size_t *len, loam_error *err);

/* A stream of ids becomes a stream of valid UTF-8: bytes wait until their character is complete, and what can never become
 * one turns into U+FFFD. */
typedef struct loam_detokenizer loam_detokenizer;

/* The stream begins a text (and does not continue a prompt): drop the leading space that encoding put there. */
#define LOAM_DECODE_FROM_START 4u

/* flags: LOAM_DECODE_SPECIAL, LOAM_DECODE_FROM_START. The tokenizer must outlive it. */
LOAM_API loam_status loam_detokenizer_new(loam_detokenizer **out, const loam_tokenizer *t, unsigned flags, loam_error *err);
/* Takes the next id; *text gets what can be printed now, *len bytes (0 is usual), valid until the next call on d.
 * A failed call (LOAM_E_ARG: id outside the vocabulary, LOAM_E_NOMEM) leaves d as it was. */
LOAM_API loam_status loam_detokenizer_push(loam_detokenizer *d, loam_token id, const char **text, size_t *len, loam_error *err);
/* Ends the stream: an incomplete character gives one U+FFFD. d is as new afterwards. Never fails. */
LOAM_API void loam_detokenizer_finish(loam_detokenizer *d, const char **text, size_t *len);
LOAM_API void loam_detokenizer_free(loam_detokenizer *d); /* NULL is fine */

/* ---- what the vocabulary says ---- */

/* The family of algorithms. The values are stable. */
typedef enum loam_tokenizer_kind {
    LOAM_TOKENIZER_NONE = 0,   /* a number of tokens, no texts */
    LOAM_TOKENIZER_SPM = 1,    /* SentencePiece pair merging with byte fallback */
    LOAM_TOKENIZER_BPE = 2,    /* byte-level pair merging and its relatives */
    LOAM_TOKENIZER_WPM = 3,    /* WordPiece */
    LOAM_TOKENIZER_UGM = 4,    /* SentencePiece Unigram */
    LOAM_TOKENIZER_RWKV = 5,   /* greedy longest match on bytes */
    LOAM_TOKENIZER_PLAMO2 = 6, /* least cost, with byte fallback */
    LOAM_TOKENIZER_TEST = 7    /* hashes, for tests of models */
} loam_tokenizer_kind;

LOAM_API loam_tokenizer_kind loam_tokenizer_kind_of(const loam_tokenizer *t);
LOAM_API int32_t loam_tokenizer_size(const loam_tokenizer *t); /* number of tokens; ids are 0 .. size-1 */

/* Roles of tokens. */
typedef enum loam_token_role {
    LOAM_TOKEN_BOS = 0,     /* begin of text; CLS of encoders */
    LOAM_TOKEN_EOS = 1,     /* end of text */
    LOAM_TOKEN_EOT = 2,     /* end of turn */
    LOAM_TOKEN_EOM = 3,     /* end of message (a tool call follows) */
    LOAM_TOKEN_UNK = 4,     /* unknown */
    LOAM_TOKEN_SEP = 5,     /* separator */
    LOAM_TOKEN_PAD = 6,     /* padding */
    LOAM_TOKEN_MASK = 7,    /* mask */
    LOAM_TOKEN_NEWLINE = 8, /* what a line end encodes to */
    LOAM_TOKEN_FIM_PRE = 9, /* fill in the middle: prefix, suffix, middle, padding, repository, file */
    LOAM_TOKEN_FIM_SUF = 10,
    LOAM_TOKEN_FIM_MID = 11,
    LOAM_TOKEN_FIM_PAD = 12,
    LOAM_TOKEN_FIM_REP = 13,
    LOAM_TOKEN_FIM_SEP = 14
} loam_token_role;

#define LOAM_TOKEN_ROLES 15

/* The token of a role, LOAM_TOKEN_NULL where there is none. */
LOAM_API loam_token loam_tokenizer_special(const loam_tokenizer *t, loam_token_role role);

/* What LOAM_ENCODE_ADD_SPECIAL adds. The separator is for callers that join two texts. */
LOAM_API bool loam_tokenizer_adds_bos(const loam_tokenizer *t);
LOAM_API bool loam_tokenizer_adds_eos(const loam_tokenizer *t);
LOAM_API bool loam_tokenizer_adds_sep(const loam_tokenizer *t);

/* Attributes of a token: bits. 0 for an id outside the vocabulary. */
#define LOAM_ATTR_UNKNOWN 1u
#define LOAM_ATTR_UNUSED  2u
#define LOAM_ATTR_NORMAL  4u
#define LOAM_ATTR_CONTROL 8u
#define LOAM_ATTR_USER    16u   /* user-defined: recognized in every text */
#define LOAM_ATTR_BYTE    32u   /* stands for one byte */
#define LOAM_ATTR_LSTRIP  128u  /* takes the white space before it */
#define LOAM_ATTR_RSTRIP  256u  /* takes the white space behind it */
#define LOAM_ATTR_EOG     1024u /* ends a generation */

LOAM_API unsigned loam_tokenizer_attributes(const loam_tokenizer *t, loam_token id);
LOAM_API bool loam_tokenizer_is_eog(const loam_tokenizer *t, loam_token id); /* generation ends with it */
LOAM_API bool loam_tokenizer_is_control(const loam_tokenizer *t, loam_token id);

/* The text of a token as stored in the vocabulary, *len bytes that live as long as the tokenizer; NULL for an id outside. */
LOAM_API const char *loam_tokenizer_text(const loam_tokenizer *t, loam_token id, size_t *len);
/* The score of a token; 0 where the vocabulary has none. */
LOAM_API float loam_tokenizer_score(const loam_tokenizer *t, loam_token id);
/* The token whose stored text is exactly this; LOAM_TOKEN_NULL where there is none. */
LOAM_API loam_token loam_tokenizer_find(const loam_tokenizer *t, const char *text, size_t len);
/* The *n ids that sampling must never choose; they live as long as the tokenizer. NULL when *n is 0. */
LOAM_API const loam_token *loam_tokenizer_suppressed(const loam_tokenizer *t, size_t *n);

/* ---- learning a vocabulary ---- */

/* Learns a byte-level BPE vocabulary from text: the two neighbours that occur side by side most often become a token, again and
 * again. (Of equally frequent pairs the one of the smaller ids; so the order of the texts does not matter.) */
typedef struct loam_vocab_builder loam_vocab_builder;

/* Get them from loam_vocab_defaults(), then change what you need. */
typedef struct loam_vocab_params {
    size_t struct_size;
    int32_t n_vocab;            /* tokens, special ones included; default 4096. At least 256 and the special ones */
    const char *pre;            /* how text is cut into pieces that no token crosses; default "qwen2". Names as in tokenizer.ggml.pre,
                                   of those with the byte alphabet */
    int64_t min_count;          /* a pair that occurs less often becomes no token (default 2): the vocabulary may be smaller then */
    const char *const *special; /* [n_special] control tokens, ids from 0. The default is none given: <s>, which begins a text,
                                   and </s>, which ends it. Given ones come behind these two */
    size_t n_special;
    bool (*progress)(void *user, uint64_t done, uint64_t total); /* default NULL; false stops the work: LOAM_E_ABORTED */
    void *progress_user;
} loam_vocab_params;

LOAM_API loam_vocab_params loam_vocab_defaults(void);

/* On failure *out is NULL: ARG (sizes, an unknown pre, a special text twice), NOMEM. params NULL: the defaults. */
LOAM_API loam_status loam_vocab_builder_create(loam_vocab_builder **out, const loam_vocab_params *params, loam_error *err);
LOAM_API void loam_vocab_builder_free(loam_vocab_builder *builder); /* NULL is fine */

/* Counts one text; memory grows with different words only. NOMEM: some of it may have been counted. */
LOAM_API loam_status loam_vocab_builder_add(loam_vocab_builder *builder, const char *text, size_t len, loam_error *err);

/* Learns, and writes the vocabulary: a GGUF file without tensors, or where path ends in .json a Hugging Face tokenizer.json.
 * *n_vocab (may be NULL) gets the number of tokens. Call it once. ARG (no text was added, called twice), IO, ABORTED, NOMEM. */
LOAM_API loam_status loam_vocab_builder_write(loam_vocab_builder *builder, const char *path, int32_t *n_vocab, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
