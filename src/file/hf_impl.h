/* hf_impl.h - what the files of the reader of Hugging Face folders share.
 *
 *   config.json ───── hf_config.c, hf_rope.c ─► keys "llama.block_count", ...   ┐
 *   tokenizer.json ┐                                                            ├─► gguf_builder ─► gguf_file
 *   tokenizer.model├─ hf_vocab.c, hf_spm.c, hf_special.c ─► "tokenizer.ggml.*"  │
 *   *.safetensors ─── hf_shards.c ─► hf_weights.c: items, by the rules of hf_arch.c ┘
 *
 * An item is one tensor of the directory: rows of one or several stored tensors, as they are or changed. An item whose bits
 * are those of the file is used where it is mapped. */
#ifndef LOAM_FILE_HF_IMPL_H
#define LOAM_FILE_HF_IMPL_H

#include "base/js.h"
#include "base/map.h"
#include "file/gguf_impl.h"
#include "file/gguf_write.h"
#include "file/hf.h"
#include "file/safetensors.h"

/* ---- tensors ---- */

typedef enum hf_change {
    HF_KEEP,
    HF_Q_ROWS,    /* rows of a head from halves to adjacent pairs, where the architecture turns those: [heads] */
    HF_K_ROWS,    /* the same with the number of key heads */
    HF_TRANSPOSE, /* stored [in, out] */
    HF_GATE_UP,   /* stored [experts, gate then up, in]: goes to ffn_gate_exps and ffn_up_exps */
    HF_DROP       /* has no place in the directory */
} hf_change;

/* '#' stands for the number of a block, '%' for that of an expert; ".weight" or ".bias" follow. */
typedef struct hf_rule {
    const char *from, *to;
    hf_change change;
} hf_rule;

/* Rows [row, row + rows) of a stored tensor seen as a matrix. */
typedef struct hf_part {
    const st_tensor *t;
    const st_tensor *scale; /* of 8-bit floats; NULL: none */
    int64_t row, rows;
} hf_part;

typedef struct hf_item {
    char *name; /* [LIMIT_NAME_BYTES + 1] */
    loam_type type;
    int64_t ne[LIMIT_DIMS];
    int64_t heads;    /* above 0: rows are put from halves to pairs */
    bool transpose, plus_one;
    float factor;     /* multiplies all values; 1: none */
    hf_part *parts;
    uint32_t n_parts; /* experts, or 1; 0 with `values` */
    float *values;    /* of an item that is made, not stored */
} hf_item;

struct hf_weights {
    st_file **shards;
    uint32_t n_shards;
    const st_tensor **stored; /* tensors of all shards */
    size_t n_stored;
    map stored_index;         /* by name */
    hf_item *items;
    size_t n_items, item_cap;
    map item_index;           /* by name; while they are mapped */
    int64_t block[2];         /* rows and columns that share a scale of 8-bit floats */
    loam_type small_type;     /* what 8-bit floats become */
};

loam_status hf_open_shards(hf_weights *w, const char *folder, const char *stem, bool use_map, loam_error *err);
const st_tensor *hf_stored(const hf_weights *w, const char *name);

/* ---- architectures ---- */

typedef enum hf_kind { HF_INT, HF_FLOAT, HF_BOOL } hf_kind;

/* A key of config.json (or the first of several, separated by spaces) and where it goes. */
typedef struct hf_key {
    const char *from, *to;
    hf_kind kind;
    bool optional; /* nothing is written where it is absent */
} hf_key;

struct hf_build;

typedef struct hf_arch {
    const char *classes;  /* of "architectures" in config.json */
    const char *types;    /* of "model_type" */
    const char *name;     /* general.architecture */
    const char *prefixes; /* that tensor names may have in front */
    const char *skipped;  /* that names of other parts of the model have */
    const char *defaults; /* JSON: what a config may leave out */
    const char *acts;     /* functions of the feed-forward that it computes */
    const hf_key *keys;
    const hf_rule *rules, *more_rules; /* the first that matches counts */
    bool adjacent;        /* rotary over adjacent pairs */
    bool plus_one;        /* norm weights are stored without their one */
    bool no_rope;
    void (*finish)(struct hf_build *b);
} hf_arch;

const hf_arch *hf_arch_of(const js *config, text_view *name);
bool hf_word_in(const char *words, text_view word);
/* Whether name is pattern; fills the numbers that '#' and '%' stand for (-1 where the pattern has none). */
bool hf_match(const char *pattern, text_view name, int64_t numbers[2]);

