/* loam/data.h - text for training: documents from files become rows of tokens. UNSTABLE: the lower tier may change between
 * minor versions.
 *
 *   file ──► documents ──► (shuffled) ──► ids ──► pieces of at most n_ctx ──► rows
 *
 *   a row   | piece of document 7 ........ | piece of document 2 .... | padding |
 *   ids       <s> Once upon a ... end          <s> There was ... .       0 0 0
 *   labels    Once upon a time ... </s>        There was a ... </s>     -1 -1 -1      the next token of the same document
 *   mask      1 1 1 1 1 ...                    0 0 0 1 1 1 ...           0 0 0        1: this label counts
 *   documents 0 0 0 0 0 ...                    1 1 1 1 1 ...             2 2 2        a token sees its own number only
 *   positions 0 1 2 3 4 ...                    0 1 2 3 4 ...             0 1 2
 *
 * Files stay on disk: memory is 16 bytes a document, the pieces that wait for a row (about 64), and the rows themselves. The
 * order of documents is a function of seed and epoch alone. */
#ifndef LOAM_DATA_H
#define LOAM_DATA_H

#include <stdbool.h>

#include "loam/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_data loam_data;

typedef enum loam_data_format {
    LOAM_DATA_AUTO = 0, /* JSON lines where the name ends in .jsonl or .json, else text */
    LOAM_DATA_TEXT = 1,
    LOAM_DATA_JSONL = 2 /* a line an object: "text", or "prompt" and "completion", or "messages" of "role" and "content" */
} loam_data_format;

/* What separates the documents of a text file. */
typedef enum loam_data_split {
    LOAM_SPLIT_BLANK = 0, /* one or more blank lines */
    LOAM_SPLIT_LINE = 1,  /* every line is a document */
    LOAM_SPLIT_FILE = 2   /* the file is one document */
} loam_data_split;

/* A document of more than n_ctx tokens. */
typedef enum loam_data_long {
    LOAM_LONG_SPLIT = 0,    /* becomes several pieces, each of which begins at position 0 */
    LOAM_LONG_TRUNCATE = 1, /* loses its end */
    LOAM_LONG_REFUSE = 2    /* is an error that names it */
} loam_data_long;

/* Get them from loam_data_defaults(), then change what you need. */
typedef struct loam_data_params {
    size_t struct_size;
    loam_data_format format; /* default LOAM_DATA_AUTO */
    loam_data_split split;   /* default LOAM_SPLIT_BLANK */
    loam_data_long too_long; /* default LOAM_LONG_SPLIT */
    int32_t n_ctx;           /* tokens of a row, 2 to 1048576; default 512 */
    uint64_t seed;           /* of the order; default 0 */
    bool shuffle;            /* default true; false: the order of the files, every epoch */
    bool endless;            /* default true: after the last document the next epoch begins; false: the rows end */
    double hold_out;         /* share of the documents that is kept apart, 0 to 0.5; default 0. At least one where above 0 */
    bool held_out;           /* give those in place of the others (default false) */
} loam_data_params;

LOAM_API loam_data_params loam_data_defaults(void);

/* Opens files and finds their documents; every JSON line is read once and checked. The tokenizer must outlive the data.
 * On failure *out is NULL: ARG (parameters), IO, FORMAT (a bad line by its number; no document at all; with LOAM_LONG_REFUSE
 * only loam_data_next finds long ones), UNSUPPORTED (JSON lines without jansson), NOMEM. params NULL: the defaults. */
LOAM_API loam_status loam_data_open(loam_data **out, const char *const *paths, size_t n_paths, const loam_tokenizer *tokenizer,
                                    const loam_data_params *params, loam_error *err);
LOAM_API void loam_data_free(loam_data *data); /* NULL is fine */

LOAM_API int64_t loam_data_n_documents(const loam_data *data); /* of the chosen side of the hold-out */
LOAM_API int64_t loam_data_epoch(const loam_data *data);       /* whole passes so far */

/* Reads all documents once: tokens that rows will hold, labels that count, bytes of text. Any pointer may be NULL. */
LOAM_API loam_status loam_data_count(loam_data *data, int64_t *tokens, int64_t *labels, int64_t *bytes, loam_error *err);

/* Rows of tokens; arrays of n_rows * n_ctx that belong to the data and live until its next call. */
typedef struct loam_data_rows {
    int32_t n_rows, n_ctx;
    int32_t *ids;
    int32_t *labels;    /* -1: none */
    uint8_t *mask;      /* 1: the label counts */
    int32_t *documents; /* different in all documents of the rows; padding is a document too */
    int32_t *positions;
    int64_t n_tokens, n_labels; /* without padding; labels that count */
} loam_data_rows;

/* The next n_rows rows; at the end of data that are not endless fewer, finally none. On failure nothing moved:
 * FORMAT (a long document under LOAM_LONG_REFUSE, a file that was changed), NOMEM. */
LOAM_API loam_status loam_data_next(loam_data *data, int32_t n_rows, loam_data_rows *rows, loam_error *err);

/* Back to the first row. */
LOAM_API void loam_data_rewind(loam_data *data);

/* Where the data stand, as numbers to be kept in a checkpoint: *n gets how many; they are written where cap is enough, else
 * LOAM_E_FULL. After loam_data_seek the next rows are the same as they would have been: FORMAT where the numbers are damaged or
 * belong to other data or parameters; nothing moved then. */
LOAM_API loam_status loam_data_tell(const loam_data *data, int64_t *numbers, size_t cap, size_t *n, loam_error *err);
LOAM_API loam_status loam_data_seek(loam_data *data, const int64_t *numbers, size_t n, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
