/* vocabulary.c - see vocabulary.h. */
#include "vocabulary.h"

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"

void vocabulary_file(const char *path, const char *text, int32_t n_vocab, bool chat)
{
    static const char *const special[] = { "<|im_start|>", "<|im_end|>" };
    loam_error err;
    loam_vocab_builder *b;
    loam_vocab_params p = loam_vocab_defaults();
    p.n_vocab = n_vocab;
    p.special = special;
    p.n_special = chat ? 2 : 0;
    assert_int_equal(loam_vocab_builder_create(&b, &p, &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_add(b, text, strlen(text), &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_write(b, path, NULL, &err), LOAM_OK);
    loam_vocab_builder_free(b);
}

loam_model *vocabulary_open(const char *text, int32_t n_vocab, bool chat)
{
    char path[512];
    loam_error err;
    loam_model *m;
    loam_model_params p = loam_model_defaults();
    p.vocab_only = true;
    p.use_mmap = false;
    scratch_path(path, "vocabulary.gguf");
    vocabulary_file(path, text, n_vocab, chat);
    assert_int_equal(loam_model_open(&m, path, &p, &err), LOAM_OK);
    unlink(path);
    return m;
}
