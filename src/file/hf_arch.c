/* hf_arch.c - the architectures of Hugging Face folders: how config.json and tensors of each are called in GGUF. A new dense one
 * is a row here, and rules for what it calls differently. */
#include <stdio.h>
#include <string.h>

#include "file/hf_impl.h"

/* ---- keys of config.json ---- */

#define WIDTHS(position, width, layers, inner, heads)                                                                            \
    { position, "context_length", HF_INT, false }, { width, "embedding_length", HF_INT, false },                                \
    { layers, "block_count", HF_INT, false }, { inner, "feed_forward_length", HF_INT, true },                                   \
    { heads, "attention.head_count", HF_INT, false }
#define DECODER_WIDTHS                                                                                                           \
    WIDTHS("max_position_embeddings", "hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads")
#define RMS_EPSILON { "rms_norm_eps", "attention.layer_norm_rms_epsilon", HF_FLOAT, false }
#define DECODER DECODER_WIDTHS, RMS_EPSILON
#define EXPERTS(count)                                                                                                           \
    { count, "expert_count", HF_INT, false }, { "num_experts_per_tok", "expert_used_count", HF_INT, false }
#define END { NULL, NULL, HF_INT, false }

static const hf_key decoder_keys[] = { DECODER, END };
static const hf_key mixtral_keys[] = { DECODER, EXPERTS("num_local_experts num_experts"), END };
static const hf_key qwen_moe_keys[] = {
    DECODER,
    EXPERTS("num_experts num_local_experts"),
    { "moe_intermediate_size", "expert_feed_forward_length", HF_INT, false },
    { "shared_expert_intermediate_size", "expert_shared_feed_forward_length", HF_INT, true },
    END,
};
static const hf_key gemma_keys[] = {
    DECODER,
    { "sliding_window", "attention.sliding_window", HF_INT, true },
    { "attn_logit_softcapping", "attn_logit_softcapping", HF_FLOAT, true },
    { "final_logit_softcapping", "final_logit_softcapping", HF_FLOAT, true },
    END,
};
static const hf_key window_keys[] = { DECODER, { "sliding_window", "attention.sliding_window", HF_INT, true }, END };
#define GRANITE_SCALES                                                                                                           \
    { "embedding_multiplier", "embedding_scale", HF_FLOAT, true }, { "residual_multiplier", "residual_scale", HF_FLOAT, true },  \
    { "logits_scaling", "logit_scale", HF_FLOAT, false }, { "attention_multiplier", "attention.scale", HF_FLOAT, true }
static const hf_key granite_keys[] = { DECODER, GRANITE_SCALES, END };
static const hf_key granite_moe_keys[] = { DECODER, GRANITE_SCALES, EXPERTS("num_local_experts"), END };
static const hf_key gpt2_keys[] = {
    WIDTHS("n_positions n_ctx", "n_embd", "n_layer", "n_inner", "n_head"),
    { "layer_norm_epsilon", "attention.layer_norm_epsilon", HF_FLOAT, false },
    END,
};
static const hf_key starcoder2_keys[] = { DECODER_WIDTHS, { "norm_epsilon", "attention.layer_norm_epsilon", HF_FLOAT, false }, END };
static const hf_key bert_keys[] = { DECODER_WIDTHS, { "layer_norm_eps", "attention.layer_norm_epsilon", HF_FLOAT, false }, END };
static const hf_key t5_keys[] = {
    WIDTHS("n_positions max_position_embeddings", "d_model", "num_layers", "d_ff", "num_heads"),
    { "num_decoder_layers", "decoder_block_count", HF_INT, true },
    { "d_kv", "attention.key_length", HF_INT, false },
    { "d_kv", "attention.value_length", HF_INT, false },
    { "layer_norm_epsilon", "attention.layer_norm_epsilon", HF_FLOAT, false },
    { "layer_norm_epsilon", "attention.layer_norm_rms_epsilon", HF_FLOAT, false },
    { "relative_attention_num_buckets", "attention.relative_buckets_count", HF_INT, false },
    { "decoder_start_token_id", "decoder_start_token_id", HF_INT, true },
    END,
};

