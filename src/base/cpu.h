/* cpu.h - which instruction sets the CPU has and the operating system saves. */
#ifndef LOAM_BASE_CPU_H
#define LOAM_BASE_CPU_H

#define CPU_AVX2 1u        /* AVX2, FMA, F16C, BMI2 */
#define CPU_AVX512 2u      /* AVX-512 F, BW, DQ, VL */
#define CPU_AVX512VNNI 4u
#define CPU_AVX512BF16 8u
#define CPU_NEON 16u       /* every 64-bit ARM */
#define CPU_DOTPROD 32u    /* + SDOT */
#define CPU_I8MM 64u       /* + SMMLA */

unsigned cpu_features(void);

#endif
