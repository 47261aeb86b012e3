/* session.c - see session.h. */
#include "session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --devices and what says how the model is spread over them. */
static int read_devices(session *s, const options *o, loam_model_params *p, float shares[16])
{
    loam_error err;
    if (opt_given(o, OPT_DEVICES)) {
        if (loam_devices_open(&s->devices, opt_text(o, OPT_DEVICES), &err) != LOAM_OK) return say_error(o, &err);
        p->devices = s->devices;
    }
    if (opt_given(o, OPT_N_GPU_LAYERS)) p->n_gpu_layers = (int32_t)opt_int(o, OPT_N_GPU_LAYERS);
    const char *mode = opt_text(o, OPT_SPLIT_MODE), *at = opt_text(o, OPT_TENSOR_SPLIT);
    if (mode && strcasecmp(mode, "row") == 0) p->split_mode = LOAM_SPLIT_ROW;
    for (int n = 0; at && *at; n++) {
        char *end;
        double x = strtod(at, &end);
        if (end == at || (*end && *end != ',') || n == 16) return say_usage(o, "--tensor-split: '%s' is no list of numbers", opt_text(o, OPT_TENSOR_SPLIT));
        shares[n] = (float)x;
        at = *end ? end + 1 : end;
        p->tensor_split = shares;
    }
    s->overrides = calloc((size_t)o->n_list + 1, sizeof *s->overrides);
    for (int i = 0; s->overrides && i < o->n_list; i++)
        if (o->list_of[i] == OPT_OVERRIDE_TENSOR) s->overrides[p->n_overrides++] = o->list[i];
    p->overrides = s->overrides;
    return EXIT_DONE;
}

int session_open(session *s, const options *o, bool vocab_only)
{
    memset(s, 0, sizeof *s);
    show_log(o);
    if (!opt_given(o, OPT_MODEL) && o->command != CMD_RUN && o->command != CMD_BENCH) return say_usage(o, "-m FILE is missing");
    char *path = model_path(o);
    if (!path) return EXIT_FAILED;
    loam_model_params p = loam_model_defaults();
    p.use_mmap = !opt_given(o, OPT_NO_MMAP);
    p.use_mlock = opt_given(o, OPT_MLOCK);
    p.check_tensors = opt_given(o, OPT_CHECK_TENSORS);
    p.vocab_only = vocab_only;
    float shares[16] = { 0 };
    loam_error err;
    int code = read_devices(s, o, &p, shares);
    if (code != EXIT_DONE) {
        free(path);
        return code;
    }
    uint64_t start = now_ns();
    loam_status status = loam_model_open(&s->model, path, &p, &err);
    free(path);
    if (status != LOAM_OK) return say_error(o, &err);
    s->load_ns = now_ns() - start;
    s->tokenizer = loam_model_tokenizer(s->model);
    s->n_vocab = loam_model_n_vocab(s->model);
    return EXIT_DONE;
}

static int32_t rope_scaling(const options *o)
{
    const char *name = opt_text(o, OPT_ROPE_SCALING);
    if (!name) return LOAM_ROPE_MODEL;
    return strcasecmp(name, "none") == 0 ? LOAM_ROPE_NONE : strcasecmp(name, "linear") == 0 ? LOAM_ROPE_LINEAR : LOAM_ROPE_YARN;
}

static int32_t cache_rotation(const options *o)
{
    const char *name = opt_text(o, OPT_CACHE_ROTATION);
    if (!name || strcasecmp(name, "auto") == 0) return LOAM_ROTATION_AUTO;
    return strcasecmp(name, "on") == 0 ? LOAM_ROTATION_ON : LOAM_ROTATION_OFF;
}

/* The cache is kept as exact as the weights are. */
static loam_type cache_type(const session *s, const options *o, option_id id)
{
    if (opt_type(o, id) >= 0) return (loam_type)opt_type(o, id);
    return loam_model_bytes(s->model) == 4 * loam_model_n_params(s->model) ? LOAM_F32 : LOAM_F16;
}

