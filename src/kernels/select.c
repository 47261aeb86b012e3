/* select.c - builds the kernel tables: reference first, instruction sets in ascending order, frozen afterwards. */
#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "base/env.h"
#include "base/error.h"
#include "kernels/kernels.h"

#define FILLS 6

typedef struct kernel_set {
    const char *name;
    unsigned needs;                    /* CPU_* bits */
    void (*fill[FILLS])(kernels *k);
} kernel_set;

/* Ascending: each set is built on all sets before it. */
static const kernel_set sets[] = {
    { "ref", 0, { kernels_ref_mul, kernels_ref_row, kernels_ref_attn, kernels_ref_state, kernels_ref_gemm, kernels_ref_learn } },
#if defined(__x86_64__)
    { "avx2", CPU_AVX2, { kernels_avx2_mul, kernels_avx2_row, kernels_avx2_state, kernels_avx2_gemm, kernels_avx2_learn } },
    { "avx512", CPU_AVX512, { kernels_avx512_mul, kernels_avx512_row, kernels_avx512_state, kernels_avx512_gemm, kernels_avx512_learn } },
    { "avx512vnni", CPU_AVX512VNNI, { kernels_avx512vnni_mul } },
#elif defined(__aarch64__)
    { "neon", CPU_NEON, { kernels_neon_mul, kernels_neon_row, kernels_neon_attn, kernels_neon_state, kernels_neon_gemm, kernels_neon_learn } },
    { "dotprod", CPU_DOTPROD, { kernels_dotprod_mul } },
    { "i8mm", CPU_I8MM, { kernels_i8mm_mul } },
#endif
};
#define N_SETS ((int)(sizeof sets / sizeof sets[0]))

static kernels tables[N_SETS];
static int n_tables;      /* sets that this machine can run */
static int chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int index_of(const char *name)
{
    for (int i = 0; i < N_SETS; i++)
        if (strcmp(sets[i].name, name) == 0) return i;
    return -1;
}

static void build(void)
{
    unsigned have = cpu_features();
    for (int i = 0; i < N_SETS && (sets[i].needs & ~have) == 0; i++) {
        if (i > 0) tables[i] = tables[i - 1];
        for (int f = 0; f < FILLS; f++)
            if (sets[i].fill[f]) sets[i].fill[f](&tables[i]);
        tables[i].name = sets[i].name;
        n_tables = i + 1;
    }
    const char *cap = env_get("LOAM_CPU");
    int at = cap ? index_of(cap) : -1;
    chosen = at >= 0 && at < n_tables ? at : n_tables - 1;
    if (cap && chosen != at) log_at(LOAM_LOG_WARN, "LOAM_CPU=%s: %s; using %s", cap, at < 0 ? "no such set of kernels" : "this machine cannot run it", sets[chosen].name);
}

const kernels *kernels_get(void)
{
    pthread_once(&once, build);
    return &tables[chosen];
}

const kernels *kernels_for(const char *name)
{
    pthread_once(&once, build);
    int at = index_of(name);
    return at >= 0 && at < n_tables ? &tables[at] : NULL;
}

const char *kernels_set_name(int i) { return i >= 0 && i < N_SETS ? sets[i].name : NULL; }
