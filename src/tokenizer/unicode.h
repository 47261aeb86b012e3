/* unicode.h - code points as the tokenizers see them: lenient UTF-8, character classes, lower case, base letters.
 *
 * Categories and decompositions come from utf8proc, brought to Unicode 15.1. A *glyph* packs a code point with all that the
 * splitters ask about it:
 *
 *   bit 0..20 code point | 21..28 class, one bit of U N L Z M P S C | 29 white space | 30..31 bytes of its UTF-8 form - 1
 *
 * The glyph 0 stands for "no character" (beyond the end): it has no class, so every question about it answers no. */
#ifndef LOAM_TOKENIZER_UNICODE_H
#define LOAM_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t glyph;

#define UNI_BAD 0xFFFDu /* what broken text decodes to */
#define UNI_MAX 0x10FFFFu

#define G_CP         0x1FFFFFu
#define G_CLASS(bit) ((glyph)(bit) << 21)
#define G_U          G_CLASS(1)   /* unassigned */
#define G_N          G_CLASS(2)   /* number */
#define G_L          G_CLASS(4)   /* letter */
#define G_Z          G_CLASS(8)   /* separator; all of them are white space */
#define G_M          G_CLASS(16)  /* mark */
#define G_P          G_CLASS(32)  /* punctuation */
#define G_S          G_CLASS(64)  /* symbol */
#define G_C          G_CLASS(128) /* control, format, surrogate, private use */
#define G_WS         ((glyph)1 << 29)

static inline uint32_t glyph_cp(glyph g) { return g & G_CP; }
static inline size_t glyph_bytes(glyph g) { return (size_t)(g >> 30) + 1; }

/* One code point from n >= 1 bytes; *used gets the bytes consumed (1 to 4). A byte that begins no complete character gives
 * UNI_BAD and consumes one byte. Overlong forms and surrogates pass; a value above UNI_MAX becomes UNI_BAD. */
uint32_t uni_decode(const char *s, size_t n, size_t *used);
/* True where the bytes at s begin a complete character; *used as above (1 where false). */
bool uni_decodable(const char *s, size_t n, size_t *used);
/* Writes the UTF-8 form (at most 4 bytes) of a code point up to UNI_MAX; returns its length. */
size_t uni_encode(uint32_t cp, char *out);

/* Bytes of the character that b begins, told by b alone (continuation bytes count as one). */
static inline size_t uni_step(char b)
{
    unsigned char c = (unsigned char)b;
    return c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

glyph uni_glyph(uint32_t cp);
unsigned uni_class(uint32_t cp); /* 1 U, 2 N, 4 L, 8 Z, 16 M, 32 P, 64 S, 128 C */
bool uni_space(uint32_t cp);     /* White_Space */
uint32_t uni_lower(uint32_t cp); /* simple mapping, one to one */
uint32_t uni_base(uint32_t cp);  /* first code point of the canonical decomposition */

/* Decodes n bytes into out (room for n glyphs) and returns how many there are. space is the code point that byte 20 gives.
 * *same tells whether encoding them gives back the same bytes: false for broken or overlong text and other spaces. */
size_t uni_glyphs(const char *s, size_t n, uint32_t space, glyph *out, bool *same);

/* The 68 bytes that the byte alphabet moves to U+0100..0143; all others stand for themselves. */
uint32_t byte_to_cp(uint8_t b);
int cp_to_byte(uint32_t cp); /* -1 outside the alphabet */

/* Undoes the byte alphabet: n bytes of text to at most n bytes at out; returns the length, or SIZE_MAX where a character is
 * outside the alphabet or broken. */
size_t bytes_from_alphabet(const char *s, size_t n, char *out);

#endif
