/* hf_weights.c - from stored tensors to the tensors of a GGUF directory: names by the rules of the architecture, then shapes and
 * types, and the values of those that are not used as they lie in the file.
 *
 *   in place       type and order of the rows as stored
 *   computed       q and k where rotary pairs are adjacent; transposed matrices; stacks of experts; 8-bit floats; vectors and
 *                  routers, which are F32 in GGUF; norms that lack their one; what lies unaligned in the file
 *
 * Refuses, by name: tensors that no rule has a place for, two for one place, experts that are missing or differ in shape, element
 * types without meaning for weights (integers of quantized formats). */
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/reader.h"
#include "file/hf_impl.h"
#include "tensor/dtype.h"

void hf_tensor_fail(hf_build *b, const st_tensor *t, loam_status code, const char *what)
{
    if (b->status == LOAM_OK)
        b->status = fail(b->err, code, "%s: tensor '%s' %s", b->w->shards[t->file]->path, gguf_quote(t->name.data, t->name.len).text,
                         what);
}

/* ---- items ---- */

hf_item *hf_add_item(hf_build *b, const char *name)
{
    hf_weights *w = b->w;
    if (b->status != LOAM_OK) return NULL;
    if (!mem_grow(&w->items, &w->item_cap, w->n_items + 1, sizeof *w->items, LIMIT_TENSORS)) {
        b->status = fail_nomem(b->err, "the list of tensors", (w->n_items + 1) * sizeof *w->items);
        return NULL;
    }
    hf_item *item = &w->items[w->n_items];
    *item = (hf_item){ .factor = 1, .n_parts = 1 };
    item->parts = mem_zalloc_array(1, sizeof *item->parts);
    item->name = mem_alloc(LIMIT_NAME_BYTES + 1);
    w->n_items++;
    if (!item->parts || !item->name) {
        b->status = fail_nomem(b->err, "the list of tensors", sizeof *item->parts);
        return NULL;
    }
    snprintf(item->name, LIMIT_NAME_BYTES + 1, "%s", name);
    return item;
}

void hf_make_item(hf_build *b, const char *name, const float *values, int64_t n)
{
    hf_item *item = hf_add_item(b, name);
    if (!item) return;
    item->values = mem_alloc_array((size_t)n, sizeof *values);
    if (!item->values) {
        b->status = fail_nomem(b->err, name, (uint64_t)n * sizeof *values);
        return;
    }
    memcpy(item->values, values, (size_t)n * sizeof *values);
    item->ne[0] = n;
}

static hf_item *find_item(const hf_weights *w, const char *name)
{
    uint32_t i = map_get(&w->item_index, name, strlen(name));
    return i == MAP_NONE ? NULL : &w->items[i];
}

/* The item of that name, made where there is none. */
static hf_item *item_of(hf_build *b, const char *name)
{
    if (!b->w->item_index.slots && !map_init(&b->w->item_index, b->w->n_stored))
        b->status = fail_nomem(b->err, "the index of tensors", b->w->n_stored * sizeof(map_slot));
    if (b->status != LOAM_OK) return NULL;
    hf_item *item = find_item(b->w, name);
    if (item) return item;
    item = hf_add_item(b, name);
    if (!item) return NULL;
    if (map_put(&b->w->item_index, item->name, strlen(item->name), (uint32_t)(b->w->n_items - 1), NULL)) return item;
    b->status = fail_nomem(b->err, "the index of tensors", sizeof(map_slot));
    return NULL;
}

hf_item *hf_place(hf_build *b, const char *name, uint32_t n, uint32_t at, hf_part part)
{
    hf_item *item = item_of(b, name);
    if (!item) return NULL;
    if (item->n_parts != n) {
        hf_part *parts = item->parts[0].t ? NULL : mem_zalloc_array(n, sizeof *parts);
        if (item->parts[0].t) hf_tensor_fail(b, part.t, LOAM_E_FORMAT, "does not fit with others of its name");
        else if (!parts) b->status = fail_nomem(b->err, "the list of experts", n * sizeof *parts);
        if (!parts) return NULL;
        mem_free(item->parts);
        item->parts = parts;
        item->n_parts = n;
    }
    if (item->parts[at].t) {
        hf_tensor_fail(b, part.t, LOAM_E_FORMAT, "has the place of another one");
        return NULL;
    }
    item->parts[at] = part;
    return item;
}

