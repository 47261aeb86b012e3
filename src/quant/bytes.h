/* bytes.h - reading and writing the fields of a block: little-endian, at any address. Hosts of the other byte order are
 * not supported (the build refuses them below). */
#ifndef LOAM_QUANT_BYTES_H
#define LOAM_QUANT_BYTES_H

#include <stdint.h>
#include <string.h>

#include "quant/half.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the codecs read little-endian blocks in place"
#endif

static inline uint16_t get_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t get_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void put_u16(uint8_t *p, uint16_t v) { memcpy(p, &v, sizeof v); }
static inline void put_u32(uint8_t *p, uint32_t v) { memcpy(p, &v, sizeof v); }
static inline float get_f16(const uint8_t *p) { return f16_to_f32(get_u16(p)); }
static inline void put_f16(uint8_t *p, float v) { put_u16(p, f32_to_f16(v)); }

/* The scale of an IQ1_M block, stored in quarters (iq1.c). */
static inline uint16_t iq1_m_scale(const uint8_t *b)
{
    uint16_t h = 0;
    for (int i = 0; i < 4; i++) h |= (uint16_t)(get_u16(b + 48 + 2 * i) >> 12 << 4 * i);
    return h;
}

#endif
