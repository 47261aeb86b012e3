/* model_impl.h - what the files of src/model share; nobody else includes it. */
#ifndef LOAM_MODEL_MODEL_IMPL_H
#define LOAM_MODEL_MODEL_IMPL_H

#include "file/gguf.h"
#include "model/arch.h"
#include "model/hparams.h"
#include "model/model.h"

/* One named tensor of the file with its companions, NULL where absent or without effect. */
typedef struct bound {
    const weight *w, *b; /* NAME.weight, NAME.bias */
    const weight *s;     /* NAME.scale of an expert matrix: one value an expert */
    float scale;         /* NAME.scale of any other matrix; 1 = none */
} bound;

typedef struct block_weights {
    bound t[T_COUNT];
    weight lerp[6];      /* RWKV: rows of time_mix_lerp_fused */
} block_weights;

typedef struct model_places model_places; /* place.c */

struct loam_model {
    model_places *places;    /* on several devices; else NULL */
    gguf_file *file;
    loam_tokenizer *tokenizer;
    arch_spec spec;          /* a copy: tests change traits of it (testing.h) */
    hparams hp;
    weight *weights;         /* one per tensor of the file, in file order */
    uint8_t *used;           /* [tensors] 1 where a rule asked for it */
    block_weights globals;   /* tensors outside the blocks */
    block_weights *blocks;   /* [n_layer]; of two stacks the decoder */
    block_weights *encoder;  /* [n_layer] where there are two stacks */
    float **owned;           /* [2 n_layer], the second half of the encoder: reciprocal activation scales or the relative bias
                                in floats, NULL where there are none */
    weight *owned_weights;   /* [2 n_layer] */
    char architecture[64], description[160];
    int32_t n_vocab;
    uint64_t n_params, bytes, fingerprint;
    bool vocab_only;
    struct wishes *wishes;   /* fresh.c: missing tensors are noted here in place of being refused; else NULL */
};

/* Spreads the bound weights over p->devices, if there are several. Errors: ARG (shares, overrides), NOMEM (names the device). */
loam_status model_place(loam_model *m, const loam_model_params *p, loam_error *err);
void model_unplace(loam_model *m);

/* Binds all tensors of m->file by the rules of m->spec; m->hp is read. */
loam_status model_bind(loam_model *m, loam_error *err);

/* Makes the tokenizer where the file has a vocabulary that text can be turned into; sets n_vocab for vocabulary-only files. */
loam_status model_attach_tokenizer(loam_model *m, loam_error *err);
void model_detach_tokenizer(loam_model *m);

#endif