/* ---- rules ---- */

/* The part of a name behind the first prefix it has. */
static text_view without_prefix(const char *prefixes, text_view name)
{
    for (const char *at = prefixes; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (name.len > n && memcmp(name.data, at, n) == 0) return (text_view){ name.data + n, name.len - n };
        at += n;
    }
    return name;
}

static bool ends_in(text_view name, const char *end)
{
    size_t n = strlen(end);
    return name.len > n && memcmp(name.data + name.len - n, end, n) == 0;
}

/* Takes ".weight" or ".bias" (or their old names) off a name; gives what the target ends in. */
static const char *take_suffix(text_view *name)
{
    static const struct { const char *from, *to; } known[] = {
        { ".weight", ".weight" }, { ".bias", ".bias" }, { ".gamma", ".weight" }, { ".beta", ".bias" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends_in(*name, known[i].from)) {
            name->len -= strlen(known[i].from);
            return known[i].to;
        }
    return ".weight";
}

static const hf_rule *rule_for(const hf_arch *a, text_view stem, int64_t numbers[2])
{
    const hf_rule *lists[] = { a->rules, a->more_rules };
    for (int i = 0; i < 2; i++)
        for (const hf_rule *r = lists[i]; r && r->from; r++)
            if (hf_match(r->from, stem, numbers)) return r;
    return NULL;
}

/* Also finds names of models without head, which lack the "model." in front. */
const hf_rule *hf_find_rule(const hf_arch *a, text_view stem, int64_t numbers[2])
{
    char longer[256];
    const hf_rule *r = rule_for(a, stem, numbers);
    if (r || stem.len > 240) return r;
    int n = snprintf(longer, sizeof longer, "model.%.*s", (int)stem.len, stem.data);
    return rule_for(a, (text_view){ longer, (size_t)n }, numbers);
}

bool hf_target_name(char out[LIMIT_NAME_BYTES + 1], const char *pattern, int64_t block, const char *suffix)
{
    const char *mark = strchr(pattern, '#');
    int n = mark ? snprintf(out, LIMIT_NAME_BYTES + 1, "%.*s%lld%s%s", (int)(mark - pattern), pattern, (long long)block, mark + 1,
                            suffix)
                 : snprintf(out, LIMIT_NAME_BYTES + 1, "%s%s", pattern, suffix);
    return n > 0 && n <= (int)LIMIT_NAME_BYTES;
}

/* The scale that belongs to a tensor of 8-bit floats: NAME_scale or NAME_scale_inv; both multiply. */
static const st_tensor *scale_of(const hf_weights *w, const st_tensor *t)
{
    char name[300];
    if (t->name.len > 280 || (t->dtype != ST_F8_E4M3 && t->dtype != ST_F8_E5M2)) return NULL;
    snprintf(name, sizeof name, "%.*s_scale", (int)t->name.len, t->name.data);
    const st_tensor *s = hf_stored(w, name);
    snprintf(name, sizeof name, "%.*s_scale_inv", (int)t->name.len, t->name.data);
    return s ? s : hf_stored(w, name);
}

/* Scales are read with what they scale; those of activations and caches have no use. */
static bool is_scale(text_view name)
{
    return ends_in(name, ".weight_scale") || ends_in(name, ".weight_scale_inv") || ends_in(name, "_proj_scale") ||
           ends_in(name, "_proj_scale_inv") || ends_in(name, ".input_scale") || ends_in(name, ".activation_scale") ||
           ends_in(name, ".k_scale") || ends_in(name, ".v_scale");
}

static int64_t rows_of(const st_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < t->n_dims; i++) n *= t->shape[i];
    return n;
}

