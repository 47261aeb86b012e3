/* split.c - joins the parts of a split file, PREFIX-00001-of-0000N.gguf.
 *
 * Each part is a complete GGUF file with its own data section; part 1 carries the metadata. Loading starts from part 1. The
 * keys split.no (from 0), split.count and split.tensors.count must agree with the names and with what is there, and
 * split.set, which Loam writes beside them, must be the same in all parts; a part that is missing, mixed up or from another set is refused by its full path. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/gguf_impl.h"

#define TAIL_BYTES 20 /* "-00001-of-00003.gguf" */

/* Reads five digits. */
static bool five_digits(const char *s, uint32_t *n)
{
    *n = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        *n = *n * 10 + (uint32_t)(s[i] - '0');
    }
    return true;
}

static bool parse_name(const char *path, uint32_t *number, uint32_t *count)
{
    size_t len = strlen(path);
    if (len < TAIL_BYTES) return false;
    const char *t = path + len - TAIL_BYTES;
    return t[0] == '-' && five_digits(t + 1, number) && memcmp(t + 6, "-of-", 4) == 0 && five_digits(t + 10, count) &&
           strcmp(t + 15, ".gguf") == 0;
}

/* The path of part `number` (from 1), written over the tail of a copy of the first part's path. */
static char *part_name(const char *path, uint32_t number, uint32_t count)
{
    size_t len = strlen(path);
    char *name = mem_strdup(path, len);
    char tail[2 * TAIL_BYTES];
    snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", number, count);
    if (name) memcpy(name + len - TAIL_BYTES, tail, TAIL_BYTES);
    return name;
}

typedef struct split_keys {
    int64_t no, count, tensors;
    uint64_t set; /* the mark of the writing; 0: none */
} split_keys;

/* count 0: the file is not split. */
static loam_status read_keys(const gguf_file *f, split_keys *k, loam_error *err)
{
    *k = (split_keys){ 0 };
    loam_status s = gguf_get_int(f, "split.count", GGUF_OPTIONAL, (gguf_range){ 0, LIMIT_SPLITS }, &k->count, err);
    if (s != LOAM_OK || k->count <= 1) {
        k->count = 0;
        return s;
    }
    s = gguf_get_int(f, "split.no", GGUF_REQUIRED, (gguf_range){ 0, k->count - 1 }, &k->no, err);
    if (s != LOAM_OK) return s;
    s = gguf_get_int(f, "split.tensors.count", GGUF_REQUIRED, (gguf_range){ 0, LIMIT_TENSORS }, &k->tensors, err);
    return s == LOAM_OK ? gguf_get_u64(f, "split.set", GGUF_OPTIONAL, &k->set, err) : s;
}

static loam_status check_first(const gguf_file *f, const split_keys *k, loam_error *err)
{
    uint32_t number, count;
    if (!parse_name(f->path, &number, &count))
        return fail(err, LOAM_E_FORMAT, "%s: part %lld of %lld; to be found, parts are named PREFIX-00001-of-%05lld.gguf",
                    f->label, (long long)k->no + 1, (long long)k->count, (long long)k->count);
    if (number != k->no + 1 || count != k->count)
        return fail(err, LOAM_E_FORMAT, "%s: named part %u of %u, but its keys split.no and split.count say part %lld of %lld",
                    f->label, number, count, (long long)k->no + 1, (long long)k->count);
    if (k->no == 0) return LOAM_OK;
    char *first = part_name(f->path, 1, count);
    loam_status s = first ? fail(err, LOAM_E_ARG, "%s: part %u of %u; open the first part: %s", f->label, number, count, first)
                          : fail_nomem(err, "a file name", strlen(f->path));
    mem_free(first);
    return s;
}

static loam_status take_tensors(gguf_file *f, gguf_file *part, uint32_t number, loam_error *err)
{
    size_t total = f->n_tensors + part->n_tensors;
    if (total > LIMIT_TENSORS) return fail(err, LOAM_E_FORMAT, "%s: over %u tensors in all parts", f->label, LIMIT_TENSORS);
    if (!mem_grow(&f->tensors, &f->tensor_cap, total, sizeof *f->tensors, LIMIT_TENSORS))
        return fail_nomem(err, "the table of tensors", total * sizeof *f->tensors);
    for (size_t i = 0; i < part->n_tensors; i++) {
        f->tensors[f->n_tensors + i] = part->tensors[i];
        f->tensors[f->n_tensors + i].part = number;
    }
    f->n_tensors = total;
    map_free(&part->tensor_index);
    mem_free(part->tensors);
    part->tensors = NULL;
    part->n_tensors = 0;
    return LOAM_OK;
}

static loam_status open_part(gguf_file *f, uint32_t i, const split_keys *first, unsigned flags, loam_error *err)
{
    char *name = part_name(f->path, i + 1, (uint32_t)first->count);
    if (!name) return fail_nomem(err, "a file name", strlen(f->path));
    gguf_file *part;
    loam_status s = gguf_open(&part, name, flags | GGUF_PART, err);
    mem_free(name);
    if (s == LOAM_E_IO) return fail_prefix(err, s, "part %u of %lld", i + 1, (long long)first->count);
    if (s != LOAM_OK) return s;
    f->parts[f->n_parts++] = part;
    split_keys k;
    s = read_keys(part, &k, err);
    if (s != LOAM_OK) return s;
    if (k.count != first->count || k.no != (int64_t)i)
        return fail(err, LOAM_E_FORMAT, "%s: its keys say part %lld of %lld; part %u of %lld is required here", part->label,
                    (long long)k.no + 1, (long long)k.count, i + 1, (long long)first->count);
    if (k.tensors != first->tensors)
        return fail(err, LOAM_E_FORMAT,
                    "%s: key 'split.tensors.count' is %lld, in the first part %lld: parts of different files?", part->label,
                    (long long)k.tensors, (long long)first->tensors);
    if (k.set != first->set)
        return fail(err, LOAM_E_FORMAT, "%s: key 'split.set' differs from that of the first part: parts of different files",
                    part->label);
    return take_tensors(f, part, i, err);
}

loam_status gguf_join_parts(gguf_file *f, unsigned flags, loam_error *err)
{
    split_keys k;
    loam_status s = read_keys(f, &k, err);
    if (s != LOAM_OK || k.count == 0) return s;
    s = check_first(f, &k, err);
    if (s != LOAM_OK) return s;
    f->parts = mem_zalloc_array((size_t)k.count, sizeof *f->parts);
    if (!f->parts) return fail_nomem(err, "the table of parts", (uint64_t)k.count * sizeof *f->parts);
    for (uint32_t i = 1; s == LOAM_OK && i < (uint32_t)k.count; i++) s = open_part(f, i, &k, flags, err);
    if (s == LOAM_OK) s = gguf_index_tensors(f, err);
    if (s == LOAM_OK && (int64_t)f->n_tensors != k.tensors)
        s = fail(err, LOAM_E_FORMAT, "%s: key 'split.tensors.count' says %lld tensors, the parts hold %zu", f->label,
                 (long long)k.tensors, f->n_tensors);
    return s;
}
