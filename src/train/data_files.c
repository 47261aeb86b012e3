/* data_files.c - finds the documents of files.
 *
 * Text: separated by blank lines, by lines, or the whole file; white space around a document is left out; one that is longer
 * than DATA_DOC_BYTES is cut at white space. JSON lines: each line is read and checked; empty ones are passed over. Refused by
 * the number of the line: what is no JSON object, and one without the keys that loam/data.h names. */
#include <string.h>

#include "train/data.h"

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static loam_status add(loam_data *d, uint32_t file, uint64_t at, uint64_t len, loam_error *err)
{
    if (!mem_grow(&d->docs, &d->docs_cap, d->n_docs + 1, sizeof *d->docs, SIZE_MAX / 64))
        return fail_nomem(err, "the list of documents", (d->n_docs + 1) * sizeof *d->docs);
    d->docs[d->n_docs++] = (data_doc){ at, (uint32_t)len, file };
    return LOAM_OK;
}

/* Text from a to b, without the white space around it, in parts of at most DATA_DOC_BYTES. */
static loam_status add_text(loam_data *d, uint32_t file, uint64_t a, uint64_t b, loam_error *err)
{
    const char *s = (const char *)d->files[file].file.data;
    while (a < b && is_space(s[a])) a++;
    while (b > a && is_space(s[b - 1])) b--;
    loam_status st = LOAM_OK;
    while (a < b && st == LOAM_OK) {
        uint64_t end = b - a <= DATA_DOC_BYTES ? b : a + DATA_DOC_BYTES;
        for (uint64_t back = end; end < b && back > a + DATA_DOC_BYTES / 2; back--)
            if (is_space(s[back])) {
                end = back;
                break;
            }
        st = add(d, file, a, end - a, err);
        a = end;
    }
    return st;
}

/* The end of the document that begins at a: the next blank line. */
static uint64_t blank_line(const char *s, uint64_t a, uint64_t n)
{
    for (uint64_t i = a; i < n; i++) {
        const char *nl = memchr(s + i, '\n', n - i);
        if (!nl) return n;
        i = (uint64_t)(nl - s);
        uint64_t k = i + 1;
        while (k < n && (s[k] == ' ' || s[k] == '\t' || s[k] == '\r')) k++;
        if (k < n && s[k] == '\n') return i;
    }
    return n;
}

static uint64_t line_end(const char *s, uint64_t a, uint64_t n)
{
    const char *nl = memchr(s + a, '\n', n - a);
    return nl ? (uint64_t)(nl - s) : n;
}

static loam_status find_texts(loam_data *d, uint32_t file, loam_error *err)
{
    const char *s = (const char *)d->files[file].file.data;
    uint64_t n = d->files[file].file.size;
    if (d->p.split == LOAM_SPLIT_FILE) return add_text(d, file, 0, n, err);
    loam_status st = LOAM_OK;
    for (uint64_t a = 0; a < n && st == LOAM_OK;) {
        uint64_t b = d->p.split == LOAM_SPLIT_LINE ? line_end(s, a, n) : blank_line(s, a, n);
        st = add_text(d, file, a, b, err);
        a = b + 1;
    }
    return st;
}

static loam_status find_lines(loam_data *d, uint32_t file, loam_error *err)
{
    const char *s = (const char *)d->files[file].file.data, *path = d->files[file].path;
    uint64_t n = d->files[file].file.size, line = 1;
    loam_status st = LOAM_OK;
    for (uint64_t a = 0; a < n && st == LOAM_OK; line++) {
        uint64_t b = line_end(s, a, n), from = a;
        while (from < b && is_space(s[from])) from++;
        if (b - from > UINT32_MAX / 4) return fail(err, LOAM_E_FORMAT, "%s: line %llu has more than 1 GB", path, (unsigned long long)line);
        if (from < b) {
            data_segments parts = { 0 };
            st = data_json_segments(s + from, b - from, false, &parts, err);
            data_segments_free(&parts);
            if (st != LOAM_OK) return fail_prefix(err, st, "%s: line %llu", path, (unsigned long long)line);
            st = add(d, file, from, b - from, err);
        }
        a = b + 1;
    }
    return st;
}

static bool ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static loam_status open_file(loam_data *d, const char *path, loam_error *err)
{
    data_file *f = &d->files[d->n_files];
    f->path = mem_strdup(path, strlen(path));
    if (!f->path) return fail_nomem(err, "a file's name", strlen(path));
    d->n_files++;
    f->json = d->p.format == LOAM_DATA_JSONL || (d->p.format == LOAM_DATA_AUTO && (ends_in(path, ".jsonl") || ends_in(path, ".json")));
    return os_file_open(&f->file, path, true, err);
}

loam_status data_find_documents(loam_data *d, const char *const *paths, size_t n, loam_error *err)
{
    d->files = mem_zalloc_array(n, sizeof *d->files);
    if (!d->files) return fail_nomem(err, "the list of files", n * sizeof *d->files);
    loam_status s = LOAM_OK;
    for (size_t i = 0; i < n && s == LOAM_OK; i++) {
        s = open_file(d, paths[i], err);
        if (s == LOAM_OK) s = d->files[i].json ? find_lines(d, (uint32_t)i, err) : find_texts(d, (uint32_t)i, err);
    }
    return s;
}
