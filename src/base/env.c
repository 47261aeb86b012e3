/* env.c - see env.h. */
#include "base/env.h"

#include <stdlib.h>

const char *env_get(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}
