/* env.h - the only door to the environment. docs/environment.md lists every name. */
#ifndef LOAM_BASE_ENV_H
#define LOAM_BASE_ENV_H

const char *env_get(const char *name); /* NULL where unset or empty */

#endif
