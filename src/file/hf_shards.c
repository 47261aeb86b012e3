/* hf_shards.c - the safetensors files of a folder: STEM.safetensors, or those that STEM.safetensors.index.json lists.
 *
 * Refuses, by name: shards that are missing, listed names that lead out of the folder, tensors that are not in the shard that
 * the list says, or in two shards; folders with weights in other formats only. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/hf_impl.h"

char *hf_path(const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name);
    char *path = mem_alloc(n + m + 2);
    if (!path) return NULL;
    memcpy(path, folder, n);
    bool slash = n > 0 && folder[n - 1] == '/';
    if (!slash) path[n++] = '/';
    memcpy(path + n, name, m + 1);
    return path;
}

loam_status hf_open_json(js **out, const char *folder, const char *name, loam_error *err)
{
    char *path = hf_path(folder, name);
    *out = NULL;
    if (!path) return fail_nomem(err, "a file name", strlen(folder));
    loam_status s = os_is_file(path) ? js_open(out, path, err) : LOAM_OK;
    mem_free(path);
    return s;
}

static loam_status add_shard(hf_weights *w, const char *folder, const char *name, bool use_map, loam_error *err)
{
    char *path = hf_path(folder, name);
    if (!path) return fail_nomem(err, "a file name", strlen(folder));
    st_file *f;
    loam_status s = st_open(&f, path, use_map, err);
    mem_free(path);
    if (s == LOAM_OK) w->shards[w->n_shards++] = f;
    return s;
}

static loam_status index_stored(hf_weights *w, loam_error *err)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->n_shards; i++) n += w->shards[i]->n_tensors;
    if (n > LIMIT_TENSORS) return fail(err, LOAM_E_FORMAT, "%s: over %u tensors in all shards", w->shards[0]->path, LIMIT_TENSORS);
    w->stored = mem_alloc_array(n + 1, sizeof *w->stored);
    if (!w->stored || !map_init(&w->stored_index, n)) return fail_nomem(err, "the table of tensors", n * sizeof *w->stored);
    for (uint32_t i = 0; i < w->n_shards; i++)
        for (size_t j = 0; j < w->shards[i]->n_tensors; j++) {
            st_tensor *t = &w->shards[i]->tensors[j];
            uint32_t old;
            t->file = i;
            if (!map_put(&w->stored_index, t->name.data, t->name.len, (uint32_t)w->n_stored, &old))
                return fail_nomem(err, "the index of tensors", n * sizeof(map_slot));
            if (old != MAP_NONE)
                return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' is in %s too", w->shards[i]->path,
                            gguf_quote(t->name.data, t->name.len).text, w->shards[w->stored[old]->file]->path);
            w->stored[w->n_stored++] = t;
        }
    return LOAM_OK;
}

const st_tensor *hf_stored(const hf_weights *w, const char *name)
{
    uint32_t i = map_get(&w->stored_index, name, strlen(name));
    return i == MAP_NONE ? NULL : w->stored[i];
}

/* ---- the list of shards ---- */

static bool plain_name(text_view name)
{
    return name.len > 0 && name.len < 256 && !memchr(name.data, '/', name.len) && !memchr(name.data, '\\', name.len) &&
           !memchr(name.data, 0, name.len) && name.data[0] != '.';
}

/* Opens the shard unless it is open. */
static loam_status shard_named(hf_weights *w, const char *folder, text_view name, map *seen, bool use_map, loam_error *err)
{
    char text[256];
    uint32_t old;
    if (!plain_name(name))
        return fail(err, LOAM_E_FORMAT, "%s: the index names the shard '%s', which is no file name", folder,
                    gguf_quote(name.data ? name.data : "", name.len).text);
    if (!map_put(seen, name.data, name.len, w->n_shards, &old)) return fail_nomem(err, "the list of shards", name.len);
    if (old != MAP_NONE) return LOAM_OK;
    snprintf(text, sizeof text, "%.*s", (int)name.len, name.data);
    loam_status s = add_shard(w, folder, text, use_map, err);
    return s == LOAM_E_IO ? fail_prefix(err, s, "a shard is missing") : s;
}

