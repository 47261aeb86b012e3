/* names.c - tokens found by their text: roles that no key gave, the end-of-generation set, white space taken along.
 *
 * Where a vocabulary has several of the texts of one role, the first of the list is taken. */
#include "tokenizer/tokenizer.h"

#define BAR "\xEF\xBD\x9C" /* U+FF5C */

/* Texts, ended by NULL. */
static const char *const eot_texts[] = {
    "<|eot_id|>",         "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",    "<EOT>",      "_<EOT>",  "[EOT]",         "<" BAR "end" SPACE_MARK "of" SPACE_MARK "sentence" BAR ">",
    "<end_of_utterance>", NULL
};
static const char *const eom_texts[] = { "<|eom_id|>", NULL };
static const char *const fim_pre_texts[] = { "<|fim_prefix|>",
                                             "<fim-prefix>",
                                             "<fim_prefix>",
                                             "<" BAR "fim" SPACE_MARK "begin" BAR ">",
                                             "<PRE>",
                                             SPACE_MARK "<PRE>",
                                             "<|code_prefix|>",
                                             "<|prefix|>",
                                             NULL };
static const char *const fim_suf_texts[] = { "<|fim_suffix|>",
                                             "<fim-suffix>",
                                             "<fim_suffix>",
                                             "<" BAR "fim" SPACE_MARK "hole" BAR ">",
                                             "<SUF>",
                                             SPACE_MARK "<SUF>",
                                             "<|code_suffix|>",
                                             "<|suffix|>",
                                             NULL };
static const char *const fim_mid_texts[] = { "<|fim_middle|>",
                                             "<fim-middle>",
                                             "<fim_middle>",
                                             "<" BAR "fim" SPACE_MARK "end" BAR ">",
                                             "<MID>",
                                             SPACE_MARK "<MID>",
                                             "<|code_middle|>",
                                             "<|middle|>",
                                             NULL };
static const char *const fim_pad_texts[] = { "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", NULL };
static const char *const fim_rep_texts[] = { "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", NULL };
static const char *const fim_sep_texts[] = { "<|file_sep|>", NULL };
static const char *const end_texts[] = { "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",        "</s>", "<|eom_id|>",
                                         "[EOS]",      "<eos>",    "<turn|>",   "<|tool_response>", "[e~[", NULL };
static const char *const printed_texts[] = { "<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", NULL };

static const struct {
    loam_token_role role;
    const char *const *texts;
} roles[] = {
    { LOAM_TOKEN_EOT, eot_texts },         { LOAM_TOKEN_EOM, eom_texts },         { LOAM_TOKEN_FIM_PRE, fim_pre_texts },
    { LOAM_TOKEN_FIM_SUF, fim_suf_texts }, { LOAM_TOKEN_FIM_MID, fim_mid_texts }, { LOAM_TOKEN_FIM_PAD, fim_pad_texts },
    { LOAM_TOKEN_FIM_REP, fim_rep_texts }, { LOAM_TOKEN_FIM_SEP, fim_sep_texts },
};

static loam_token find(const loam_tokenizer *t, const char *text) { return tok_find(t, text, strlen(text)); }

static void make_control(loam_tokenizer *t, const vocab_view *v, loam_token id)
{
    if (!(t->attrs[id] & LOAM_ATTR_CONTROL))
        log_at(LOAM_LOG_WARN, "%s: token %d is taken for a control token because of its text", v->source, id);
    t->attrs[id] |= LOAM_ATTR_CONTROL;
}

static void add_end(loam_tokenizer *t, loam_token id)
{
    if (id >= 0) t->attrs[id] |= LOAM_ATTR_EOG;
}

static bool ends(const loam_tokenizer *t, const char *text)
{
    loam_token id = find(t, text);
    return id >= 0 && t->attrs[id] & LOAM_ATTR_EOG;
}

