/* charsmap.c - see charsmap.h. Refuses tables whose head does not fit their size; whatever a unit says, nothing outside the
 * table is read: a walk that leaves it has no match. */
#include "tokenizer/charsmap.h"

#include <string.h>

static uint32_t read_u32(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }

bool charsmap_open(charsmap *m, const char *data, size_t size)
{
    const uint8_t *p = (const uint8_t *)data;
    *m = (charsmap){ 0 };
    if (size < 4) return false;
    uint32_t n = read_u32(p);
    if (n >= size - 4 || n % 4 || n == 0 || data[size - 1] != 0) return false;
    *m = (charsmap){ p + 4, n / 4, data + 4 + n, size - 4 - n };
    return true;
}

/* The fields of a unit. */
static uint32_t offset_of(uint32_t u) { return (u >> 10) << ((u & 0x200) >> 6); }
static uint32_t label_of(uint32_t u) { return u & 0x800000FFu; }
static bool is_leaf(uint32_t u) { return u >> 8 & 1; }

size_t charsmap_match(const charsmap *m, const char *s, size_t n, text_view *replacement)
{
    size_t longest = 0;
    if (m->n_units == 0) return 0;
    uint32_t node = offset_of(read_u32(m->units));
    for (size_t i = 0; i < n && s[i]; i++) {
        node ^= (uint8_t)s[i];
        if (node >= m->n_units) break;
        uint32_t unit = read_u32(m->units + 4 * (size_t)node);
        if (label_of(unit) != (uint8_t)s[i]) break;
        node ^= offset_of(unit);
        if (!is_leaf(unit)) continue;
        if (node >= m->n_units) break;
        uint32_t value = read_u32(m->units + 4 * (size_t)node) & 0x7FFFFFFFu;
        if (value >= m->n_strings) break;
        longest = i + 1;
        *replacement = (text_view){ m->strings + value, strlen(m->strings + value) };
    }
    return longest;
}
