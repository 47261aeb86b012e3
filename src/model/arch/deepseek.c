/* deepseek.c - latent attention: DeepSeek-V2 and V3 with their kin, MiniCPM3. */
#include "model/arch/archs.h"

#include "model/hparams.h"

/* Two sizes of the family are known by their number of blocks: the small ones store queries uncompressed whatever the key
 * says; GLM-4.7-Flash routes by sigmoid where the key is missing. */
static void known_sizes(hparams *h)
{
    int64_t vocab = SYM(h->sym, V);
    int l = h->n_layer;
    if (l == 26 || l == 27 || (l == 48 && vocab == 128256)) SYM(h->sym, A) = 0;
    if (!h->router_given && (l == 47 || l == 48) && vocab == 154880) h->router = ROUTER_SIGMOID;
}

const arch_spec archs_deepseek[] = {
    {
        .name = "deepseek2",
        .required = "expert_feed_forward_length expert_shared_count attention.kv_lora_rank",
        .tensors = TENSORS(MAYBE(EXP_PROBS_B)),
        .rope.yarn = YARN_LOG | YARN_LOG_TENTH,
        .attn = { .scale = SCORE_LATENT, .temperature = TEMPERATURE_LATENT },
        .latent = LATENT_BY_KEY,
        .experts = { .blocks = EXPERTS_AFTER_LEADING, .gates = GATE_MAYBE_FUSED, KEYED_ROUTING(ROUTER_SOFTMAX) },
        .shared.width = "XN",
        .scales = SCALE_NOT_QKV,
        .adjust = known_sizes,
    },
    {
        .name = "minicpm3", /* constants, whatever the keys say */
        .required = "attention.q_lora_rank attention.kv_lora_rank",
        .tensors = TENSORS(MAYBE(ROPE_LONG), MAYBE(ROPE_SHORT)),
        .embedding.value = 12,
        .residual = { .value = 1.4f, .by = BY_1_SQRT_L },
        .hidden = { .value = 256, .by = BY_1_D },
        .rope = { .kind = ROTARY_HALVES, .factors = true },
        .latent = LATENT_PLAIN,
        .scales = SCALE_NOT_QKV,
    },
    { .name = NULL },
};