static loam_status check_places(const hf_weights *w, const js *list, const map *seen, const char *path, loam_error *err)
{
    for (js_member m = js_first(list); m.value; m = js_next(list, m)) {
        text_view shard;
        js_text(m.value, &shard);
        uint32_t i = map_get(&w->stored_index, m.key.data, m.key.len), file = map_get(seen, shard.data, shard.len);
        if (i == MAP_NONE || w->stored[i]->file != file)
            return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' is not in %s", path, gguf_quote(m.key.data, m.key.len).text,
                        file < w->n_shards ? w->shards[file]->path : "any shard");
    }
    return LOAM_OK;
}

static loam_status open_listed(hf_weights *w, const char *folder, const char *path, bool use_map, loam_error *err)
{
    js *index;
    map seen = { 0 };
    loam_status s = js_open(&index, path, err);
    if (s != LOAM_OK) return s;
    const js *list = js_get(index, "weight_map");
    size_t n = js_count(list);
    if (!js_is_object(list) || n == 0) s = fail(err, LOAM_E_FORMAT, "%s: there is no weight_map with tensors", path);
    else if (n > LIMIT_TENSORS) s = fail(err, LOAM_E_FORMAT, "%s: over %u tensors", path, LIMIT_TENSORS);
    if (s == LOAM_OK) {
        w->shards = mem_zalloc_array(n, sizeof *w->shards);
        if (!w->shards || !map_init(&seen, 64)) s = fail_nomem(err, "the list of shards", n * sizeof *w->shards);
    }
    for (js_member m = js_first(list); m.value && s == LOAM_OK; m = js_next(list, m)) {
        text_view name;
        if (!js_text(m.value, &name))
            s = fail(err, LOAM_E_FORMAT, "%s: tensor '%s' has no shard", path, gguf_quote(m.key.data, m.key.len).text);
        else s = shard_named(w, folder, name, &seen, use_map, err);
    }
    if (s == LOAM_OK) s = index_stored(w, err);
    if (s == LOAM_OK) s = check_places(w, list, &seen, path, err);
    map_free(&seen);
    js_free(index);
    return s;
}

static loam_status open_single(hf_weights *w, const char *folder, const char *name, bool use_map, loam_error *err)
{
    w->shards = mem_zalloc_array(1, sizeof *w->shards);
    if (!w->shards) return fail_nomem(err, "the list of shards", sizeof *w->shards);
    loam_status s = add_shard(w, folder, name, use_map, err);
    return s == LOAM_OK ? index_stored(w, err) : s;
}

static loam_status no_weights(const char *folder, const char *stem, loam_error *err)
{
    char *other = hf_path(folder, "pytorch_model.bin"), *listed = hf_path(folder, "pytorch_model.bin.index.json");
    bool pickled = other && listed && (os_is_file(other) || os_is_file(listed));
    mem_free(other);
    mem_free(listed);
    if (pickled)
        return fail(err, LOAM_E_UNSUPPORTED, "%s: its weights are pytorch_model.bin; only safetensors are read", folder);
    return fail(err, LOAM_E_IO, "%s: there is neither %s.safetensors nor %s.safetensors.index.json", folder, stem, stem);
}

loam_status hf_open_shards(hf_weights *w, const char *folder, const char *stem, bool use_map, loam_error *err)
{
    char single[64], list[64];
    snprintf(single, sizeof single, "%s.safetensors", stem);
    snprintf(list, sizeof list, "%s.safetensors.index.json", stem);
    char *one = hf_path(folder, single), *index = hf_path(folder, list);
    loam_status s;
    if (!one || !index) s = fail_nomem(err, "a file name", strlen(folder));
    else if (os_is_file(one)) s = open_single(w, folder, single, use_map, err);
    else if (os_is_file(index)) s = open_listed(w, folder, index, use_map, err);
    else s = no_weights(folder, stem, err);
    mem_free(one);
    mem_free(index);
    return s;
}
