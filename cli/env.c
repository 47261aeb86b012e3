/* env.c - the command's door to the environment: LOAM_MODEL, HOME, XDG_CACHE_HOME. docs/environment.md lists them. */
#include <stdlib.h>

#include "util.h"

const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
