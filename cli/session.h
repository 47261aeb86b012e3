/* session.h - a model and a context as the options want them; token batches; stopping by Ctrl-C. */
#ifndef LOAM_CLI_SESSION_H
#define LOAM_CLI_SESSION_H

#include "loam/adapter.h"
#include "loam/context.h"
#include "loam/device.h"
#include "loam/model.h"
#include "loam/sampler.h"
#include "loam/tokenizer.h"
#include "util.h"

typedef struct session {
    loam_devices *devices; /* NULL: --devices was not given */
    const char **overrides;
    loam_model *model;
    const loam_tokenizer *tokenizer; /* NULL where the file has none */
    loam_context *ctx;
    loam_adapter *adapters[LOAM_MAX_ADAPTERS];
    int n_adapters;
    int32_t n_vocab;
    uint64_t load_ns; /* opening the model and building the context */
} session;

/* These return an exit code; everything but EXIT_DONE comes after a message. */
int session_open(session *s, const options *o, bool vocab_only);
loam_context_params session_params(const session *s, const options *o); /* of an opened session */
int session_context(session *s, const options *o, const loam_context_params *p);
int session_need_tokenizer(const session *s, const options *o);
void session_close(session *s);

/* Encodes text; *ids is for loam_tokens_free. */
int session_encode(const session *s, const options *o, const buffer *text, unsigned flags, loam_token **ids, size_t *n);
/* Continues sequence 0 by ids, in batches of at most n_batch; outputs of the last one. 0, or loam_decode's code with err
 * filled. */
int session_feed(session *s, const int32_t *ids, size_t n, loam_error *err);
/* The same for a prompt: encoder-decoder models encode it, and the text begins with their start token. */
int session_prompt(session *s, const int32_t *ids, size_t n, loam_error *err);

void catch_interrupt(void); /* from now on Ctrl-C sets a flag; a second one ends the process */
bool interrupted(void);
bool interrupted_abort(void *user); /* the same as a loam_abort_fn */

/* adapters.c: what --lora and --control-vector add to the context; an exit code. session_close drops it. */
int session_adapters(session *s, const options *o);
void session_drop_adapters(session *s);

/* default_model.c: the file of -m, or what stands in for it. NULL after a message. For free(). */
char *model_path(const options *o);
/* fetch.c: fetches the default model into folder as `name`. False after a message. */
bool fetch_model(const options *o, const char *folder, const char *path);

/* sampling.c: an exit code */
int sampler_from_options(loam_sampler **out, const options *o, const session *s);

#endif
