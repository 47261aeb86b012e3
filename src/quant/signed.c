/* signed.c - the search of the codebook types with signs (IQ2, IQ3): magnitudes from a grid, a mask of negations.
 *
 * For each group of 16 or 32 values a number of inverse scales is tried; each gives entries and with them a best scale; the
 * best of them, improved once, is the group's. The scales of the groups are then quantized to 4 bits. */
#include <string.h>

#include "quant/grid.h"
#include "quant/search.h"

/* Weights of one group; mean: the block's mean square times the rule's share. */
static void group_weights(const signed_rule *rule, const float *x, const float *c, float mean, grid_group *group)
{
    for (int i = 0; i < rule->size; i++) {
        float xx = x[i] * x[i];
        if (c) group->w[i] = c[i] * sqrtf(mean + xx);
        else group->w[i] = rule->type == LOAM_IQ2_S ? 0.25f * mean + xx : xx;
    }
    for (int i = 0; i < rule->size; i++) group->root[i] = sqrtf(group->w[i]);
}

/* Magnitudes, and a mask of negations for each eight values. Where the count must be even, the value that matters least
 * changes its sign. */
static void split_signs(const signed_rule *rule, const float *x, grid_group *group, uint8_t *signs)
{
    for (int k = 0; k < rule->size / 8; k++) {
        unsigned mask = 0;
        int least = 0;
        float least_weight = INFINITY;
        for (int i = 8 * k; i < 8 * k + 8; i++) {
            group->x[i] = x[i] >= 0.0f ? x[i] : -x[i];
            mask |= (unsigned)!(x[i] >= 0.0f) << i % 8;
            float weight = group->w[i] * x[i] * x[i];
            if (weight < least_weight) {
                least_weight = weight;
                least = i;
            }
        }
        if (rule->even_signs && __builtin_parity(mask)) {
            group->x[least] = -group->x[least];
            mask ^= 1u << least % 8;
        }
        signs[k] = (uint8_t)mask;
    }
}

/* Searches the group whose magnitudes and weights are filled. a stays 0 for a group that counts as zero. */
static void search_group(const signed_rule *rule, const grid_index *index, grid_group *group)
{
    const search_ops *ops = search_get();
    float range = group->x[0], g[GRID_TRIES];
    for (int i = 1; i < group->n; i++)
        if (group->x[i] > range) range = group->x[i];
    group->a = 0.0f;
    if (range < rule->zero || range == 0.0f) return;
    if (rule->fit_range) {
        uint8_t levels[32];
        range = fit_pos(group->x, group->w, group->n, 4, levels) * 3.0f;
        if (range <= 0.0f) return;
    }
    int tries = 0;
    for (int t = -rule->reach; t <= rule->reach; t++) g[tries++] = ((float)rule->top + (float)t * rule->step) / range;
    for (int t = tries; t < GRID_TRIES; t++) g[t] = g[0];
    ops->grid_search(index, group, g, tries);
    unsigned all = (1u << group->n / index->digits) - 1, which = group->off;
    if (rule->choose == CHOOSE_ALL || (rule->choose == CHOOSE_ALL_IF_OFF && which)) which = all;
    if (group->a > 0.0f && which) ops->grid_choose(index, group, which, group->a);
}

void signed_search(const signed_rule *rule, const float *x, const float *c, signed_block *block)
{
    const grid_index *index = grid_get(rule->type);
    const int groups = 256 / rule->size, parts = rule->size / index->digits;
    const float mean = rule->weights_mean * sum_squares(x, 256) / 256.0f;
    float a[16], top = 0.0f;
    memset(block, 0, sizeof *block);
    for (int k = 0; k < groups; k++) {
        grid_group group = { .n = rule->size };
        uint8_t *signs = block->signs + k * rule->size / 8;
        const float *gx = x + k * rule->size;
        group_weights(rule, gx, c ? c + k * rule->size : NULL, mean, &group);
        split_signs(rule, gx, &group, signs);
        search_group(rule, index, &group);
        a[k] = group.a;
        if (group.a > top) top = group.a;
        if (group.a > 0.0f) memcpy(block->entry + k * parts, group.entry, (size_t)parts * sizeof *group.entry);
        else memset(signs, 0, (size_t)rule->size / 8);
    }
    if (top == 0.0f) return;
    block->d = top / 31.0f;
    float id = 1.0f / block->d;
    for (int k = 0; k < groups; k++) block->scale[k] = (uint8_t)to_level(round_even(0.5f * (id * a[k] - 1.0f)), 0, 15);
}