loam_context_params session_params(const session *s, const options *o)
{
    loam_context_params p = loam_context_defaults();
    bool debug = o->command == CMD_EVAL || o->command == CMD_SCRIPT || o->command == CMD_TRACE;
    p.n_batch = (uint32_t)opt_int(o, OPT_BATCH);
    p.n_ubatch = (uint32_t)opt_int(o, OPT_UBATCH);
    if (opt_given(o, OPT_THREADS)) p.n_threads = (int32_t)opt_int(o, OPT_THREADS);
    if (opt_given(o, OPT_THREADS_BATCH)) p.n_threads_batch = (int32_t)opt_int(o, OPT_THREADS_BATCH);
    p.type_k = cache_type(s, o, debug ? OPT_DEBUG_TYPE_K : OPT_TYPE_K);
    p.type_v = cache_type(s, o, debug ? OPT_DEBUG_TYPE_V : OPT_TYPE_V);
    p.cache_rotation = cache_rotation(o);
    p.rope_scaling = rope_scaling(o);
    if (opt_given(o, OPT_ROPE_FREQ_BASE)) p.rope_freq_base = (float)opt_num(o, OPT_ROPE_FREQ_BASE);
    if (opt_given(o, OPT_ROPE_FREQ_SCALE)) p.rope_freq_scale = (float)opt_num(o, OPT_ROPE_FREQ_SCALE);
    if (opt_given(o, OPT_YARN_ORIG_CTX)) p.yarn_orig_ctx = (uint32_t)opt_int(o, OPT_YARN_ORIG_CTX);
    p.abort = interrupted_abort;
    return p;
}

int session_context(session *s, const options *o, const loam_context_params *p)
{
    loam_error err;
    uint64_t start = now_ns();
    if (loam_context_new(&s->ctx, s->model, p, &err) != LOAM_OK) return say_error(o, &err);
    int code = session_adapters(s, o);
    s->load_ns += now_ns() - start;
    return code;
}

int session_need_tokenizer(const session *s, const options *o)
{
    if (s->tokenizer) return EXIT_DONE;
    return say_failed(o, "the model has no vocabulary that text can be turned into");
}

void session_close(session *s)
{
    loam_context_free(s->ctx);
    session_drop_adapters(s);
    loam_model_free(s->model);
    loam_devices_free(s->devices);
    free(s->overrides);
    memset(s, 0, sizeof *s);
}

int session_encode(const session *s, const options *o, const buffer *text, unsigned flags, loam_token **ids, size_t *n)
{
    loam_error err;
    if (loam_tokenizer_encode_all(s->tokenizer, text->data, text->len, flags, ids, n, &err) != LOAM_OK) return say_error(o, &err);
    return EXIT_DONE;
}

int session_feed(session *s, const int32_t *ids, size_t n, loam_error *err)
{
    size_t most = loam_context_n_batch(s->ctx);
    for (size_t at = 0; at < n; at += most) {
        loam_batch batch = { .n_tokens = (int32_t)(n - at < most ? n - at : most), .token = ids + at };
        int code = loam_decode(s->ctx, &batch, err);
        if (code) return code;
    }
    return 0;
}

int session_prompt(session *s, const int32_t *ids, size_t n, loam_error *err)
{
    int32_t start = loam_model_decoder_start(s->model);
    if (start < 0) return session_feed(s, ids, n, err);
    loam_batch batch = { .n_tokens = (int32_t)n, .token = ids };
    int code = loam_encode(s->ctx, &batch, err);
    return code ? code : session_feed(s, &start, 1, err);
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number)
{
    if (interrupts++) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

void catch_interrupt(void)
{
    struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupted(void) { return interrupts != 0; }

bool interrupted_abort(void *user)
{
    (void)user;
    return interrupted();
}
