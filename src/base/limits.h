/* limits.h - every maximum of Loam, each with its reason. A file, prompt or setting beyond one of them is refused by name. */
#ifndef LOAM_BASE_LIMITS_H
#define LOAM_BASE_LIMITS_H

/* Files */
#define LIMIT_KEYS 65536u                    /* metadata pairs of a file: real files have under 100 */
#define LIMIT_KEY_BYTES 65535u               /* length of a key */
#define LIMIT_TENSORS 1000000u               /* tensors of a file: the largest real models have some 10,000 */
#define LIMIT_NAME_BYTES 63u                 /* tensor name without terminator: the field's limit */
#define LIMIT_STRING_BYTES (1u << 30)        /* one string value */
#define LIMIT_ARRAY_ITEMS (1u << 30)         /* one array value */
#define LIMIT_ALIGNMENT 65536u               /* general.alignment */
#define LIMIT_DIMS 4                         /* dimensions of a tensor */
#define LIMIT_SPLITS 65535u                  /* parts of a split file: a uint16 in the format */
#define LIMIT_JSON_BYTES (1u << 28)          /* a JSON document: the largest tokenizer.json have some 40 MB */
#define LIMIT_ST_HEADER (100u << 20)         /* header of a safetensors file: the format's limit */
#define LIMIT_ST_DIMS 8                      /* dimensions of a safetensors tensor */

/* Text */
#define LIMIT_TOKEN_BYTES (1u << 16)         /* one vocabulary entry */
#define LIMIT_VOCAB (1u << 24)               /* entries of a vocabulary: the largest real ones have 262,144 */
#define LIMIT_TEXT_BYTES (1u << 30)          /* one text to tokenize */

/* Models */
#define LIMIT_LAYERS 1024                    /* blocks */
#define LIMIT_EXPERTS 1024                   /* experts of a block */
#define LIMIT_HEADS 4096                     /* attention heads of a block */
#define LIMIT_WIDTH (1 << 24)                /* any width of a model: keeps products of two inside 64 bits */

/* Context */
#define LIMIT_SEQUENCES 256                  /* sequences of a context */
#define LIMIT_ROLL_BACK 64                   /* earlier states of a recurrent sequence: drafts are shorter */
#define LIMIT_CONTEXT (1 << 26)              /* tokens of a context */
#define LIMIT_BATCH (1 << 20)                /* tokens of a batch */
#define LIMIT_THREADS 512                    /* threads of a pool */

/* Graphs of the caller */
#define LIMIT_CUSTOM_INPUTS 64               /* inputs of a custom operation: more belong into one tensor */
#define LIMIT_DEVICES 16                     /* devices of a scheduler */
#define LIMIT_TENSOR_BYTES (1ll << 46)       /* of one tensor: keeps products of extents and strides inside 64 bits */

#endif
