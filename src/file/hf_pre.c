/* hf_pre.c - knows the pre-tokenizer of a byte-level vocabulary by its content.
 *
 * The steps of "pre_tokenizer" become one text, step by step: "split REGEX", "digits", "punctuation", "gpt2" (the expression that
 * ByteLevel has built in). Names come from rows that have the same text; where one row's steps stand for several names, those
 * that differ in what a vocabulary does with whole pieces are told apart by the model's ignore_merges. */
#include <stdio.h>
#include <string.h>

#include "file/hf_impl.h"

#define FOLDED "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CASED_CLASSES "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
#define CASED_CLASSES_2 "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define REST_SLASH "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define GPT2_SPLIT "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define SPELLED "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define ASCII_MARK "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"

static const struct {
    const char *steps, *name, *ignoring; /* ignoring: the name where whole pieces are looked up first; NULL: the same */
} known[] = {
    { "gpt2\n", "gpt-2", NULL },
    { "split " GPT2_SPLIT "\n", "gpt-2", NULL },
    { "digits\ngpt2\n", "smollm", NULL },
    { "split \\p{N}\ngpt2\n", "smollm", NULL },
    { "split " FOLDED WORDS "\\p{N}{1,3}" REST "\n", "dbrx", "llama-bpe" },
    { "split " SPELLED WORDS "\\p{N}{1,3}" REST "\n", "dbrx", "llama-bpe" },
    { "split " FOLDED WORDS "\\p{N}" REST "\n", "qwen2", NULL },
    { "split " SPELLED WORDS "\\p{N}" REST "\n", "qwen2", NULL },
    { "split " CASED_CLASSES FOLDED "?|" CASED_CLASSES_2 FOLDED "?|\\p{N}{1,3}" REST_SLASH "\n", "gpt-4o", NULL },
    { "split " CASED_CLASSES "|" CASED_CLASSES_2 "|\\p{N}" REST_SLASH "\n", "tekken", "tekken" },
    { "split \\p{N}{1,3}\nsplit [一-龥぀-ゟ゠-ヿ]+\nsplit " ASCII_MARK
      "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES "\n", "deepseek-v3", NULL },
    { "split [\\r\\n]\nsplit \\s?\\p{L}+\nsplit \\s?\\p{P}+\nsplit [一-龥ࠀ-一가-퟿]+\ndigits\n", "deepseek-coder", NULL },
    { "punctuation\ngpt2\nsplit [0-9][0-9][0-9]\n", "falcon", NULL },
    { "punctuation\ngpt2\ndigits together\nsplit [0-9][0-9][0-9]\n", "falcon", NULL },
    { "split  ?[^(\\s|[.,!?…。，、।۔،])]+\n", "bloom", NULL },
    { "split  ?[^(\\s|.,!?…。，、।۔،)]+\n", "bloom", NULL },
};

typedef struct steps {
    char text[4096];
    size_t len;
    bool odd; /* too long, or a step that is not known */
} steps;

static void add(steps *s, const char *word, text_view more)
{
    int n = snprintf(s->text + s->len, sizeof s->text - s->len, "%s%.*s\n", word, more.len > 3000 ? 3000 : (int)more.len,
                     more.data ? more.data : "");
    if (n < 0 || (size_t)n >= sizeof s->text - s->len) s->odd = true;
    else s->len += (size_t)n;
}

static void add_step(steps *s, const js *step)
{
    static const text_view none = { NULL, 0 };
    text_view type, pattern;
    bool flag = true;
    if (!js_text(js_get(step, "type"), &type)) s->odd = true;
    else if (js_text_is(type, "Split")) {
        if (js_text(js_get(js_get(step, "pattern"), "Regex"), &pattern)) add(s, "split ", pattern);
        else s->odd = true;
    } else if (js_text_is(type, "ByteLevel")) {
        js_bool(js_get(step, "use_regex"), &flag);
        if (flag) add(s, "gpt2", none);
    } else if (js_text_is(type, "Digits")) {
        flag = false;
        js_bool(js_get(step, "individual_digits"), &flag);
        add(s, flag ? "digits" : "digits together", none);
    } else if (js_text_is(type, "Punctuation")) add(s, "punctuation", none);
    else s->odd = true;
}

const char *hf_pre_name(const js *tokenizer)
{
    const js *pre = js_get(tokenizer, "pre_tokenizer"), *list = js_get(pre, "pretokenizers");
    steps s = { .len = 0 };
    bool whole = false;
    if (list)
        for (size_t i = 0; i < js_count(list); i++) add_step(&s, js_at(list, i));
    else add_step(&s, pre);
    js_bool(js_get(js_get(tokenizer, "model"), "ignore_merges"), &whole);
    for (size_t i = 0; !s.odd && i < sizeof known / sizeof *known; i++)
        if (strcmp(s.text, known[i].steps) == 0) return whole && known[i].ignoring ? known[i].ignoring : known[i].name;
    return NULL;
}
