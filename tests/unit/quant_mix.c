/* quant_mix.c - the named mixes: names, which tensors are quantized, the types of whole models, options, fall-backs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/mix.h"

#include <cmocka.h> /* last: it has a macro named fail */

#define MAX_TENSORS 1200

/* A made-up model: the usual tensors of n_layer layers. */
static char names[MAX_TENSORS][64];
static mix_tensor tensors[MAX_TENSORS];
static mix_choice choices[MAX_TENSORS];
static size_t n_tensors;
static mix_model model;
static mix_options options;
static loam_error err;

static void add(const char *name, int64_t n0, int64_t n1, int64_t n2)
{
    snprintf(names[n_tensors], sizeof names[0], "%s", name);
    tensors[n_tensors] = (mix_tensor){ names[n_tensors], { n0, n1, n2, 1 }, LOAM_F32, true };
    n_tensors++;
}

static void make_model(const char *arch, int n_layer, int n_head_kv, int n_expert, bool tied)
{
    static const char *const parts[] = { "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down" };
    n_tensors = 0;
    model = (mix_model){ arch, n_layer, 32, n_head_kv, n_expert };
    add("token_embd.weight", 4096, 32000, 1);
    if (!tied) add("output.weight", 4096, 32000, 1);
    add("output_norm.weight", 4096, 1, 1);
    for (int l = 0; l < n_layer; l++) {
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
            char name[64];
            bool experts = n_expert > 0 && k >= 4;
            snprintf(name, sizeof name, "blk.%d.%s%s.weight", l, parts[k], experts ? "_exps" : "");
            add(name, 4096, 4096, experts ? n_expert : 1);
        }
        char norm[64];
        snprintf(norm, sizeof norm, "blk.%d.attn_norm.weight", l);
        add(norm, 4096, 1, 1);
    }
    options = (mix_options){ .output_type = -1, .token_type = -1, .has_matrix = true };
}

static int type_of(const char *name)
{
    for (size_t k = 0; k < n_tensors; k++)
        if (strcmp(tensors[choices[k].tensor].name, name) == 0) return choices[k].type;
    fail_msg("no tensor %s", name);
    return -1;
}

static void plan(const char *mix)
{
    assert_int_equal(mix_find(mix, &options.mix, &err), LOAM_OK);
    if (mix_plan(&options, &model, tensors, n_tensors, choices, &err)) fail_msg("%s: %s", mix, err.message);
}

/* The types of one kind of tensor in all layers, one letter each by the table of letters. */
static void expect_layers(const char *part, const char *want, const char *letters, const int *types)
{
    for (int64_t l = 0; l < model.n_layer; l++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", (int)l, part);
        int type = type_of(name), expected = types[strchr(letters, want[l]) - letters];
        if (type != expected) fail_msg("%s: %s where %s was expected", name, loam_type_name(type), loam_type_name(expected));
    }
}

static void test_names(void **state)
{
    (void)state;
    const mix_info *m;
    assert_int_equal(mix_find("q4_k_m", &m, &err), LOAM_OK);
    assert_int_equal(m->id, MIX_Q4_K_M);
    assert_int_equal(m->file_type, 15);
    assert_int_equal(mix_find("Q5_K", &m, &err), LOAM_OK);
    assert_int_equal(m->id, MIX_Q5_K_M);
    assert_int_equal(mix_find("30", &m, &err), LOAM_OK);
    assert_int_equal(m->id, MIX_IQ4_XS);
    assert_int_equal(mix_find("COPY", &m, &err), LOAM_OK);
    assert_int_equal(m->type, -1);
    const char *bad[] = { "q4km", "", "99", "-1", "4x", "q9_K" };
    for (int k = 0; k < 6; k++) assert_int_equal(mix_find(bad[k], &m, &err), LOAM_E_ARG);
    assert_int_equal(mix_find("q4km", &m, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "Q4_K_M"));
    for (int i = 0; mix_at(i); i++) {
        assert_int_equal(mix_find(mix_at(i)->name, &m, &err), LOAM_OK);
        assert_ptr_equal(m, mix_at(i));
    }
}

