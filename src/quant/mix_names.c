/* mix_names.c - the table of mixes, expanded from mix.def, and how they are found by name. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "quant/mix.h"
#include "base/near.h"

static const mix_info mixes[MIX_COUNT] = {
#define MIX(NAME, text, file_type, type) { MIX_##NAME, text, file_type, LOAM_##type },
#include "quant/mix.def"
#undef MIX
    { MIX_COPY, "COPY", -1, -1 },
};

const mix_info *mix_at(int i) { return i >= 0 && i < MIX_COUNT ? &mixes[i] : NULL; }

enum { NAME_LIMIT = 32 };

/* A name without case and separators, as far as it matters for suggestions. */
static int squeeze(const char *name, char *to)
{
    int n = 0;
    for (; *name && n < NAME_LIMIT; name++)
        if (!strchr("_-. ", *name)) to[n++] = (char)(*name >= 'a' && *name <= 'z' ? *name - 32 : *name);
    return n;
}

/* Of two squeezed names. */
static int distance(const char *first_name, const char *second_name)
{
    char a[NAME_LIMIT], b[NAME_LIMIT];
    int na = squeeze(first_name, a), nb = squeeze(second_name, b);
    return near_distance(a, (size_t)na, b, (size_t)nb);
}

loam_status mix_find(const char *name, const mix_info **mix, loam_error *err)
{
    static const struct { const char *alias; mix_id id; } aliases[] = {
        { "Q3_K", MIX_Q3_K_M }, { "Q4_K", MIX_Q4_K_M }, { "Q5_K", MIX_Q5_K_M },
    };
    if (!name || !*name) return fail(err, LOAM_E_ARG, "no type was given");
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcasecmp(name, aliases[i].alias) == 0) name = mixes[aliases[i].id].name;
    char *end;
    long number = strtol(name, &end, 10);
    bool is_number = *end == 0 && name[strspn(name, "0123456789")] == 0;
    const mix_info *nearest = &mixes[0];
    for (int i = 0; i < MIX_COUNT; i++) {
        if (strcasecmp(name, mixes[i].name) == 0 || (is_number && number == mixes[i].file_type)) {
            *mix = &mixes[i];
            return LOAM_OK;
        }
        if (distance(name, mixes[i].name) < distance(name, nearest->name)) nearest = &mixes[i];
    }
    return fail(err, LOAM_E_ARG, "'%.40s' is not a type of quantization; the nearest name is %s", name, nearest->name);
}