/* [experts, gate then up, in] to two stacks. */
static void split_gate_up(hf_build *b, const st_tensor *t, int64_t block)
{
    if (t->n_dims != 3 || t->shape[0] != b->n_expert || t->shape[1] % 2) {
        hf_tensor_fail(b, t, LOAM_E_FORMAT, "is not [experts, two widths, in]");
        return;
    }
    char name[LIMIT_NAME_BYTES + 1];
    for (int half = 0; half < 2; half++) {
        hf_target_name(name, half ? "blk.#.ffn_up_exps" : "blk.#.ffn_gate_exps", block, ".weight");
        for (int64_t e = 0; b->status == LOAM_OK && e < b->n_expert; e++) {
            int64_t rows = t->shape[1] / 2;
            hf_place(b, name, (uint32_t)b->n_expert, (uint32_t)e,
                     (hf_part){ t, scale_of(b->w, t), e * t->shape[1] + half * rows, rows });
        }
    }
}

static void place(hf_build *b, const st_tensor *t)
{
    const hf_arch *a = b->arch;
    int64_t numbers[2];
    char name[LIMIT_NAME_BYTES + 1];
    if (is_scale(t->name) || without_prefix(a->skipped, t->name).data != t->name.data) return;
    text_view stem = without_prefix(a->prefixes, t->name);
    const char *suffix = take_suffix(&stem);
    const hf_rule *r = hf_find_rule(a, stem, numbers);
    if (!r) {
        hf_tensor_fail(b, t, LOAM_E_UNSUPPORTED, "has no place in this architecture");
        return;
    }
    if (r->change == HF_DROP) return;
    if (r->change == HF_GATE_UP) {
        split_gate_up(b, t, numbers[0]);
        return;
    }
    bool expert = numbers[1] >= 0;
    if (!hf_target_name(name, r->to, numbers[0], suffix) || (expert && numbers[1] >= b->n_expert)) {
        hf_tensor_fail(b, t, LOAM_E_FORMAT, "has a number beyond the model's");
        return;
    }
    hf_item *item = hf_place(b, name, expert ? (uint32_t)b->n_expert : 1, expert ? (uint32_t)numbers[1] : 0,
                             (hf_part){ t, scale_of(b->w, t), 0, rows_of(t) });
    if (!item) return;
    if (a->adjacent && r->change == HF_Q_ROWS) item->heads = b->n_head;
    if (a->adjacent && r->change == HF_K_ROWS) item->heads = b->n_head_kv;
    item->transpose = r->change == HF_TRANSPOSE && t->n_dims == 2;
    item->plus_one = a->plus_one && ends_in((text_view){ name, strlen(name) }, "_norm.weight");
}

/* A tied head is the token table, whichever of the two is stored. */
static void tie_head(hf_build *b)
{
    static const char table[] = "token_embd.weight", head[] = "output.weight";
    hf_item *t = find_item(b->w, table), *h = find_item(b->w, head);
    if (!hf_config_bool(b, "scale_decoder_outputs tie_word_embeddings", false) || !h) return; /* T5 may tie without scaling */
    if (!t) {
        memcpy(h->name, table, sizeof table);
        return;
    }
    mem_free(h->parts);
    mem_free(h->name);
    *h = b->w->items[--b->w->n_items];
}

void hf_map_weights(hf_build *b, bool fine)
{
    const js *fp8 = hf_config_get(b, "quantization_config");
    const js *blocks = js_get(fp8, "weight_block_size");
    text_view dtype;
    for (int i = 0; i < 2; i++)
        if (!js_int(js_at(blocks, (size_t)i), &b->w->block[i]) || b->w->block[i] < 1) b->w->block[i] = 128;
    js_text(hf_config_get(b, "dtype torch_dtype"), &dtype);
    b->w->small_type = fine || js_text_is(dtype, "float32") ? LOAM_F32 : js_text_is(dtype, "float16") ? LOAM_F16 : LOAM_BF16;
    for (size_t i = 0; i < b->w->n_stored && b->status == LOAM_OK; i++) place(b, b->w->stored[i]);
    if (b->status == LOAM_OK && b->w->item_index.slots) tie_head(b);
    map_free(&b->w->item_index);
}

/* ---- shapes and types ---- */

/* Tensors that GGUF models have as F32 whatever the others are. */
static bool always_f32(const hf_item *item)
{
    static const char *const names[] = { "_norm.weight", "ffn_gate_inp.weight", "position_embd.weight", "token_types.weight",
                                         "ffn_gate_inp_shexp.weight" };
    text_view name = { item->name, strlen(item->name) };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ends_in(name, names[i]) || strcmp(item->name, names[i]) == 0) return true;
    return item->ne[1] == 1 && item->ne[2] == 1;
}