/* ---- building ---- */

typedef struct hf_build {
    const char *path;
    js *root;           /* config.json */
    const js *config;   /* of the text part */
    js *defaults;
    const hf_arch *arch;
    gguf_builder *b;
    hf_weights *w;
    loam_error *err;
    loam_status status; /* first failure */
    int64_t n_layer, n_head, n_head_kv, head_dim, width, n_expert, n_vocab;
} hf_build;

/* A failure that names config.json. Keeps the first. */
void hf_fail(hf_build *b, loam_status code, const char *fmt, ...) LOAM_PRINTF(3, 4);
const js *hf_config_get(const hf_build *b, const char *keys); /* the first of several that is there and not null */
int64_t hf_config_int(hf_build *b, const char *keys, int64_t otherwise);
double hf_config_float(hf_build *b, const char *keys, double otherwise);
bool hf_config_bool(const hf_build *b, const char *keys, bool otherwise);

/* Keys of the architecture: "NAME.key". */
void hf_set_int(hf_build *b, const char *key, int64_t v);
void hf_set_float(hf_build *b, const char *key, double v);
void hf_set_bool(hf_build *b, const char *key, bool v);
void hf_set_text(hf_build *b, const char *key, const char *v);

void hf_put_config(hf_build *b);  /* config.json: facts and keys */
void hf_put_rope(hf_build *b);    /* rotary base and scaling */
void hf_map_weights(hf_build *b, bool fine); /* items from what is stored, by the rules of the architecture */
void hf_put_weights(hf_build *b); /* shapes and types of all items, and their entries in the builder */
void hf_put_vocab(hf_build *b);   /* tokenizer and chat template */
/* An item made of numbers, such as rotary factors; takes n floats. */
void hf_make_item(hf_build *b, const char *name, const float *values, int64_t n);
hf_item *hf_add_item(hf_build *b, const char *name); /* NULL on failure */

/* The rule for a name without prefix and suffix, and the numbers in it; NULL: there is none. */
const hf_rule *hf_find_rule(const hf_arch *a, text_view stem, int64_t numbers[2]);
/* A rule's target with the number of its block; false where that makes a name too long. */
bool hf_target_name(char out[LIMIT_NAME_BYTES + 1], const char *pattern, int64_t block, const char *suffix);
/* The item of that name with `part` at its place among n; NULL on failure. */
hf_item *hf_place(hf_build *b, const char *name, uint32_t n, uint32_t at, hf_part part);
/* A failure that names a stored tensor and its file. Keeps the first. */
void hf_tensor_fail(hf_build *b, const st_tensor *t, loam_status code, const char *what);
/* The n-th row of the table whose models have that general.architecture; NULL behind the last. */
const hf_arch *hf_arch_named(text_view name, int n);

/* PATH/NAME; NULL without memory. mem_free it. */
char *hf_path(const char *folder, const char *name);
/* Opens a JSON file of the folder; *out is NULL where there is none. */
loam_status hf_open_json(js **out, const char *folder, const char *name, loam_error *err);

/* ---- vocabulary ---- */

typedef struct hf_vocab {
    text_view *tokens;
    int32_t *types;
    float *scores;
    bool *special;     /* added as special */
    uint32_t n, cap;
    void *kept;        /* blocks of text that is not stored as it is, the newest first */
    size_t kept_left;  /* bytes free in it */
    map index;         /* by text as in the files, for ids of special tokens */
    js *tokenizer, *config, *special_map, *generation;
    os_file model_file; /* tokenizer.model */
    const char *kind;  /* tokenizer.ggml.model */
    int64_t unknown;
} hf_vocab;

enum { HF_NORMAL = 1, HF_UNKNOWN = 2, HF_CONTROL = 3, HF_USER = 4, HF_UNUSED = 5, HF_BYTE = 6 };

/* Room for ids below n; false: out of memory. */
bool hf_vocab_room(hf_vocab *v, uint32_t n);
/* Copies text into the vocabulary's own memory. data NULL: out of memory. */
text_view hf_vocab_keep(hf_vocab *v, const char *text, size_t len);
void hf_read_tokenizer_json(hf_build *b, hf_vocab *v);
void hf_read_spm(hf_build *b, hf_vocab *v);
void hf_put_special(hf_build *b, hf_vocab *v); /* ids, flags, chat template */
/* tokenizer.ggml.pre of a byte-level tokenizer, by the steps of its "pre_tokenizer"; NULL where it is not known. */
const char *hf_pre_name(const js *tokenizer);

#endif
