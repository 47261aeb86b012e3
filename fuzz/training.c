/* training.c - any bytes as what training reads: a line of JSON lines, the description of a run, text to learn a vocabulary from.
 * The first byte says which. What is refused must come with a message. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/learn.h"
#include "train/data.h"
#include "train/job_config.h"

static void demand(bool ok)
{
    if (!ok) __builtin_trap();
}

static void read_line(const char *s, size_t n, bool chat)
{
    loam_error err = { 0 };
    data_segments parts;
    loam_status status = data_json_segments(s, n, chat, &parts, &err);
    if (status == LOAM_OK) {
        bool counts = false;
        for (size_t i = 0; i < parts.n; i++) counts = counts || parts.items[i].counts;
        demand(counts);
        data_segments_free(&parts);
    } else {
        demand(err.message[0] && err.code == status && parts.n == 0);
    }
}

static void read_description(const char *s, size_t n)
{
    loam_error err = { 0 };
    job_config c;
    if (job_config_read(&c, s, n, "description", &err) == LOAM_OK) {
        demand(c.n_train > 0 && (c.base || c.architecture) && c.rows > 0);
        job_config_free(&c);
    } else {
        demand(err.message[0]);
    }
}

/* Symbols put together again by the merges have the bytes that they say. */
static void learn(const char *s, size_t n)
{
    loam_error err = { 0 };
    bpe_learner *l;
    uint32_t n_symbols, n_merges;
    demand(learner_new(&l, "qwen2", &err) == LOAM_OK);
    demand(learner_add(l, s, n, &err) == LOAM_OK);
    demand(learner_learn(l, 256 + 64, 2, NULL, NULL, &err) == LOAM_OK);
    const text_view *symbols = learner_symbols(l, &n_symbols);
    const bpe_merge *merges = learner_merges(l, &n_merges);
    demand(n_symbols <= 256 + 64 && n_merges + 256 >= n_symbols);
    for (uint32_t i = 0; i < n_merges; i++) demand(merges[i].left < n_symbols && merges[i].right < n_symbols);
    for (uint32_t i = 0; i < n_symbols; i++) demand(symbols[i].len > 0);
    learner_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    const char *s = (const char *)data + 1;
    switch (data[0] % 4) {
    case 0: read_line(s, size - 1, false); break;
    case 1: read_line(s, size - 1, true); break;
    case 2: read_description(s, size - 1); break;
    case 3: learn(s, size - 1); break;
    }
    return 0;
}