static void test_what_is_quantized(void **state)
{
    (void)state;
    static const struct { const char *name; int64_t n1; bool yes; } cases[] = {
        { "blk.0.attn_q.weight", 64, true },          { "blk.0.attn_q.bias", 64, false },
        { "blk.0.attn_norm.weight", 64, false },      { "blk.0.attn_q.weight", 1, false },
        { "blk.0.ffn_gate_inp.weight", 64, false },   { "position_embd.weight", 64, false },
        { "blk.3.ssm_conv1d.weight", 64, false },     { "blk.3.time_mix_w1.weight", 64, false },
        { "blk.3.time_mix_key.weight", 64, true },    { "token_embd.weight", 64, true },
        { "blk.1.ffn_gate_exps.weight", 64, true },   { "v.patch_embd.weight", 64, false },
        { "weigh", 64, false },                       { "", 64, false },
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        mix_tensor t = { cases[k].name, { 256, cases[k].n1, 1, 1 }, LOAM_F32, false };
        assert_int_equal(mix_is_quantized(&t), cases[k].yes);
    }
}

static void test_q4_k_m(void **state)
{
    (void)state;
    const int types[] = { LOAM_Q4_K, LOAM_Q6_K };
    make_model("llama", 32, 8, 0, false);
    plan("Q4_K_M");
    assert_int_equal(type_of("token_embd.weight"), LOAM_Q4_K);
    assert_int_equal(type_of("output.weight"), LOAM_Q6_K);
    assert_int_equal(type_of("output_norm.weight"), LOAM_F32);
    /* The first four, the last four, every third between: 4 + 2, 9, 12, ... */
    const char *more = "66664464464464464464464464466666";
    expect_layers("ffn_down", more, "46", types);
    /* V is counted in visiting order, which is by name within a layer and by number over layers. */
    expect_layers("attn_v", more, "46", types);
    expect_layers("attn_q", "44444444444444444444444444444444", "46", types);
    plan("Q5_K_M");
    const int five[] = { LOAM_Q5_K, LOAM_Q6_K };
    expect_layers("attn_v", more, "46", five);
    make_model("llama", 32, 8, 0, true);
    plan("Q4_K_M");
    assert_int_equal(type_of("token_embd.weight"), LOAM_Q6_K);
}

static void test_other_mixes(void **state)
{
    (void)state;
    make_model("llama", 32, 8, 0, false);
    plan("Q3_K_M");
    assert_int_equal(type_of("blk.0.attn_v.weight"), LOAM_Q5_K);
    assert_int_equal(type_of("blk.2.attn_v.weight"), LOAM_Q4_K);
    assert_int_equal(type_of("blk.1.ffn_down.weight"), LOAM_Q5_K);
    assert_int_equal(type_of("blk.2.ffn_down.weight"), LOAM_Q4_K);
    assert_int_equal(type_of("blk.9.attn_output.weight"), LOAM_Q4_K);
    assert_int_equal(type_of("blk.9.ffn_up.weight"), LOAM_Q3_K);
    plan("Q2_K");
    assert_int_equal(type_of("blk.9.attn_v.weight"), LOAM_Q4_K); /* four query heads share a value head */
    assert_int_equal(type_of("blk.9.ffn_down.weight"), LOAM_Q3_K);
    plan("IQ2_XXS");
    assert_int_equal(type_of("token_embd.weight"), LOAM_Q2_K);
    assert_int_equal(type_of("output.weight"), LOAM_Q5_K);
    assert_int_equal(type_of("blk.3.ffn_down.weight"), LOAM_Q2_K);
    assert_int_equal(type_of("blk.4.ffn_down.weight"), LOAM_IQ2_XXS);
    plan("IQ3_XS");
    assert_int_equal(type_of("blk.3.ffn_up.weight"), LOAM_IQ3_S);
    assert_int_equal(type_of("blk.4.ffn_up.weight"), LOAM_IQ3_XXS);
    assert_int_equal(type_of("blk.28.ffn_gate.weight"), LOAM_IQ3_S);
    assert_int_equal(type_of("blk.9.attn_k.weight"), LOAM_IQ3_XXS);
    plan("IQ4_XS");
    assert_int_equal(type_of("blk.0.ffn_down.weight"), LOAM_IQ4_XS);
    options.has_matrix = false;
    plan("IQ4_XS");
    assert_int_equal(type_of("blk.0.ffn_down.weight"), LOAM_Q5_K);
    plan("Q4_0");
    assert_int_equal(type_of("blk.0.ffn_down.weight"), LOAM_Q4_0);
    plan("Q8_0");
    assert_int_equal(type_of("output.weight"), LOAM_Q8_0);
    plan("F16");
    assert_int_equal(type_of("output.weight"), LOAM_F16);
    assert_int_equal(type_of("blk.0.attn_norm.weight"), LOAM_F32);
    plan("COPY");
    for (size_t k = 0; k < n_tensors; k++) assert_int_equal(choices[k].type, LOAM_F32);
}

