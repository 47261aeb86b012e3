/* train_tokenizer.c - `loam tokenizer train`: a byte-level BPE vocabulary from a text file. */
#include <stdlib.h>
#include <string.h>

#include "loam/tokenizer.h"
#include "session.h"

typedef struct watcher {
    progress bar;
} watcher;

static bool watch(void *user, uint64_t done, uint64_t total)
{
    watcher *w = user;
    w->bar.total = total;
    progress_at(&w->bar, done);
    return !interrupted();
}

/* The text of a file of JSON lines is what is in "text"; of any other file, all of it. */
static int add_text(const options *o, loam_vocab_builder *b, const char *path, const buffer *all)
{
    loam_error err;
    size_t n = strlen(path);
    const char *why = NULL;
    if (n < 6 || strcmp(path + n - 6, ".jsonl") != 0)
        return loam_vocab_builder_add(b, all->data, all->len, &err) == LOAM_OK ? EXIT_DONE : say_error(o, &err);
    int code = EXIT_DONE;
    for (size_t at = 0, line = 1; at < all->len && code == EXIT_DONE; line++) {
        const char *end = memchr(all->data + at, '\n', all->len - at);
        size_t len = end ? (size_t)(end - all->data) - at : all->len - at;
        buffer text = { 0 };
        if (strspn(all->data + at, " \t\r") < len) {
            if (!json_find_text(all->data + at, len, "text", &text, &why))
                code = say_failed(o, "%s: line %zu: needs an object with a string \"text\": %s", path, line, why);
            else if (loam_vocab_builder_add(b, text.data, text.len, &err) != LOAM_OK) code = say_error(o, &err);
        }
        buffer_free(&text);
        at += len + 1;
    }
    return code;
}

int cmd_tokenizer_train(const options *o)
{
    if (!opt_given(o, OPT_TRAIN_TEXT)) return say_usage(o, "-f FILE is missing: the text to learn from");
    if (!opt_given(o, OPT_VOCAB_OUT)) return say_usage(o, "-o FILE is missing: where the vocabulary goes (.gguf or .json)");
    watcher w = { 0 };
    loam_error err;
    loam_vocab_builder *b = NULL;
    const char *special[256];
    loam_vocab_params p = loam_vocab_defaults();
    show_log(o);
    p.n_vocab = (int32_t)opt_int(o, OPT_VOCAB);
    p.min_count = opt_int(o, OPT_MIN_COUNT);
    if (opt_given(o, OPT_PRE)) p.pre = opt_text(o, OPT_PRE);
    for (int i = 0; i < o->n_list && p.n_special < 256; i++)
        if (o->list_of[i] == OPT_SPECIAL_TOKEN) special[p.n_special++] = o->list[i];
    p.special = special;
    p.progress = watch;
    p.progress_user = &w;
    catch_interrupt();
    if (loam_vocab_builder_create(&b, &p, &err) != LOAM_OK) return say_error(o, &err);
    int code = EXIT_DONE;
    size_t bytes = 0;
    for (int i = 0; i < o->n_list && code == EXIT_DONE; i++) {
        if (o->list_of[i] != OPT_TRAIN_TEXT) continue;
        buffer text = { 0 };
        code = read_file(o, o->list[i], &text) ? add_text(o, b, o->list[i], &text) : EXIT_FAILED;
        bytes += text.len;
        buffer_free(&text);
    }
    int32_t n = 0;
    progress_begin(&w.bar, "learning", 1);
    if (code == EXIT_DONE && loam_vocab_builder_write(b, opt_text(o, OPT_VOCAB_OUT), &n, &err) != LOAM_OK) code = say_error(o, &err);
    progress_end(&w.bar);
    loam_vocab_builder_free(b);
    if (code != EXIT_DONE) return code;
    printf("%d tokens from %.1f MB of text", n, (double)bytes / 1e6);
    if (n < p.n_vocab) printf(" (no pair occurred %lld times any more)", (long long)p.min_count);
    putchar('\n');
    return flush_output(o, stdout, "standard output");
}
