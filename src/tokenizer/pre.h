/* pre.h - pre-tokenizers of byte-level BPE: lists of splitters, each cutting the pieces of the one before.
 *
 * pre.tab.h has a row per family of names. A splitter is a list of matchers tried in order at a position; what none of them
 * matches becomes pieces of its own. All scanners are linear: none backtracks over more than it consumes. */
#ifndef LOAM_TOKENIZER_PRE_H
#define LOAM_TOKENIZER_PRE_H

#include "tokenizer/unicode.h"

#define PRE_SPLITTERS 6 /* of one pre-tokenizer, at most */

/* Flags of a row. */
#define PRE_NOCLEAN       1u /* decoded text is not cleaned */
#define PRE_IGNORE_MERGES 2u
#define PRE_BOS           4u   /* add_bos on */
#define PRE_SEP           8u   /* add_sep on */
#define PRE_ESCAPE        16u  /* spaces become SPACE_MARK */
#define PRE_NOBOSID       32u  /* no default bos */
#define PRE_RAW           64u  /* no byte alphabet */
#define PRE_NLWHOLE       128u /* pieces of newlines are whole tokens; add_bos is forced */
#define PRE_NOLOWER       256u /* lowercase off */

/* Splitters. */
enum splitter {
    SPLIT_END,
    SPLIT_N1,
    SPLIT_N13,
    SPLIT_NRUN,
    SPLIT_D3,
    SPLIT_CRLF,
    SPLIT_NONWS,
    SPLIT_WSEND,
    SPLIT_LWORD,
    SPLIT_PWORD,
    SPLIT_DSPUNCT,
    SPLIT_DSCASED,
    SPLIT_DEFPUNCT,
    SPLIT_FALPUNCT,
    SPLIT_CJKKANA,
    SPLIT_CJKHANGUL,
    SPLIT_SEASIA,
    SPLIT_CHAMPUNCT,
    SPLIT_CHAMSENT,
    SPLIT_CHAMIMG,
    SPLIT_CHAMWS,
    SPLIT_YOUTUCJK,
    SPLIT_BLOOM,
    SPLIT_GPT2,
    SPLIT_LLAMA3,
    SPLIT_QWEN2,
    SPLIT_QWEN35,
    SPLIT_KIMI,
    SPLIT_DS3,
    SPLIT_SPARK,
    SPLIT_YOUTU,
    SPLIT_AYA,
    SPLIT_TEKKEN,
    SPLIT_GPT4O,
    SPLIT_GRANITE97,
    SPLIT_JAIS2,
    SPLIT_MINICPM5,
    SPLIT_SEED,
    SPLIT_UFAK,
    SPLIT_EXAMOE,
    SPLIT_GROUP3,
    SPLIT_DIGITS,
    SPLIT_NEWLINES
};

typedef struct pre_row {
    const char *names;                      /* separated by spaces */
    unsigned char splitters[PRE_SPLITTERS]; /* enum splitter, 0 ends */
    unsigned flags;
} pre_row;

/* The row of a name; NULL where no pre-tokenizer has it. The empty name is "default". */
const pre_row *pre_find(const char *name, size_t len);

/* Walks the pieces of a fragment: `pre_walk w; pre_start(&w, row, t, n); while (pre_next(&w, &a, &b)) piece(t + a .. t + b)` */
typedef struct pre_level {
    size_t at, end; /* what is left of the piece that this level cuts */
    size_t run_end; /* end of a run of white space or digits that was looked for before: it need not be found again */
} pre_level;

typedef struct pre_walk {
    const pre_row *row;
    const glyph *t;
    int depth; /* index of the last splitter */
    pre_level level[PRE_SPLITTERS];
} pre_walk;

void pre_start(pre_walk *w, const pre_row *row, const glyph *t, size_t n);
bool pre_next(pre_walk *w, size_t *begin, size_t *end);

/* The end of the next piece of what is left at a level (at < end), cut by one splitter (splitters.c). */
size_t splitter_cut(enum splitter which, pre_level *v, const glyph *t);

#endif