static void set_type(hf_build *b, hf_item *item)
{
    const st_tensor *t = item->parts[0].t;
    switch (t->dtype) {
    case ST_F32: item->type = LOAM_F32; break;
    case ST_F64: item->type = LOAM_F32; break;
    case ST_F16: item->type = LOAM_F16; break;
    case ST_BF16: item->type = LOAM_BF16; break;
    case ST_F8_E4M3: case ST_F8_E5M2: item->type = b->w->small_type; break;
    default: hf_tensor_fail(b, t, LOAM_E_UNSUPPORTED, "has integers; weights of quantized formats are not read"); return;
    }
    if (always_f32(item)) item->type = LOAM_F32;
}

static void set_shape(hf_build *b, hf_item *item)
{
    const hf_part *first = &item->parts[0];
    for (uint32_t i = 0; i < item->n_parts; i++) {
        const hf_part *p = &item->parts[i];
        if (!p->t) {
            hf_fail(b, LOAM_E_FORMAT, "expert %u of '%s' is not stored", i, item->name);
            return;
        }
        int64_t cols = p->t->n_dims ? p->t->shape[p->t->n_dims - 1] : 1, same = first->t->n_dims ? first->t->shape[first->t->n_dims - 1] : 1;
        if (p->t->dtype != first->t->dtype || p->rows != first->rows || cols != same) {
            hf_tensor_fail(b, p->t, LOAM_E_FORMAT, "differs in shape or type from the first expert");
            return;
        }
    }
    const st_tensor *t = first->t;
    if (t->n_dims > 3 || (item->n_parts > 1 && t->n_dims < 2)) {
        hf_tensor_fail(b, t, LOAM_E_FORMAT, "has a shape that no weight has");
        return;
    }
    item->ne[0] = t->n_dims ? t->shape[t->n_dims - 1] : 1;
    item->ne[1] = first->rows;
    item->ne[2] = item->n_parts;
    if (item->n_parts == 1 && t->n_dims == 3) item->ne[1] = t->shape[1], item->ne[2] = t->shape[0];
    if (item->transpose) item->ne[1] = item->ne[0], item->ne[0] = first->rows;
    /* a vector with heads (a bias) has its rows along it */
    int64_t rows = t->n_dims == 1 ? item->ne[0] : item->ne[1];
    if (item->heads > 0 && (rows % item->heads || rows / item->heads % 2))
        hf_fail(b, LOAM_E_FORMAT, "'%s' has %lld rows for %lld heads", item->name, (long long)rows, (long long)item->heads);
}

/* How the scales of a tensor lie. */
typedef enum scale_form { SCALE_NONE, SCALE_ONE, SCALE_ROW, SCALE_MATRIX, SCALE_BLOCK, SCALE_ODD } scale_form;

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

static scale_form form_of(const hf_weights *w, const hf_part *p)
{
    if (!p->scale) return SCALE_NONE;
    const st_tensor *t = p->t;
    bool floats = p->scale->dtype == ST_F32 || p->scale->dtype == ST_F16 || p->scale->dtype == ST_BF16;
    int64_t n = (int64_t)(p->scale->bytes / st_dtype_bytes(p->scale->dtype));
    int64_t mats = t->n_dims == 3 ? t->shape[0] : 1, rows = rows_of(t) / (mats ? mats : 1);
    int64_t cols = t->n_dims ? t->shape[t->n_dims - 1] : 1;
    const st_tensor *scale = p->scale;
    int64_t last = scale->n_dims ? scale->shape[scale->n_dims - 1] : 1, before = scale->n_dims > 1 ? scale->shape[scale->n_dims - 2] : 1;
    int64_t high = up(rows, w->block[0]), wide = up(cols, w->block[1]);
    if (!floats) return SCALE_ODD;
    if (n == 1) return SCALE_ONE;
    if (last == wide && before == high && n == mats * high * wide) return SCALE_BLOCK;
    if (n == mats * rows && (last == 1 || last == rows)) return SCALE_ROW;
    return n == mats ? SCALE_MATRIX : SCALE_ODD;
}