static void test_experts(void **state)
{
    (void)state;
    make_model("llama", 32, 8, 8, false);
    plan("Q4_K_M");
    assert_int_equal(type_of("blk.9.attn_v.weight"), LOAM_Q8_0);
    assert_int_equal(type_of("blk.9.attn_k.weight"), LOAM_Q8_0);
    assert_int_equal(type_of("blk.9.attn_output.weight"), LOAM_Q5_K);
    assert_int_equal(type_of("blk.0.ffn_down_exps.weight"), LOAM_Q6_K);
    assert_int_equal(type_of("blk.4.ffn_down_exps.weight"), LOAM_Q4_K);
    plan("MXFP4_MOE");
    assert_int_equal(type_of("blk.9.ffn_up_exps.weight"), LOAM_MXFP4);
    assert_int_equal(type_of("blk.9.attn_v.weight"), LOAM_Q8_0);
    assert_int_equal(type_of("token_embd.weight"), LOAM_Q8_0);
}

static void test_special_models(void **state)
{
    (void)state;
    make_model("falcon", 32, 1, 0, false);
    plan("Q4_K_M");
    assert_int_equal(type_of("output.weight"), LOAM_Q8_0);
    assert_int_equal(type_of("blk.1.ffn_down.weight"), LOAM_Q6_K);
    assert_int_equal(type_of("blk.2.ffn_down.weight"), LOAM_Q5_K);
    make_model("llama", 80, 8, 0, false);
    plan("Q4_K_S");
    assert_int_equal(type_of("blk.40.attn_v.weight"), LOAM_Q5_K);
    make_model("llama", 80, 32, 0, false);
    plan("Q4_K_S");
    assert_int_equal(type_of("blk.40.attn_v.weight"), LOAM_Q4_K);
}

static void test_options(void **state)
{
    (void)state;
    make_model("llama", 32, 8, 0, false);
    options.pure = true;
    plan("Q4_K_M");
    assert_int_equal(type_of("output.weight"), LOAM_Q4_K);
    assert_int_equal(type_of("blk.0.ffn_down.weight"), LOAM_Q4_K);
    options.pure = false;
    options.output_type = LOAM_F16;
    options.token_type = LOAM_Q8_0;
    plan("Q4_K_M");
    assert_int_equal(type_of("output.weight"), LOAM_F16);
    assert_int_equal(type_of("token_embd.weight"), LOAM_Q8_0);
    options.leave_output = true;
    plan("Q4_K_M");
    assert_int_equal(type_of("output.weight"), LOAM_F32);
    const mix_override overrides[] = { { "blk\\.(?:1|2\\d)\\.FFN_down", LOAM_Q8_0 }, { "ffn_down", LOAM_Q5_0 } };
    options.overrides = overrides;
    options.n_overrides = 2;
    plan("Q4_K_M");
    assert_int_equal(type_of("blk.1.ffn_down.weight"), LOAM_Q8_0);
    assert_int_equal(type_of("blk.25.ffn_down.weight"), LOAM_Q8_0);
    assert_int_equal(type_of("blk.2.ffn_down.weight"), LOAM_Q5_0);
    assert_int_equal(type_of("blk.2.ffn_up.weight"), LOAM_Q4_K);
    const char *bad[] = { "blk.(", "a{1000}", "((a{90}){90}){90}", "[" };
    for (int k = 0; k < 4; k++) {
        const mix_override one = { bad[k], LOAM_Q8_0 };
        options.overrides = &one;
        options.n_overrides = 1;
        assert_int_equal(mix_plan(&options, &model, tensors, n_tensors, choices, &err), LOAM_E_ARG);
        assert_non_null(strstr(err.message, bad[k]));
    }
    options.overrides = NULL;
    options.n_overrides = 0;
    options.output_type = 99;
    assert_int_equal(mix_plan(&options, &model, tensors, n_tensors, choices, &err), LOAM_E_ARG);
}

