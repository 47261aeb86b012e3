/* gguf.c - `loam gguf`: metadata set, removed and copied; files split and merged; tensors hashed.
 *
 * A file is written beside its place and renamed when it is whole: who reads it meanwhile keeps the old one. Tensor data goes
 * from the mapped file to the new one as it is. Of a split file, whose metadata lie in its first part, only that part is
 * written again. */
#include <stdlib.h>
#include <string.h>

#include "gguf_value.h"
#include "session.h"
#include "sha256.h"

/* ---- editing ---- */

typedef struct editor {
    const options *o;
    const char *path, *out;
    loam_gguf *file;
    loam_gguf_builder *builder;
} editor;

static int edit_begin(editor *e, const options *o, const char *path)
{
    loam_error err;
    loam_gguf_params p = loam_gguf_defaults();
    *e = (editor){ .o = o, .path = path, .out = opt_given(o, OPT_EDITED) ? opt_text(o, OPT_EDITED) : path };
    show_log(o);
    p.one_part = !opt_given(o, OPT_EDITED);
    loam_status status = loam_gguf_open(&e->file, path, &p, &err);
    loam_gguf_value no;
    int64_t number = 0;
    if (status == LOAM_OK && loam_gguf_key_find(e->file, "split.no", &no) && loam_gguf_int(&no, 0, &number) && number > 0)
        return say_failed(o, "%s: part %lld of a split file; metadata are in the first part", path, (long long)number + 1);
    if (status == LOAM_OK) status = loam_gguf_builder_create(&e->builder, e->file, true, &err);
    return status == LOAM_OK ? EXIT_DONE : say_error(o, &err);
}

/* Writes the file where code is EXIT_DONE; frees the editor in any case. */
static int edit_end(editor *e, int code)
{
    loam_error err;
    if (code == EXIT_DONE && loam_gguf_write(e->builder, e->out, NULL, &err) != LOAM_OK) code = say_error(e->o, &err);
    loam_gguf_builder_free(e->builder);
    loam_gguf_free(e->file);
    return code;
}

/* Keys that say which part a file is belong to split and merge. */
static int check_key(const options *o, const char *key)
{
    if (strncmp(key, "split.", 6) == 0) return say_usage(o, "%s: the split.* keys are set by loam gguf split and merge", key);
    return EXIT_DONE;
}

int cmd_gguf_set(const options *o)
{
    editor e;
    value_type type = { -1, false };
    const char *key = o->words[1], *name = opt_text(o, OPT_VALUE_TYPE);
    loam_gguf_value old;
    if (name && !value_type_of_name(name, &type)) return say_usage(o, "--type: there is no kind '%s'", name);
    int code = check_key(o, key);
    if (code != EXIT_DONE) return code;
    code = edit_begin(&e, o, o->words[0]);
    if (code == EXIT_DONE && !name && loam_gguf_key_find(e.file, key, &old)) {
        type.array = old.kind == LOAM_GGUF_ARRAY;
        type.kind = old.item;
        if (old.item == LOAM_GGUF_ARRAY) code = say_failed(o, "%s: arrays in arrays cannot be edited", key);
    }
    if (code == EXIT_DONE) code = value_set(o, e.builder, key, o->words[2], type);
    return edit_end(&e, code);
}

/* Does the key match the name, which may end with *? */
static bool matches(const char *name, const loam_gguf_value *v)
{
    size_t n = strlen(name);
    bool open_end = n > 0 && name[n - 1] == '*';
    if (open_end) n--;
    return (open_end ? v->key_len >= n : v->key_len == n) && memcmp(v->key, name, n) == 0;
}

