/* archs.c - the list of architectures: those that run, and those that are known and refused by kind. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/arch/archs.h"
#include "base/near.h"

static const arch_spec *const families[] = { archs_llama, archs_qwen, archs_gemma, archs_gpt, archs_dense, archs_moe,
                                             archs_deepseek, archs_recurrent, archs_hybrid, archs_diffusion, archs_encoders };

#define FAMILIES (sizeof families / sizeof *families)

/* Known names that do not run yet. */
static const struct {
    const char *kind, *names;
} refused[] = {
    { "hybrid of latent attention and recurrence", "kimi-linear" },
    { "decoder with per-layer inputs", "gemma3n gemma4" },
};

const arch_spec *arch_at(int i)
{
    for (size_t f = 0; f < FAMILIES; f++)
        for (const arch_spec *a = families[f]; a->name; a++)
            if (i-- == 0) return a;
    return NULL;
}

static bool same(const char *name, const char *text, size_t len) { return strlen(name) == len && !memcmp(name, text, len); }

const arch_spec *arch_find(const char *name, size_t len)
{
    const arch_spec *a;
    for (int i = 0; (a = arch_at(i)); i++)
        if (same(a->name, name, len)) return a;
    return NULL;
}

/* Of two short names, letters' case aside. */
static int distance(const char *a, size_t n, const char *b)
{
    enum { MOST = 40 };
    size_t m = strlen(b);
    char small_a[MOST], small_b[MOST];
    if (n > MOST || m > MOST) return MOST;
    for (size_t i = 0; i < n; i++) small_a[i] = (char)tolower((unsigned char)a[i]);
    for (size_t i = 0; i < m; i++) small_b[i] = (char)tolower((unsigned char)b[i]);
    return near_distance(small_a, n, small_b, m);
}

const char *arch_printable(char out[64], const char *name, size_t len)
{
    size_t n = len < 63 ? len : 63;
    for (size_t i = 0; i < n; i++) out[i] = name[i] >= 32 && name[i] < 127 ? name[i] : '?';
    out[n] = 0;
    return out;
}

loam_status arch_refuse(const char *name, size_t len, const char *file, loam_error *err)
{
    for (size_t r = 0; r < sizeof refused / sizeof *refused; r++)
        for (const char *at = refused[r].names; *at;) {
            size_t n = strcspn(at, " ");
            if (n == len && !memcmp(at, name, len))
                return fail(err, LOAM_E_UNSUPPORTED, "%s: architecture '%.*s' (%s) is not supported yet", file, (int)len, name,
                            refused[r].kind);
            at += n + (at[n] == ' ');
        }
    const arch_spec *a, *nearest = arch_at(0);
    for (int i = 0; (a = arch_at(i)); i++)
        if (distance(name, len, a->name) < distance(name, len, nearest->name)) nearest = a;
    char shown[64];
    return fail(err, LOAM_E_UNSUPPORTED, "%s: architecture '%s' is unknown; the nearest known name is '%s'", file,
                arch_printable(shown, name, len), nearest->name);
}
