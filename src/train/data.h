/* data.h - the inside of loam_data, and what its files offer each other.
 *
 *   data_files.c  files -> where documents are       data_json.c  a JSON line -> segments
 *   data_text.c   a document -> ids and mask          data_pack.c  pieces -> rows, position
 *   data.c        parameters, opening, the order of documents */
#ifndef LOAM_TRAIN_DATA_H
#define LOAM_TRAIN_DATA_H

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "loam/data.h"

#define DATA_POOL      64         /* pieces that wait for a row */
#define DATA_DOC_BYTES (1u << 20) /* a longer text is cut at a white space, so that one document needs little memory */

/* A document: bytes of a file. */
typedef struct data_doc {
    uint64_t at;
    uint32_t len, file;
} data_doc;

typedef struct data_file {
    char *path;
    os_file file;
    bool json;
} data_file;

/* A stretch of a document that waits for its row. */
typedef struct data_piece {
    int64_t doc;  /* index into docs */
    int32_t from; /* its first token within the document */
    int32_t n;
    bool laid;    /* it is in the rows that are being filled */
    int32_t *ids; /* [n], then labels [n], then mask [n] bytes: one block of memory */
} data_piece;

typedef struct data_ids {
    int32_t *ids;  /* of a whole document */
    uint8_t *mask; /* of each id: it is part of what is to be learned */
    size_t n, cap, mask_cap;
} data_ids;

struct loam_data {
    loam_data_params p;
    const loam_tokenizer *tokenizer;
    data_file *files;
    size_t n_files;
    data_doc *docs;
    size_t n_docs, docs_cap;
    uint64_t fingerprint;     /* of files and parameters */
    int64_t first, n_mine;    /* this side of the hold-out: places first .. first + n_mine - 1 of the split's order */

    int64_t epoch, cursor;    /* cursor: places of this epoch that were taken */
    data_piece *pool;
    size_t n_pool, n_laid, pool_cap;
    data_ids scratch;
    loam_data_rows rows;
    size_t rows_cap;          /* tokens that the arrays of rows hold */
};

/* data_files.c: opens the files, fills docs. */
loam_status data_find_documents(loam_data *d, const char *const *paths, size_t n, loam_error *err);

/* data_json.c: the parts of a document in order. `text` belongs to the document and is freed by data_segments_free. */
typedef struct data_segment {
    char *text;
    size_t len;
    bool counts;  /* its tokens are to be learned */
    bool special; /* control tokens are recognized in it */
    bool ends;    /* an end token comes behind it */
} data_segment;

typedef struct data_segments {
    data_segment *items;
    size_t n, cap;
} data_segments;

void data_segments_free(data_segments *s);
/* Reads one line. chat: the vocabulary has <|im_start|> and <|im_end|>. Messages of errors begin with what is wrong. */
loam_status data_json_segments(const char *line, size_t len, bool chat, data_segments *out, loam_error *err);

/* data_text.c: the ids of a document, into d->scratch. */
loam_status data_encode(loam_data *d, int64_t doc, loam_error *err);
bool data_has_chat_tokens(const loam_tokenizer *t);
/* "FILE: line 7" or "FILE: byte 123" for messages. */
void data_doc_name(const loam_data *d, int64_t doc, char *out, size_t size);

/* data.c: the document at a place of an epoch. A permutation of 0 .. n-1 by a key: data_shuffled. */
int64_t data_doc_at(const loam_data *d, int64_t epoch, int64_t place);
uint64_t data_shuffled(uint64_t i, uint64_t n, uint64_t key);

/* data_pack.c */
void data_pool_clear(loam_data *d);

#endif
