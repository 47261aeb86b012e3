/* splitters.tab.h - the matchers of each splitter, in the order in which they are tried (splitters.c has them). */
#define LIST(name, ...) static const matcher name[] = { __VA_ARGS__, { 0 } }

LIST(n1, { numbers, 0, 1, false });
LIST(n13, { numbers, 0, 3, false });
LIST(nrun, { numbers, 0, NO_LIMIT, false });
LIST(d3, { digits3, 0, 0, false });
LIST(crlf, { one_line_end, 0, 0, false });
LIST(nonws, { no_space, 0, 0, false });
LIST(wsend, { final_space, 0, 0, false });
LIST(lword, { class_run, G_L, 0, false });
LIST(pword, { class_run, G_P, 0, false });
LIST(dspunct, { set_run, G_WS, DSPUNCT, false });
LIST(dscased, { set_run, G_WS, DSCASED, false });
LIST(defpunct, { set_run, 0, DEFPUNCT, false });
LIST(falpunct, { set_run, 0, FALPUNCT, false });
LIST(cjkkana, { set_run, 0, CJKKANA, false });
LIST(cjkhangul, { set_run, 0, CJKHANGUL, false });
LIST(seasia, { set_run, 0, SEASIA, false });
LIST(champunct, { one_mark, 0, 0, false });
LIST(chamsent, { sentinel, 0, 0, false });
LIST(chamimg, { image, 0, 0, false });
LIST(chamws, { chameleon_space, 0, 0, false });
LIST(youtucjk, { youtu_cjk, 0, 0, false });
LIST(bloom_words, { bloom, 0, 0, false });
LIST(gpt2, { contraction, 0, 0, false }, { gpt2_run, 0, 0, false }, { spaces, 0, 0, false });
LIST(llama3, { contraction, 0, 0, true }, { word, G_L, 0, false }, { numbers, 0, 3, false }, { others, 0, NO_LIMIT, false },
     { spaces, 0, 0, true });
LIST(qwen2, { contraction, 0, 0, true }, { word, G_L, 0, false }, { numbers, 0, 1, false }, { others, 0, NO_LIMIT, false },
     { spaces, 0, 0, true });
LIST(qwen35, { contraction, 0, 0, true }, { word, LM, 0, false }, { numbers, 0, 1, false }, { others, G_M, NO_LIMIT, false },
     { spaces, 0, 0, true });
LIST(kimi, { han, 0, 0, false }, { kimi_word, 0, 0, false }, { numbers, 0, 3, false }, { others, 0, NO_LIMIT, false },
     { spaces, 0, 0, true });
LIST(ds3, { marked_word, 0, 0, false }, { deepseek_word, 0, 0, false }, { punctuation, 0, 0, true }, { spaces, 0, 0, true });
LIST(spark, { marked_word, 0, 0, false }, { deepseek_word, 0, 0, false }, { punctuation, 0, 0, false },
     { one_line_end, 0, 0, false }, { spaces, 0, 0, false });
LIST(youtu, { word, LM, 0, true }, { numbers, 0, 1, false }, { others, 0, NO_LIMIT, true }, { spaces, 0, 0, true });
LIST(aya, { word, LM, 0, true }, { numbers, 0, 3, false }, { others, 0, NO_LIMIT, true }, { spaces, 0, 0, true });
LIST(tekken, { cased, G_L, 0, false }, { numbers, 0, 1, false }, { others, 0, NO_LIMIT, true }, { spaces, 0, 0, true });
LIST(gpt4o, { cased, G_L, 0, true }, { numbers, 0, 3, false }, { others, 0, NO_LIMIT, true }, { spaces, 0, 0, true });
LIST(granite97, { cased, LM, 0, true }, { numbers, 0, 3, false }, { others, 0, NO_LIMIT, true }, { spaces, 0, 0, true });
LIST(jais2, { contraction, 0, 0, true }, { word, G_L, 0, false }, { numbers, 0, 3, false }, { others, 0, NO_LIMIT, false },
     { space_blocks, 0, 0, false });
LIST(minicpm5, { contraction, 0, 0, true }, { word, G_L, 0, false }, { numbers, 0, NO_LIMIT, false },
     { others, 0, NO_LIMIT, false }, { spaces, 0, 0, true });
LIST(seed, { contraction, 0, 0, true }, { word, G_L, 0, false }, { numbers, 0, 1, false }, { others, 0, 0, false },
     { spaces, 0, 0, true });
LIST(ufak, { word, G_L, 0, false }, { numbers, 0, 1, false }, { others, 0, NO_LIMIT, false }, { spaces, 0, 0, true });
LIST(examoe, { contraction, 0, 0, true }, { phrase, 0, 0, false }, { numbers, 0, 1, false }, { others, 0, 1, true },
     { spaces, 0, 0, true });

static const matcher *const lists[] = {
    [SPLIT_N1] = n1,
    [SPLIT_N13] = n13,
    [SPLIT_NRUN] = nrun,
    [SPLIT_D3] = d3,
    [SPLIT_CRLF] = crlf,
    [SPLIT_NONWS] = nonws,
    [SPLIT_WSEND] = wsend,
    [SPLIT_LWORD] = lword,
    [SPLIT_PWORD] = pword,
    [SPLIT_DSPUNCT] = dspunct,
    [SPLIT_DSCASED] = dscased,
    [SPLIT_DEFPUNCT] = defpunct,
    [SPLIT_FALPUNCT] = falpunct,
    [SPLIT_CJKKANA] = cjkkana,
    [SPLIT_CJKHANGUL] = cjkhangul,
    [SPLIT_SEASIA] = seasia,
    [SPLIT_CHAMPUNCT] = champunct,
    [SPLIT_CHAMSENT] = chamsent,
    [SPLIT_CHAMIMG] = chamimg,
    [SPLIT_CHAMWS] = chamws,
    [SPLIT_YOUTUCJK] = youtucjk,
    [SPLIT_BLOOM] = bloom_words,
    [SPLIT_GPT2] = gpt2,
    [SPLIT_LLAMA3] = llama3,
    [SPLIT_QWEN2] = qwen2,
    [SPLIT_QWEN35] = qwen35,
    [SPLIT_KIMI] = kimi,
    [SPLIT_DS3] = ds3,
    [SPLIT_SPARK] = spark,
    [SPLIT_YOUTU] = youtu,
    [SPLIT_AYA] = aya,
    [SPLIT_TEKKEN] = tekken,
    [SPLIT_GPT4O] = gpt4o,
    [SPLIT_GRANITE97] = granite97,
    [SPLIT_JAIS2] = jais2,
    [SPLIT_MINICPM5] = minicpm5,
    [SPLIT_SEED] = seed,
    [SPLIT_UFAK] = ufak,
    [SPLIT_EXAMOE] = examoe,
};