static bool plain(const hf_item *item)
{
    return !item->heads && !item->transpose && !item->plus_one && item->factor == 1 && item->n_parts == 1 && !item->parts[0].scale;
}

static int type_of(st_dtype t)
{
    return t == ST_F32 ? (int)LOAM_F32 : t == ST_F16 ? (int)LOAM_F16 : t == ST_BF16 ? (int)LOAM_BF16 : -1;
}

/* The item as it lies in the file; NULL where it has to be computed. */
static const void *in_place(const hf_item *item)
{
    if (item->values) return item->values;
    const st_tensor *t = item->parts[0].t;
    const void *data = t->data + item->parts[0].row * (int64_t)(st_dtype_bytes(t->dtype) * (uint64_t)item->ne[0]);
    bool aligned = (uintptr_t)data % st_dtype_bytes(t->dtype) == 0;
    return plain(item) && type_of(t->dtype) == (int)item->type && aligned ? data : NULL;
}

void hf_put_weights(hf_build *b)
{
    hf_weights *w = b->w;
    for (size_t i = 0; i < w->n_items && b->status == LOAM_OK; i++) {
        hf_item *item = &w->items[i];
        for (int d = 1; d < LIMIT_DIMS; d++) item->ne[d] = 1;
        if (!item->values) set_shape(b, item);
        if (!item->values && b->status == LOAM_OK) set_type(b, item);
        for (uint32_t p = 0; !item->values && b->status == LOAM_OK && p < item->n_parts; p++)
            if (form_of(w, &item->parts[p]) == SCALE_ODD)
                hf_tensor_fail(b, item->parts[p].scale, LOAM_E_UNSUPPORTED, "has scales that do not fit what they scale");
        if (b->status == LOAM_OK) gguf_put_tensor(b->b, item->name, item->type, item->ne, in_place(item));
    }
}

/* ---- values ---- */

static float e4m3(uint8_t v)
{
    uint32_t sign = (uint32_t)(v & 0x80) << 24, e = v >> 3 & 15, m = v & 7;
    if ((v & 0x7F) == 0x7F) return f32_of_bits(sign | 0x7FC00000);
    float x = e ? f32_of_bits((e + 120) << 23 | m << 20) : (float)m * (1.0f / 512);
    return sign ? -x : x;
}

static float value_at(const st_tensor *t, int64_t i)
{
    const uint8_t *p = t->data + (uint64_t)i * st_dtype_bytes(t->dtype);
    switch (t->dtype) {
    case ST_F32: return lef32(p);
    case ST_F64: return (float)lef64(p);
    case ST_F16: return f16_to_f32(le16(p));
    case ST_BF16: return bf16_to_f32(le16(p));
    case ST_F8_E4M3: return e4m3(*p);
    case ST_F8_E5M2: return f16_to_f32((uint16_t)(*p << 8));
    default: return 0;
    }
}

static float scale_at(const hf_weights *w, const hf_part *p, scale_form form, int64_t row, int64_t col)
{
    const st_tensor *t = p->t;
    int64_t cols = t->n_dims ? t->shape[t->n_dims - 1] : 1, rows = t->n_dims > 1 ? t->shape[t->n_dims - 2] : 1;
    int64_t wide = up(cols, w->block[1]), high = up(rows, w->block[0]);
    switch (form) {
    case SCALE_ONE: return value_at(p->scale, 0);
    case SCALE_ROW: return value_at(p->scale, row);
    case SCALE_MATRIX: return value_at(p->scale, row / rows);
    case SCALE_BLOCK:
        return value_at(p->scale, (row / rows * high + row % rows / w->block[0]) * wide + col / w->block[1]);
    default: return 1;
    }
}

static void store(loam_type type, float x, uint8_t *out)
{
    uint16_t half = type == LOAM_F16 ? f32_to_f16(x) : type == LOAM_BF16 ? f32_to_bf16(x) : 0;
    if (type == LOAM_F32) memcpy(out, &x, 4);
    else memcpy(out, &half, 2);
}

/* Where row r of the directory is in the file: (head, pair, half) there, (head, half, pair) here. */
static int64_t source_row(int64_t r, int64_t rows, int64_t heads)
{
    if (heads <= 0) return r;
    int64_t k = rows / heads, in = r % k;
    return r - in + in % 2 * (k / 2) + in / 2;
}