static void test_fall_backs(void **state)
{
    (void)state;
    static const struct { const char *mix; int64_t n; int type; } cases[] = {
        { "Q4_K_S", 288, LOAM_Q5_0 }, { "Q5_K_S", 288, LOAM_Q5_1 }, { "Q6_K", 288, LOAM_Q8_0 }, { "Q3_K_S", 288, LOAM_Q4_0 },
        { "IQ4_XS", 288, LOAM_IQ4_NL }, { "IQ1_S", 288, LOAM_IQ4_NL }, { "TQ1_0", 288, LOAM_Q4_0 }, { "Q4_0", 100, LOAM_F16 },
        { "Q4_K_S", 100, LOAM_F16 }, { "Q8_0", 100, LOAM_F16 }, { "Q2_0", 96, LOAM_Q4_0 }, { "MXFP4_MOE", 288, LOAM_Q8_0 },
    };
    make_model("llama", 1, 8, 0, false);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        n_tensors = 0;
        add("blk.0.ffn_up.weight", cases[k].n, 64, 1);
        plan(cases[k].mix);
        assert_int_equal(choices[0].type, cases[k].type);
        bool chosen = strcmp(cases[k].mix, "MXFP4_MOE") == 0; /* Q8_0 by the rules, and it fits */
        assert_int_equal(choices[0].fell_back, !chosen);
    }
    n_tensors = 0;
    add("blk.0.ffn_up.weight", 96, 64, 1);
    const char *none[] = { "Q1_0", "NVFP4" };
    for (int k = 0; k < 2; k++) {
        assert_int_equal(mix_find(none[k], &options.mix, &err), LOAM_OK);
        assert_int_equal(mix_plan(&options, &model, tensors, n_tensors, choices, &err), LOAM_E_ARG);
        assert_non_null(strstr(err.message, "blk.0.ffn_up.weight"));
    }
}

static void test_matrix(void **state)
{
    (void)state;
    make_model("llama", 4, 8, 0, false);
    options.has_matrix = false;
    const char *need[] = { "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "Q2_K_S" };
    for (int k = 0; k < 7; k++) {
        assert_int_equal(mix_find(need[k], &options.mix, &err), LOAM_OK);
        assert_int_equal(mix_plan(&options, &model, tensors, n_tensors, choices, &err), LOAM_E_ARG);
        assert_non_null(strstr(err.message, "importance matrix"));
    }
    options.dry_run = true;
    plan("IQ1_S");
    options.dry_run = false;
    plan("Q2_K");
    plan("IQ3_S");
    options.has_matrix = true;
    plan("IQ2_XXS");
    for (size_t k = 0; k < n_tensors; k++)
        assert_int_equal(choices[k].use_weights, mix_is_quantized(&tensors[choices[k].tensor]));
    for (size_t k = 0; k < n_tensors; k++)
        if (strcmp(tensors[k].name, "blk.2.attn_q.weight") == 0) tensors[k].has_weights = false;
    assert_int_equal(mix_plan(&options, &model, tensors, n_tensors, choices, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "blk.2.attn_q.weight"));
    plan("Q8_0");
    assert_false(choices[0].use_weights);
}

/* The order of the data: no layer first, then by layer number, then by name in byte order. */
static void test_order(void **state)
{
    (void)state;
    make_model("llama", 12, 8, 0, false);
    plan("Q4_K_M");
    assert_string_equal(tensors[choices[0].tensor].name, "output.weight");
    assert_string_equal(tensors[choices[2].tensor].name, "token_embd.weight");
    assert_string_equal(tensors[choices[3].tensor].name, "blk.0.attn_k.weight");
    assert_string_equal(tensors[choices[3 + 8 * 10].tensor].name, "blk.10.attn_k.weight");
    options.keep_order = true;
    plan("Q4_K_M");
    for (size_t k = 0; k < n_tensors; k++) assert_int_equal(choices[k].tensor, k);
}

static int allocations_left;

static void *failing_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(p, new_size) : NULL;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    const loam_allocator hook = { failing_resize, NULL };
    const mix_override one = { "ffn", LOAM_Q8_0 };
    make_model("llama", 2, 8, 0, false);
    options.overrides = &one;
    options.n_overrides = 1;
    assert_int_equal(mix_find("Q4_K_M", &options.mix, &err), LOAM_OK);
    loam_set_allocator(&hook);
    loam_status status = LOAM_E_NOMEM;
    int n = 0;
    for (; n < 20 && status == LOAM_E_NOMEM; n++) {
        allocations_left = n;
        status = mix_plan(&options, &model, tensors, n_tensors, choices, &err);
    }
    loam_set_allocator(NULL);
    assert_int_equal(status, LOAM_OK);
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_what_is_quantized), cmocka_unit_test(test_q4_k_m),
        cmocka_unit_test(test_other_mixes), cmocka_unit_test(test_experts),          cmocka_unit_test(test_special_models),
        cmocka_unit_test(test_options),    cmocka_unit_test(test_fall_backs),        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_order),      cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
