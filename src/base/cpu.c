/* cpu.c - CPU detection. x86: GCC and clang check CPUID and the register state that the system saves (XGETBV). ARM: the
 * kernel tells every process what it may use. */
#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* clang 14 does not know the name. The system saves the registers if it saves those of AVX2. */
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static unsigned arm_features(void)
{
    unsigned f = CPU_NEON;
    if (getauxval(AT_HWCAP) & 1ul << 20) f |= CPU_DOTPROD;                        /* asimddp */
    if ((f & CPU_DOTPROD) && (getauxval(AT_HWCAP2) & 1ul << 13)) f |= CPU_I8MM; /* i8mm */
    return f;
}
#elif defined(__aarch64__)
static unsigned arm_features(void) { return CPU_NEON; }
#endif

unsigned cpu_features(void)
{
    unsigned f = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
        has_f16c())
        f |= CPU_AVX2;
    if ((f & CPU_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        f |= CPU_AVX512;
    if ((f & CPU_AVX512) && __builtin_cpu_supports("avx512vnni")) f |= CPU_AVX512VNNI;
    if ((f & CPU_AVX512) && __builtin_cpu_supports("avx512bf16")) f |= CPU_AVX512BF16;
#elif defined(__aarch64__)
    f = arm_features();
#endif
    return f;
}