/* Calls change for each key of `from` that one of the words from `first` on matches; a word that matches none is an error. */
typedef int change_fn(editor *e, const char *key, const loam_gguf_value *v);
static int each_match(editor *e, const loam_gguf *from, int first, const char *where, change_fn *change)
{
    int code = EXIT_DONE;
    for (int w = first; code == EXIT_DONE && w < e->o->n_words; w++) {
        loam_gguf_value v;
        int found = 0;
        code = check_key(e->o, e->o->words[w]);
        for (uint32_t i = 0; code == EXIT_DONE && loam_gguf_key_at(from, i, &v); i++) {
            if (!matches(e->o->words[w], &v) || (v.key_len > 6 && memcmp(v.key, "split.", 6) == 0)) continue;
            char *key = need(malloc(v.key_len + 1));
            memcpy(key, v.key, v.key_len);
            key[v.key_len] = 0;
            code = change(e, key, &v);
            free(key);
            found++;
        }
        if (code == EXIT_DONE && !found) code = say_failed(e->o, "%s: there is no key '%s'", where, e->o->words[w]);
    }
    return code;
}

static int remove_key(editor *e, const char *key, const loam_gguf_value *v)
{
    (void)v;
    loam_gguf_remove_key(e->builder, key);
    return EXIT_DONE;
}

static int copy_key(editor *e, const char *key, const loam_gguf_value *v)
{
    loam_gguf_set_value(e->builder, key, v);
    return EXIT_DONE;
}

int cmd_gguf_rm(const options *o)
{
    editor e;
    int code = edit_begin(&e, o, o->words[0]);
    if (code == EXIT_DONE) code = each_match(&e, e.file, 1, e.path, remove_key);
    return edit_end(&e, code);
}

int cmd_gguf_cp(const options *o)
{
    editor e;
    loam_gguf *from = NULL;
    loam_error err;
    int code = edit_begin(&e, o, o->words[1]);
    loam_gguf_params p = loam_gguf_defaults();
    p.one_part = true;
    if (code == EXIT_DONE && loam_gguf_open(&from, o->words[0], &p, &err) != LOAM_OK) code = say_error(o, &err);
    if (code == EXIT_DONE) code = each_match(&e, from, 2, o->words[0], copy_key);
    code = edit_end(&e, code);
    loam_gguf_free(from);
    return code;
}

/* ---- split and merge ---- */

/* "100", "100K", "100M", "100G" in bytes; 0 where it is none of these. */
static uint64_t parse_size(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9') return 0;
    uint64_t n = strtoull(text, &end, 10), unit = 1;
    switch (*end) {
    case 'G': case 'g': unit *= 1000; /* fall through */
    case 'M': case 'm': unit *= 1000; /* fall through */
    case 'K': case 'k': unit *= 1000; end++; break;
    default: break;
    }
    return *end || n > INT64_MAX / unit ? 0 : n * unit;
}

/* Opens path whole, writes it to out as the parameters say, and tells what became of it. */
static int rewrite(const options *o, loam_gguf *file, const char *out, const loam_gguf_write_params *params)
{
    loam_gguf_builder *builder;
    loam_error err;
    loam_status status = loam_gguf_builder_create(&builder, file, true, &err);
    if (status == LOAM_OK) status = loam_gguf_write(builder, out, params, &err);
    loam_gguf_builder_free(builder);
    return status == LOAM_OK ? EXIT_DONE : say_error(o, &err);
}

