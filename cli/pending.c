/* pending.c - commands whose part of the library is not built yet say so. */
#include "util.h"

#define PENDING(name) \
    int name(const options *o) { return say_failed(o, "not supported by this build yet"); }

PENDING(cmd_run)
PENDING(cmd_inspect)
PENDING(cmd_tokenize)
PENDING(cmd_detokenize)
PENDING(cmd_quantize)
PENDING(cmd_perplexity)
PENDING(cmd_bench)
PENDING(cmd_debug_eval)
PENDING(cmd_debug_script)
PENDING(cmd_debug_make_model)
PENDING(cmd_debug_rows)