/* ---- names of tensors ---- */

static const hf_rule decoder[] = {
    { "model.embed_tokens", "token_embd", HF_KEEP },
    { "model.norm", "output_norm", HF_KEEP },
    { "lm_head", "output", HF_KEEP },
    { "model.layers.#.input_layernorm", "blk.#.attn_norm", HF_KEEP },
    { "model.layers.#.self_attn.q_proj", "blk.#.attn_q", HF_Q_ROWS },
    { "model.layers.#.self_attn.k_proj", "blk.#.attn_k", HF_K_ROWS },
    { "model.layers.#.self_attn.v_proj", "blk.#.attn_v", HF_KEEP },
    { "model.layers.#.self_attn.o_proj", "blk.#.attn_output", HF_KEEP },
    { "model.layers.#.self_attn.q_norm", "blk.#.attn_q_norm", HF_KEEP },
    { "model.layers.#.self_attn.k_norm", "blk.#.attn_k_norm", HF_KEEP },
    { "model.layers.#.self_attn.rotary_emb.inv_freq", NULL, HF_DROP },
    { "model.layers.#.post_attention_layernorm", "blk.#.ffn_norm", HF_KEEP },
    { "model.layers.#.mlp.gate_proj", "blk.#.ffn_gate", HF_KEEP },
    { "model.layers.#.mlp.up_proj", "blk.#.ffn_up", HF_KEEP },
    { "model.layers.#.mlp.down_proj", "blk.#.ffn_down", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

/* Norms behind both branches. */
static const hf_rule sandwich[] = {
    { "model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm", HF_KEEP },
    { "model.layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm", HF_KEEP },
    { "model.layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

#define EXPERT_RULES(at, gate, up, down)                                                                                         \
    { at ".experts.%." gate, "blk.#.ffn_gate_exps", HF_KEEP }, { at ".experts.%." up, "blk.#.ffn_up_exps", HF_KEEP },            \
    { at ".experts.%." down, "blk.#.ffn_down_exps", HF_KEEP }, { at ".experts.gate_up_proj", "", HF_GATE_UP },                   \
    { at ".experts.down_proj", "blk.#.ffn_down_exps", HF_KEEP }, { at ".gate", "blk.#.ffn_gate_inp", HF_KEEP }

static const hf_rule mixtral[] = {
    EXPERT_RULES("model.layers.#.block_sparse_moe", "w1", "w3", "w2"),
    EXPERT_RULES("model.layers.#.mlp", "gate_proj", "up_proj", "down_proj"),
    { NULL, NULL, HF_DROP },
};

static const hf_rule qwen_moe[] = {
    EXPERT_RULES("model.layers.#.mlp", "gate_proj", "up_proj", "down_proj"),
    { "model.layers.#.mlp.shared_expert.gate_proj", "blk.#.ffn_gate_shexp", HF_KEEP },
    { "model.layers.#.mlp.shared_expert.up_proj", "blk.#.ffn_up_shexp", HF_KEEP },
    { "model.layers.#.mlp.shared_expert.down_proj", "blk.#.ffn_down_shexp", HF_KEEP },
    { "model.layers.#.mlp.shared_expert_gate", "blk.#.ffn_gate_inp_shexp", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

static const hf_rule granite_moe[] = {
    { "model.layers.#.block_sparse_moe.input_linear", "", HF_GATE_UP },
    { "model.layers.#.block_sparse_moe.output_linear", "blk.#.ffn_down_exps", HF_KEEP },
    { "model.layers.#.block_sparse_moe.router.layer", "blk.#.ffn_gate_inp", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

static const hf_rule phi3[] = {
    { "model.layers.#.self_attn.qkv_proj", "blk.#.attn_qkv", HF_KEEP },
    { "model.layers.#.mlp.gate_up_proj", "blk.#.ffn_up", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

static const hf_rule starcoder2[] = {
    { "model.layers.#.mlp.c_fc", "blk.#.ffn_up", HF_KEEP },
    { "model.layers.#.mlp.c_proj", "blk.#.ffn_down", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

static const hf_rule gpt2[] = {
    { "wte", "token_embd", HF_KEEP },
    { "wpe", "position_embd", HF_KEEP },
    { "ln_f", "output_norm", HF_KEEP },
    { "lm_head", "output", HF_KEEP },
    { "h.#.ln_1", "blk.#.attn_norm", HF_KEEP },
    { "h.#.attn.c_attn", "blk.#.attn_qkv", HF_TRANSPOSE },
    { "h.#.attn.c_proj", "blk.#.attn_output", HF_TRANSPOSE },
    { "h.#.ln_2", "blk.#.ffn_norm", HF_KEEP },
    { "h.#.mlp.c_fc", "blk.#.ffn_up", HF_TRANSPOSE },
    { "h.#.mlp.c_proj", "blk.#.ffn_down", HF_TRANSPOSE },
    { "h.#.attn", NULL, HF_DROP }, /* the mask, as ".bias" */
    { "h.#.attn.masked_bias", NULL, HF_DROP },
    { NULL, NULL, HF_DROP },
};

static const hf_rule bert[] = {
    { "embeddings.word_embeddings", "token_embd", HF_KEEP },
    { "embeddings.position_embeddings", "position_embd", HF_KEEP },
    { "embeddings.token_type_embeddings", "token_types", HF_KEEP },
    { "embeddings.LayerNorm", "token_embd_norm", HF_KEEP },
    { "embeddings.position_ids", NULL, HF_DROP },
    { "encoder.layer.#.attention.self.query", "blk.#.attn_q", HF_KEEP },
    { "encoder.layer.#.attention.self.key", "blk.#.attn_k", HF_KEEP },
    { "encoder.layer.#.attention.self.value", "blk.#.attn_v", HF_KEEP },
    { "encoder.layer.#.attention.output.dense", "blk.#.attn_output", HF_KEEP },
    { "encoder.layer.#.attention.output.LayerNorm", "blk.#.attn_output_norm", HF_KEEP },
    { "encoder.layer.#.intermediate.dense", "blk.#.ffn_up", HF_KEEP },
    { "encoder.layer.#.output.dense", "blk.#.ffn_down", HF_KEEP },
    { "encoder.layer.#.output.LayerNorm", "blk.#.layer_output_norm", HF_KEEP },
    { "pooler.dense", NULL, HF_DROP }, /* bert_labels keeps it */
    { "cls.predictions", NULL, HF_DROP },
    { "cls.predictions.decoder", NULL, HF_DROP },
    { "cls.predictions.transform.dense", NULL, HF_DROP },
    { "cls.predictions.transform.LayerNorm", NULL, HF_DROP },
    { "cls.seq_relationship", NULL, HF_DROP },
    { NULL, NULL, HF_DROP },
};

static const hf_rule bert_labels[] = {
    { "pooler.dense", "cls", HF_KEEP },
    { "classifier", "cls.output", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

#define T5_FFN(side, to, layer)                                                                                                  \
    { side ".block.#.layer." layer ".DenseReluDense.wi", to ".blk.#.ffn_up", HF_KEEP },                                          \
    { side ".block.#.layer." layer ".DenseReluDense.wi_0", to ".blk.#.ffn_gate", HF_KEEP },                                      \
    { side ".block.#.layer." layer ".DenseReluDense.wi_1", to ".blk.#.ffn_up", HF_KEEP },                                        \
    { side ".block.#.layer." layer ".DenseReluDense.wo", to ".blk.#.ffn_down", HF_KEEP },                                        \
    { side ".block.#.layer." layer ".layer_norm", to ".blk.#.ffn_norm", HF_KEEP }
#define T5_ATTENTION(side, to, layer, kind, name)                                                                                \
    { side ".block.#.layer." layer "." kind ".q", to ".blk.#." name "_q", HF_KEEP },                                             \
    { side ".block.#.layer." layer "." kind ".k", to ".blk.#." name "_k", HF_KEEP },                                             \
    { side ".block.#.layer." layer "." kind ".v", to ".blk.#." name "_v", HF_KEEP },                                             \
    { side ".block.#.layer." layer "." kind ".o", to ".blk.#." name "_o", HF_KEEP },                                             \
    { side ".block.#.layer." layer "." kind ".relative_attention_bias", to ".blk.#." name "_rel_b", HF_KEEP },                   \
    { side ".block.#.layer." layer ".layer_norm", to ".blk.#." name "_norm", HF_KEEP }

static const hf_rule t5[] = {
    { "shared", "token_embd", HF_KEEP },
    { "encoder.embed_tokens", NULL, HF_DROP }, /* shared again */
    { "decoder.embed_tokens", NULL, HF_DROP },
    { "lm_head", "output", HF_KEEP },
    T5_ATTENTION("encoder", "enc", "0", "SelfAttention", "attn"),
    T5_FFN("encoder", "enc", "1"),
    { "encoder.final_layer_norm", "enc.output_norm", HF_KEEP },
    T5_ATTENTION("decoder", "dec", "0", "SelfAttention", "attn"),
    T5_ATTENTION("decoder", "dec", "1", "EncDecAttention", "cross_attn"),
    T5_FFN("decoder", "dec", "2"),
    { "decoder.final_layer_norm", "dec.output_norm", HF_KEEP },
    { NULL, NULL, HF_DROP },
};

/* ---- what rows cannot say ---- */

static void refuse_unless(hf_build *b, bool fits, const char *key)
{
    if (!fits) hf_fail(b, LOAM_E_UNSUPPORTED, "key '%s' has a value that GGUF models of '%s' cannot express", key, b->arch->name);
}

/* Experts in every block, and one way to weigh them. */
static void finish_qwen_moe(hf_build *b)
{
    bool normalised = hf_config_bool(b, "norm_topk_prob", false), shared = strcmp(b->arch->name, "qwen2moe") == 0;
    refuse_unless(b, normalised != shared, "norm_topk_prob");
    refuse_unless(b, hf_config_int(b, "decoder_sparse_step", 1) == 1, "decoder_sparse_step");
    refuse_unless(b, js_count(hf_config_get(b, "mlp_only_layers")) == 0, "mlp_only_layers");
}

/* Scores are scaled by query_pre_attn_scalar^-1/2; the field knows the values of the published sizes only. */
static void gemma_scale(hf_build *b, int64_t deep)
{
    double scalar = hf_config_float(b, "query_pre_attn_scalar", (double)b->head_dim);
    double known = (double)(b->n_layer == deep ? b->width / (b->n_head ? b->n_head : 1) : b->head_dim);
    if (!(scalar > 0)) hf_fail(b, LOAM_E_FORMAT, "query_pre_attn_scalar must be positive");
    else if (scalar != known) hf_set_float(b, "attention.scale", 1 / __builtin_sqrt(scalar));
}

/* Which blocks have a window: every `period`-th has none, unless the config says otherwise. */
static void put_window_pattern(hf_build *b, int64_t period)
{
    const js *types = hf_config_get(b, "layer_types");
    int64_t given = hf_config_int(b, "sliding_window_pattern _sliding_window_pattern", period);
    bool windows[LIMIT_LAYERS], usual = true;
    if (given < 1) hf_fail(b, LOAM_E_FORMAT, "sliding_window_pattern must be positive");
    if (types && js_count(types) != (size_t)b->n_layer)
        hf_fail(b, LOAM_E_FORMAT, "layer_types has %zu entries for %lld layers", js_count(types), (long long)b->n_layer);
    for (int64_t i = 0; b->status == LOAM_OK && i < b->n_layer; i++) {
        windows[i] = types ? js_is(js_at(types, (size_t)i), "sliding_attention") : (i + 1) % given != 0;
        if (types && !windows[i] && !js_is(js_at(types, (size_t)i), "full_attention"))
            hf_fail(b, LOAM_E_UNSUPPORTED, "layer_types[%lld] is neither full_attention nor sliding_attention", (long long)i);
        usual = usual && windows[i] == ((i + 1) % period != 0);
    }
    char key[96];
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", b->arch->name);
    if (b->status == LOAM_OK && !usual) gguf_set_array(b->b, key, GGUF_BOOL, windows, (uint64_t)b->n_layer);
}

static void finish_gemma2(hf_build *b)
{
    gemma_scale(b, 46);
    put_window_pattern(b, 2);
}

static void finish_gemma3(hf_build *b)
{
    gemma_scale(b, 62);
    put_window_pattern(b, 6);
    refuse_unless(b, !hf_config_bool(b, "use_bidirectional_attention", false), "use_bidirectional_attention");
}

static void finish_olmo3(hf_build *b) { put_window_pattern(b, 4); }

static void finish_smollm3(hf_build *b)
{
    const js *turns = hf_config_get(b, "no_rope_layers"); /* 1: the layer has rotary positions */
    bool usual = turns || hf_config_int(b, "no_rope_layer_interval", 4) == 4;
    for (int64_t i = 0; turns && i < b->n_layer; i++) {
        int64_t on = 1;
        js_int(js_at(turns, (size_t)i), &on);
        usual = usual && (on != 0) == ((i + 1) % 4 != 0);
    }
    refuse_unless(b, usual, "no_rope_layers");
}

static void finish_gpt2(hf_build *b)
{
    if (!hf_config_get(b, "n_inner")) hf_set_int(b, "feed_forward_length", 4 * b->width);
    refuse_unless(b, hf_config_bool(b, "scale_attn_weights", true), "scale_attn_weights");
    refuse_unless(b, !hf_config_bool(b, "scale_attn_by_inverse_layer_idx", false), "scale_attn_by_inverse_layer_idx");
}

static void finish_bert(hf_build *b)
{
    js *pooling;
    bool mean = false, first = false, last = false;
    hf_set_bool(b, "attention.causal", false);
    gguf_set_u32(b->b, "tokenizer.ggml.token_type_count", (uint32_t)hf_config_int(b, "type_vocab_size", 2));
    text_view position;
    if (js_text(hf_config_get(b, "position_embedding_type"), &position))
        refuse_unless(b, js_text_is(position, "absolute"), "position_embedding_type");
    if (b->status == LOAM_OK) b->status = hf_open_json(&pooling, b->path, "1_Pooling/config.json", b->err);
    if (b->status != LOAM_OK) return;
    js_bool(js_get(pooling, "pooling_mode_mean_tokens"), &mean);
    js_bool(js_get(pooling, "pooling_mode_cls_token"), &first);
    js_bool(js_get(pooling, "pooling_mode_lasttoken"), &last);
    if (mean || first || last) hf_set_int(b, "pooling_type", mean ? 1 : first ? 2 : 3);
    js_free(pooling);
}

static void finish_classifier(hf_build *b)
{
    finish_bert(b);
    hf_set_int(b, "pooling_type", 4);
    const js *names = hf_config_get(b, "id2label");
    int64_t n = names ? (int64_t)js_count(names) : 1;
    text_view labels[64];
    for (int64_t i = 0; i < n && n <= 64; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", (int)i);
        if (!js_text(js_get(names, id), &labels[i])) n = 1, i = 1;
    }
    char key[64];
    snprintf(key, sizeof key, "%s.classifier.output_labels", b->arch->name);
    if (n > 1 && n <= 64) gguf_set_texts(b->b, key, labels, (uint64_t)n);
    refuse_unless(b, n <= 64, "id2label");
}

/* A tied head reads rows that are scaled by D^-1/2, which GGUF models of T5 do not: the scale goes into a head of its own. */
static void finish_t5(hf_build *b)
{
    bool tied = hf_config_bool(b, "scale_decoder_outputs tie_word_embeddings", true);
    const st_tensor *table = hf_stored(b->w, "shared.weight");
    if (!table) table = hf_stored(b->w, "lm_head.weight");
    if (b->status != LOAM_OK || !tied || !table || table->n_dims != 2) return;
    hf_item *head = hf_add_item(b, "output.weight");
    if (!head) return;
    head->factor = (float)(1 / __builtin_sqrt((double)b->width));
    head->parts[0] = (hf_part){ .t = table, .rows = table->shape[0] };
}

/* ---- the table ---- */

#define SILU "silu swish"
#define GELU "gelu gelu_new gelu_pytorch_tanh gelu_fast gelu_python"

#define TIED "{\"tie_word_embeddings\": true}"

static const hf_arch table[] = {
    {
        .classes = "LlamaForCausalLM MistralForCausalLM LlamaModel MistralModel",
        .types = "llama mistral", .name = "llama", .acts = SILU, .keys = decoder_keys, .rules = decoder, .adjacent = true,
        .defaults = "{\"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 2048}",
    },
    {
        .classes = "MixtralForCausalLM", .types = "mixtral", .name = "llama", .acts = SILU, .keys = mixtral_keys,
        .rules = mixtral, .more_rules = decoder, .adjacent = true,
    },
    {
        .classes = "Qwen2ForCausalLM Qwen2Model", .types = "qwen2", .name = "qwen2", .acts = SILU, .keys = decoder_keys,
        .rules = decoder,
    },
    {
        .classes = "Qwen2MoeForCausalLM", .types = "qwen2_moe", .name = "qwen2moe", .acts = SILU, .keys = qwen_moe_keys,
        .rules = qwen_moe, .more_rules = decoder, .finish = finish_qwen_moe,
    },
    {
        .classes = "Qwen3ForCausalLM Qwen3Model", .types = "qwen3", .name = "qwen3", .acts = SILU, .keys = decoder_keys,
        .rules = decoder,
    },
    {
        .classes = "Qwen3MoeForCausalLM", .types = "qwen3_moe", .name = "qwen3moe", .acts = SILU, .keys = qwen_moe_keys,
        .rules = qwen_moe, .more_rules = decoder, .finish = finish_qwen_moe,
    },
    {
        .classes = "GemmaForCausalLM", .types = "gemma", .name = "gemma", .acts = GELU, .keys = decoder_keys, .rules = decoder,
        .plus_one = true, .defaults = TIED,
    },
    {
        .classes = "Gemma2ForCausalLM", .types = "gemma2", .name = "gemma2", .acts = GELU, .keys = gemma_keys, .rules = sandwich,
        .more_rules = decoder, .plus_one = true, .finish = finish_gemma2, .defaults = TIED,
    },
    {
        .classes = "Gemma3ForCausalLM Gemma3ForConditionalGeneration", .types = "gemma3_text gemma3", .name = "gemma3",
        .prefixes = "language_model. model.language_model.",
        .skipped = "vision_tower. multi_modal_projector. model.vision_tower. model.multi_modal_projector.", .acts = GELU, .keys = gemma_keys, .rules = sandwich,
        .more_rules = decoder, .plus_one = true, .finish = finish_gemma3,
        .defaults = "{\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 256, \"rms_norm_eps\": 1e-6,"
                    " \"max_position_embeddings\": 131072, \"query_pre_attn_scalar\": 256, \"rope_theta\": 1000000,"
                    " \"rope_local_base_freq\": 10000, \"sliding_window\": 4096, \"tie_word_embeddings\": true}",
    },
    {
        .classes = "Phi3ForCausalLM", .types = "phi3", .name = "phi3", .acts = SILU, .keys = decoder_keys, .rules = phi3,
        .more_rules = decoder,
    },
    {
        .classes = "GPT2LMHeadModel GPT2Model", .types = "gpt2", .name = "gpt2", .prefixes = "transformer.", .acts = GELU,
        .keys = gpt2_keys, .rules = gpt2, .no_rope = true, .finish = finish_gpt2,
        .defaults = "{\"n_positions\": 1024, \"layer_norm_epsilon\": 1e-5, \"tie_word_embeddings\": true}",
    },
    {
        .classes = "Starcoder2ForCausalLM", .types = "starcoder2", .name = "starcoder2", .acts = GELU, .keys = starcoder2_keys,
        .rules = starcoder2, .more_rules = decoder,
    },
    {
        .classes = "SmolLM3ForCausalLM", .types = "smollm3", .name = "smollm3", .acts = SILU, .keys = decoder_keys,
        .rules = decoder, .adjacent = true, .finish = finish_smollm3,
    },
    {
        .classes = "Olmo2ForCausalLM", .types = "olmo2", .name = "olmo2", .acts = SILU, .keys = decoder_keys,
        .rules = sandwich, .more_rules = decoder,
    },
    {
        .classes = "Olmo3ForCausalLM", .types = "olmo3", .name = "olmo2", .acts = SILU, .keys = window_keys,
        .rules = sandwich, .more_rules = decoder, .finish = finish_olmo3,
    },
    {
        .classes = "GraniteForCausalLM", .types = "granite", .name = "granite", .acts = SILU, .keys = granite_keys,
        .rules = decoder, .adjacent = true, .defaults = "{\"logits_scaling\": 1}",
    },
    {
        .classes = "GraniteMoeForCausalLM", .types = "granitemoe", .name = "granitemoe", .acts = SILU, .keys = granite_moe_keys,
        .rules = granite_moe, .more_rules = decoder, .adjacent = true, .defaults = "{\"logits_scaling\": 1}",
    },
    {
        .classes = "BertForSequenceClassification", .types = "", .name = "bert", .prefixes = "bert.", .acts = GELU,
        .keys = bert_keys, .rules = bert_labels, .more_rules = bert, .no_rope = true, .finish = finish_classifier,
    },
    {
        .classes = "BertModel BertForMaskedLM BertForPreTraining", .types = "bert", .name = "bert", .prefixes = "bert.",
        .acts = GELU, .keys = bert_keys, .rules = bert, .no_rope = true, .finish = finish_bert,
    },
    {
        .classes = "T5ForConditionalGeneration", .types = "t5", .name = "t5", .acts = "relu gated-gelu",
        .keys = t5_keys, .rules = t5, .no_rope = true, .finish = finish_t5,
        .defaults = "{\"n_positions\": 512, \"layer_norm_epsilon\": 1e-6, \"relative_attention_num_buckets\": 32}",
    },
    {
        .classes = "T5EncoderModel", .types = "", .name = "t5encoder", .acts = "relu gated-gelu",
        .keys = t5_keys, .rules = t5, .no_rope = true,
        .defaults = "{\"n_positions\": 512, \"layer_norm_epsilon\": 1e-6, \"relative_attention_num_buckets\": 32}",
    },
};

/* ---- looking up ---- */

bool hf_word_in(const char *words, text_view word)
{
    if (!words || !word.data || word.len == 0) return false;
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == word.len && memcmp(at, word.data, n) == 0) return true;
        at += n;
    }
    return false;
}

const hf_arch *hf_arch_of(const js *config, text_view *name)
{
    const size_t n = sizeof table / sizeof *table;
    if (js_text(js_at(js_get(config, "architectures"), 0), name))
        for (size_t i = 0; i < n; i++)
            if (hf_word_in(table[i].classes, *name)) return &table[i];
    text_view type;
    if (!js_text(js_get(config, "model_type"), &type)) return NULL;
    if (!name->data) *name = type;
    for (size_t i = 0; i < n; i++)
        if (hf_word_in(table[i].types, type)) return &table[i];
    return NULL;
}

const hf_arch *hf_arch_named(text_view name, int n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (js_text_is(name, table[i].name) && n-- == 0) return &table[i];
    return NULL;
}

static bool take_number(text_view *t, int64_t *n)
{
    size_t i = 0;
    *n = 0;
    for (; i < t->len && i < 9 && t->data[i] >= '0' && t->data[i] <= '9'; i++) *n = *n * 10 + (t->data[i] - '0');
    bool plain = i > 0 && (i == 1 || t->data[0] != '0');
    t->data += i;
    t->len -= i;
    return plain;
}

bool hf_match(const char *pattern, text_view name, int64_t numbers[2])
{
    numbers[0] = numbers[1] = -1;
    for (; *pattern; pattern++) {
        if (*pattern == '#' || *pattern == '%') {
            if (!take_number(&name, &numbers[*pattern == '%'])) return false;
        } else {
            if (name.len == 0 || *name.data != *pattern) return false;
            name.data++;
            name.len--;
        }
    }
    return name.len == 0;
}