static void find_roles(loam_tokenizer *t, const vocab_view *v)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        loam_token *id = &t->role[roles[i].role];
        if (*id >= 0) continue;
        for (const char *const *text = roles[i].texts; *text && *id < 0; text++) *id = find(t, *text);
        if (*id >= 0) make_control(t, v, *id);
    }
}

static void mark_unused(loam_tokenizer *t)
{
    for (uint32_t id = 0; id < t->n_tokens; id++)
        if (t->attrs[id] & LOAM_ATTR_CONTROL && tok_has(t->texts[id], "unused")) t->attrs[id] |= LOAM_ATTR_UNUSED;
}

static void add_ends(loam_tokenizer *t, const vocab_view *v, const char *const *texts)
{
    for (; *texts; texts++) {
        loam_token id = find(t, *texts);
        if (id < 0) continue;
        add_end(t, id);
        make_control(t, v, id);
    }
}

static void find_ends(loam_tokenizer *t, const vocab_view *v)
{
    add_end(t, t->role[LOAM_TOKEN_FIM_PAD]);
    add_end(t, t->role[LOAM_TOKEN_FIM_REP]);
    add_end(t, t->role[LOAM_TOKEN_FIM_SEP]);
    add_ends(t, v, eot_texts);
    add_ends(t, v, end_texts);
    for (const char *const *text = printed_texts; *text; text++) {
        loam_token id = find(t, *text);
        if (id >= 0) t->attrs[id] = (uint16_t)(LOAM_ATTR_USER | (t->attrs[id] & LOAM_ATTR_EOG));
    }
    add_end(t, t->role[LOAM_TOKEN_EOS]);
    add_end(t, t->role[LOAM_TOKEN_EOT]);
    add_end(t, t->role[LOAM_TOKEN_EOM]);
    /* Some formats end a part of a turn with <|end|>, some vocabularies have a second </s>: neither ends a generation. */
    if (ends(t, "<|end|>") && (ends(t, "<|call|>") || ends(t, "<|calls|>")) && (ends(t, "<|return|>") || ends(t, "<|flush|>")))
        t->attrs[find(t, "<|end|>")] = LOAM_ATTR_USER;
    if (ends(t, "<|tool_response>") && ends(t, "</s>")) t->attrs[find(t, "</s>")] = LOAM_ATTR_NORMAL;
}

void names_apply(loam_tokenizer *t, const vocab_view *v)
{
    find_roles(t, v);
    mark_unused(t);
    find_ends(t, v);
}

/* ---- white space taken along ---- */

static void set_strip(loam_tokenizer *t, const vocab_view *v, const char *text, uint16_t bit)
{
    loam_token id = find(t, text);
    if (id >= 0) t->attrs[id] |= bit;
    else log_at(LOAM_LOG_WARN, "%s: the vocabulary has no token %s", v->source, text);
}

void names_strip(loam_tokenizer *t, const vocab_view *v)
{
    static const char *const exempt[] = { "<unk>", "<s>", "<|endoftext|>" };
    if (tok_has(v->pre, "jina-v2-de") || tok_has(v->pre, "jina-v2-es") || tok_has(v->pre, "jina-v2-code") ||
        tok_has(v->architecture, "nomic-bert-moe") || tok_has(v->architecture, "jina-bert-v3")) {
        set_strip(t, v, "<mask>", LOAM_ATTR_LSTRIP);
    } else if (tok_has_any_case(v->name, "phi-3") || tok_has_any_case(v->name, "phi3")) {
        for (uint32_t i = 0; i < t->n_special; i++) t->attrs[t->special_id[i]] |= LOAM_ATTR_RSTRIP;
        set_strip(t, v, "</s>", LOAM_ATTR_RSTRIP);
        for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++) {
            loam_token id = find(t, exempt[i]);
            if (id >= 0) t->attrs[id] &= (uint16_t)~LOAM_ATTR_RSTRIP;
        }
    } else if (tok_has_any_case(v->name, "modern-bert")) {
        set_strip(t, v, "[MASK]", LOAM_ATTR_LSTRIP);
    }
}
