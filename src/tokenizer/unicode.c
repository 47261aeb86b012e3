/* unicode.c - see unicode.h. Nothing is refused: every byte string decodes. */
#include "tokenizer/unicode.h"

#include <string.h>
#include <utf8proc.h>

bool uni_decodable(const char *s, size_t n, size_t *used)
{
    size_t len = uni_step(s[0]);
    unsigned char lead = (unsigned char)s[0];
    *used = 1;
    if ((lead >= 0x80 && lead < 0xC0) || lead >= 0xF8 || len > n) return false;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80) return false;
    *used = len;
    return true;
}

uint32_t uni_decode(const char *s, size_t n, size_t *used)
{
    if ((unsigned char)s[0] < 0x80) {
        *used = 1;
        return (unsigned char)s[0];
    }
    if (!uni_decodable(s, n, used)) return UNI_BAD;
    static const unsigned char lead_mask[5] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    uint32_t cp = (unsigned char)s[0] & lead_mask[*used];
    for (size_t i = 1; i < *used; i++) cp = cp << 6 | ((unsigned char)s[i] & 0x3F);
    return cp > UNI_MAX ? UNI_BAD : cp;
}

size_t uni_encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

/* What Unicode 15.1 assigned, for a utf8proc of 15.0: description characters and the ideographs of extension I. */
static unsigned class_15_1(uint32_t cp)
{
    if ((cp >= 0x2FFC && cp <= 0x2FFF) || cp == 0x31EF) return 64;
    return cp >= 0x2EBF0 && cp <= 0x2EE5D ? 4 : 1;
}

unsigned uni_class(uint32_t cp)
{
    if (cp > UNI_MAX) return 1;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return 4;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return 2;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return 8;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return 16;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return 32;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return 64;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS: return 128;
    default: return class_15_1(cp);
    }
}

bool uni_space(uint32_t cp)
{
    if (cp < 0x80) return cp == 0x20 || (cp >= 0x09 && cp <= 0x0D);
    if (cp < 0x1680) return cp == 0x85 || cp == 0xA0;
    return cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F ||
           cp == 0x3000;
}

uint32_t uni_lower(uint32_t cp)
{
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    return cp > UNI_MAX ? cp : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

uint32_t uni_base(uint32_t cp)
{
    if (cp < 0xC0 || cp > UNI_MAX) return cp;
    utf8proc_int32_t out[8]; /* the longest canonical decomposition has four */
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, out, 8, UTF8PROC_DECOMPOSE, &boundary);
    return n > 0 ? (uint32_t)out[0] : cp;
}

glyph uni_glyph(uint32_t cp)
{
    glyph width = cp < 0x80 ? 0 : cp < 0x800 ? 1 : cp < 0x10000 ? 2 : 3;
    return cp | G_CLASS(uni_class(cp)) | (uni_space(cp) ? G_WS : 0) | width << 30;
}

/* Classes of ASCII, one character each, so that plain text asks no library. */
static const char ascii_class[129] = "CCCCCCCCCWWWWWCCCCCCCCCCCCCCCCCC"
                                     "ZPPPSPPPPPPSPPPP"
                                     "NNNNNNNNNNPPSSSP"
                                     "PLLLLLLLLLLLLLLLLLLLLLLLLLLPPPSPSLLLLLLLLLLLLLLLLLLLLLLLLLLPSPSC";

static glyph ascii_glyph(unsigned char c)
{
    switch (ascii_class[c]) {
    case 'L': return c | G_L;
    case 'N': return c | G_N;
    case 'P': return c | G_P;
    case 'S': return c | G_S;
    case 'Z': return c | G_Z | G_WS;
    case 'W': return c | G_C | G_WS;
    default: return c | G_C;
    }
}

size_t uni_glyphs(const char *s, size_t n, uint32_t space, glyph *out, bool *same)
{
    glyph ascii[128];
    for (unsigned c = 0; c < 128; c++) ascii[c] = ascii_glyph((unsigned char)c);
    ascii[' '] = uni_glyph(space);
    size_t count = 0;
    *same = space == ' ' || !memchr(s, ' ', n);
    for (size_t i = 0; i < n;) {
        if ((unsigned char)s[i] < 0x80) {
            out[count++] = ascii[(unsigned char)s[i++]];
            continue;
        }
        size_t used;
        glyph g = uni_glyph(uni_decode(s + i, n - i, &used));
        if (glyph_bytes(g) != used) *same = false;
        out[count++] = g;
        i += used;
    }
    return count;
}

static bool in_alphabet(uint32_t b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xFF && b != 0xAD); }

/* Bytes outside the alphabet, in increasing order: 00-20, 7F-A0, AD. */
uint32_t byte_to_cp(uint8_t b)
{
    if (in_alphabet(b)) return b;
    return 0x100u + (b <= 0x20 ? b : b <= 0xA0 ? b - 0x7Fu + 0x21u : 0x43u);
}

int cp_to_byte(uint32_t cp)
{
    if (cp < 0x100) return in_alphabet(cp) ? (int)cp : -1;
    if (cp <= 0x120) return (int)cp - 0x100;
    if (cp <= 0x142) return (int)cp - 0x121 + 0x7F;
    return cp == 0x143 ? 0xAD : -1;
}

size_t bytes_from_alphabet(const char *s, size_t n, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i++];
        if (c > 0x20 && c < 0x7F) {
            out[len++] = (char)c;
            continue;
        }
        if (c < 0xC2 || c > 0xC5 || i == n || (s[i] & 0xC0) != 0x80) return SIZE_MAX;
        int b = cp_to_byte((c & 0x1Fu) << 6 | ((unsigned char)s[i++] & 0x3Fu));
        if (b < 0) return SIZE_MAX;
        out[len++] = (char)b;
    }
    return len;
}