typedef struct filler {
    const hf_weights *w;
    const hf_item *item;
    uint8_t *out;
    uint64_t size; /* of an element of out */
} filler;

static void put_value(const filler *f, const hf_part *p, scale_form form, int64_t row, int64_t col)
{
    int64_t cols = p->t->n_dims ? p->t->shape[p->t->n_dims - 1] : 1;
    float x = value_at(p->t, row * cols + col);
    if (form != SCALE_NONE) x *= scale_at(f->w, p, form, row, col);
    if (f->item->factor != 1) x *= f->item->factor;
    if (f->item->plus_one) x += 1;
    store(f->item->type, x, f->out);
}

/* A row that has to be computed; the scale is the same for a run of columns. `small` has the values of 8-bit floats. */
static void put_row(filler *f, const hf_part *p, scale_form form, int64_t row, const float *small)
{
    int64_t cols = p->t->n_dims ? p->t->shape[p->t->n_dims - 1] : 1, run = form == SCALE_BLOCK ? f->w->block[1] : cols;
    const uint8_t *bytes = p->t->data + row * cols; /* of 8-bit floats */
    bool is_small = p->t->dtype == ST_F8_E4M3 || p->t->dtype == ST_F8_E5M2;
    for (int64_t c = 0; c < cols;) {
        float scale = form == SCALE_NONE ? 1 : scale_at(f->w, p, form, row, c);
        for (int64_t end = c + run < cols ? c + run : cols; c < end; c++, f->out += f->size) {
            float x = (is_small ? small[bytes[c]] : value_at(p->t, row * cols + c)) * scale;
            x = f->item->factor * x;
            store(f->item->type, f->item->plus_one ? x + 1 : x, f->out);
        }
    }
}

static void small_values(const st_tensor *t, float small[256])
{
    for (int i = 0; i < 256; i++) small[i] = t->dtype == ST_F8_E4M3 ? e4m3((uint8_t)i) : f16_to_f32((uint16_t)(i << 8));
}

/* One part, in the order of the directory. */
static void fill_part(filler *f, const hf_part *p)
{
    float small[256];
    const hf_item *item = f->item;
    scale_form form = form_of(f->w, p);
    int64_t cols = p->t->n_dims ? p->t->shape[p->t->n_dims - 1] : 1;
    bool copy = form == SCALE_NONE && item->factor == 1 && !item->plus_one && type_of(p->t->dtype) == (int)item->type;
    if (item->transpose || (p->t->n_dims == 1 && item->heads > 0)) {
        int64_t rows = item->transpose ? p->rows : 1;
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++, f->out += f->size)
                put_value(f, p, form, p->row + r, source_row(c, cols, item->heads));
        return;
    }
    small_values(p->t, small);
    for (int64_t r = 0; r < p->rows; r++) {
        int64_t row = p->row + source_row(r, p->rows, item->heads);
        if (copy) {
            memcpy(f->out, p->t->data + (uint64_t)(row * cols) * f->size, (uint64_t)cols * f->size);
            f->out += (uint64_t)cols * f->size;
        } else put_row(f, p, form, row, small);
    }
}

loam_status hf_fill(const hf_weights *w, uint32_t i, void *out, loam_error *err)
{
    (void)err;
    const hf_item *item = &w->items[i];
    filler f = { .w = w, .item = item, .out = out, .size = (uint64_t)dtype_table[item->type].bytes };
    for (uint32_t p = 0; p < item->n_parts; p++) fill_part(&f, &item->parts[p]);
    return LOAM_OK;
}

void hf_weights_free(hf_weights *w)
{
    if (!w) return;
    for (uint32_t i = 0; i < w->n_shards; i++) st_close(w->shards[i]);
    for (size_t i = 0; i < w->n_items; i++) {
        mem_free(w->items[i].name);
        mem_free(w->items[i].parts);
        mem_free(w->items[i].values);
    }
    map_free(&w->stored_index);
    map_free(&w->item_index);
    mem_free(w->shards);
    mem_free(w->stored);
    mem_free(w->items);
    mem_free(w);
}