int cmd_gguf_split(const options *o)
{
    loam_gguf_write_params p = loam_gguf_write_defaults();
    loam_gguf *file;
    loam_error err;
    if (opt_given(o, OPT_MAX_SIZE) == opt_given(o, OPT_MAX_TENSORS)) return say_usage(o, "give either --max-size or --max-tensors");
    if (opt_given(o, OPT_MAX_SIZE)) p.part_bytes = parse_size(opt_text(o, OPT_MAX_SIZE));
    else p.part_tensors = (uint32_t)opt_int(o, OPT_MAX_TENSORS);
    if (p.part_bytes == 0 && p.part_tensors == 0)
        return say_usage(o, "--max-size is a number of bytes, as 500M or 2G, not '%s'", opt_text(o, OPT_MAX_SIZE));
    show_log(o);
    if (loam_gguf_open(&file, o->words[0], NULL, &err) != LOAM_OK) return say_error(o, &err);
    size_t n = strlen(o->words[1]);
    char *path = need(malloc(n + 6));
    memcpy(path, o->words[1], n);
    memcpy(path + n, ".gguf", 6);
    uint32_t parts = 0;
    p.written_parts = &parts;
    int code = rewrite(o, file, path, &p);
    if (code == EXIT_DONE && parts == 1) printf("%s: one part holds all, not split\n", path);
    else if (code == EXIT_DONE) printf("%s-00001-of-%05u.gguf: %u parts, %u tensors\n", o->words[1], parts, parts, loam_gguf_n_tensors(file));
    free(path);
    loam_gguf_free(file);
    return code == EXIT_DONE ? flush_output(o, stdout, "standard output") : code;
}

int cmd_gguf_merge(const options *o)
{
    loam_gguf *file;
    loam_error err;
    show_log(o);
    if (loam_gguf_open(&file, o->words[0], NULL, &err) != LOAM_OK) return say_error(o, &err);
    int code = EXIT_DONE;
    if (loam_gguf_n_parts(file) == 1) code = say_failed(o, "%s is not split", o->words[0]);
    if (code == EXIT_DONE) code = rewrite(o, file, o->words[1], NULL);
    if (code == EXIT_DONE) {
        printf("%s: %u parts, %u tensors\n", o->words[1], loam_gguf_n_parts(file), loam_gguf_n_tensors(file));
        code = flush_output(o, stdout, "standard output");
    }
    loam_gguf_free(file);
    return code;
}

/* ---- hash ---- */

static void sha256_tensors(const loam_gguf *f, uint32_t index, char text[65])
{
    sha256 s;
    loam_gguf_tensor t;
    sha256_begin(&s);
    for (uint32_t i = index == LOAM_GGUF_ALL ? 0 : index; loam_gguf_tensor_at(f, i, &t); i++) {
        if (t.bytes) sha256_add(&s, t.data, (size_t)t.bytes);
        if (index != LOAM_GGUF_ALL) break;
    }
    sha256_end(&s, text);
}

static void hash_text(const options *o, const loam_gguf *f, uint32_t index, char text[65])
{
    const char *kind = opt_text(o, OPT_HASH);
    if (kind && strcmp(kind, "sha256") == 0) sha256_tensors(f, index, text);
    else snprintf(text, 65, "%016llx", (unsigned long long)loam_gguf_hash(f, index));
}

int cmd_gguf_hash(const options *o)
{
    const char *path = o->words[0], *kind = opt_given(o, OPT_HASH) ? opt_text(o, OPT_HASH) : "xxh64";
    loam_gguf *f;
    loam_error err;
    loam_gguf_tensor t;
    char text[65];
    json j;
    bool as_json = opt_given(o, OPT_JSON);
    show_log(o);
    if (loam_gguf_open(&f, path, NULL, &err) != LOAM_OK) return say_error(o, &err);
    json_begin(&j, stdout);
    if (as_json) json_open(&j, NULL, '{'), json_string(&j, "hash", kind), json_open(&j, "tensors", '{');
    for (uint32_t i = 0; loam_gguf_tensor_at(f, i, &t); i++) {
        hash_text(o, f, i, text);
        if (as_json) json_string(&j, t.name, text);
        else printf("%-8s  %s  %s:%s\n", kind, text, path, t.name);
    }
    hash_text(o, f, LOAM_GGUF_ALL, text);
    if (as_json) json_close(&j, '}'), json_string(&j, "all", text), json_close(&j, '}');
    else printf("%-8s  %s  %s\n", kind, text, path);
    loam_gguf_free(f);
    return flush_output(o, stdout, "standard output");
}
