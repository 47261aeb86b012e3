/* pending.c - commands whose part of the library is not built yet say so. */
#include "util.h"

#define PENDING(name) \
    int name(const options *o) { return say_failed(o, "not supported by this build yet"); }

PENDING(cmd_inspect)
PENDING(cmd_quantize)
