/* loam/pool.h - threads that several contexts may share.
 *
 *     loam_pool *few, *many;
 *     loam_pool_new(&few, 4, &err);  loam_pool_new(&many, 16, &err);
 *     loam_context_attach_pools(ctx, few, many, &err);         // one token at a time on 4 threads, prompts on 16
 *
 * Contexts in different threads may have the same pool: whoever finds it at work waits for the end of that run. */
#ifndef LOAM_POOL_H
#define LOAM_POOL_H

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_pool loam_pool;

/* A pool of n_threads (1 .. 512), the thread that calls for a run included: n_threads - 1 are started, with stacks of 256 KB.
 * Where the system starts fewer the pool is smaller, with a warning in the log. Errors: ARG, NOMEM; *out is NULL then. */
LOAM_API loam_status loam_pool_new(loam_pool **out, int32_t n_threads, loam_error *err);
LOAM_API void loam_pool_free(loam_pool *pool); /* no context may have it; NULL is fine */
LOAM_API int32_t loam_pool_n_threads(const loam_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
