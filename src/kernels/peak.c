/* peak.c - loops of nothing but multiply-adds: the most that a thread can do with the instructions of a set of kernels.
 *
 *     acc[0] += a * b      12 independent sums, so that the next one never waits for the last
 *     ...
 *     acc[11] += a * b     12 instructions a turn, operands in registers, no loads
 *
 * The integer loop is the instruction of the set's products: VPDPBUSD, else VPMADDUBSW (whose sums of 16 bits need
 * further instructions: a limit that no product reaches); on ARM SMMLA, SDOT or SMLAL. The float loop is a fused
 * multiply-add of the set's vector length. The reference set has none: 0. */
#include <string.h>

#include "base/os.h"
#include "kernels/kernels.h"

enum { TURNS = 4000, SUMS = 12, SLICES = 40 };

#define TWELVE(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)

#if defined(__x86_64__)
#define CLEAR(i) "vpxor %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n"
#define LOOP(OP)                                                                                                         \
    __asm__ volatile(TWELVE(CLEAR) CLEAR(14) CLEAR(15) "1:\n" TWELVE(OP) "dec %0\n jnz 1b\n vzeroupper" : "+r"(turns)::  \
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14",       \
        "xmm15", "cc")
#define DPBUSD(i) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #i "\n"
#define MADDUBS512(i) "vpmaddubsw %%zmm14, %%zmm15, %%zmm" #i "\n"
#define MADDUBS256(i) "vpmaddubsw %%ymm14, %%ymm15, %%ymm" #i "\n"
#define FMA512(i) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #i "\n"
#define FMA256(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n"
#define LOOP_FN(name, OP) static void name(long turns) { LOOP(OP); }
LOOP_FN(dpbusd, DPBUSD)
LOOP_FN(maddubs512, MADDUBS512)
LOOP_FN(maddubs256, MADDUBS256)
LOOP_FN(fma512, FMA512)
LOOP_FN(fma256, FMA256)
#elif defined(__aarch64__)
#define CLEAR(i) "movi v" #i ".4s, #0\n"
#define LOOP(OP)                                                                                                         \
    __asm__ volatile(TWELVE(CLEAR) CLEAR(14) CLEAR(15) "1:\n"         \
        TWELVE(OP) "subs %0, %0, #1\n b.ne 1b" : "+r"(turns):: "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8",      \
        "v9", "v10", "v11", "v14", "v15", "cc")
/* By their numbers, since assemblers know them only for processors that have them. */
#define SMMLA(i) ".inst 0x4e8fa5c0 + " #i "\n" /* smmla v<i>.4s, v14.16b, v15.16b */
#define SDOT(i) ".inst 0x4e8f95c0 + " #i "\n"  /* sdot v<i>.4s, v14.16b, v15.16b */
#define SMLAL(i) "smlal v" #i ".8h, v14.8b, v15.8b\n"
#define FMLA(i) "fmla v" #i ".4s, v14.4s, v15.4s\n"
#define LOOP_FN(name, OP) static void name(long turns) { LOOP(OP); }
LOOP_FN(smmla, SMMLA)
LOOP_FN(sdot, SDOT)
LOOP_FN(smlal, SMLAL)
LOOP_FN(fmla, FMLA)
#endif

typedef struct peak {
    const char *set;
    struct {
        void (*loop)(long turns);
        int macs; /* of one instruction */
    } of[2];      /* integers, floats */
} peak;

static const peak peaks[] = {
#if defined(__x86_64__)
    { "avx2", { { maddubs256, 32 }, { fma256, 8 } } },
    { "avx512", { { maddubs512, 64 }, { fma512, 16 } } },
    { "avx512vnni", { { dpbusd, 64 }, { fma512, 16 } } },
#elif defined(__aarch64__)
    { "neon", { { smlal, 8 }, { fmla, 4 } } },
    { "dotprod", { { sdot, 16 }, { fmla, 4 } } },
    { "i8mm", { { smmla, 32 }, { fmla, 4 } } },
#endif
    { "", { { NULL, 0 }, { NULL, 0 } } },
};

double kernels_peak(const kernels *set, bool floats)
{
    const peak *p = peaks;
    while (p->set[0] && strcmp(p->set, set->name) != 0) p++;
    if (!p->of[floats].loop) return 0;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < SLICES; i++) {
        uint64_t start = os_now_ns();
        p->of[floats].loop(TURNS);
        uint64_t took = os_now_ns() - start;
        if (took < best) best = took;
    }
    return (double)TURNS * SUMS * p->of[floats].macs / (double)(best ? best : 1) * 1e9;
}
