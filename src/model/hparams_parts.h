/* hparams_parts.h - what the hparams_*.c files share; nobody else includes it. The reader `k` keeps the first failure. */
#ifndef LOAM_MODEL_HPARAMS_PARTS_H
#define LOAM_MODEL_HPARAMS_PARTS_H

#include "model/hparams.h"
#include "model/keys.h"

#define S(letter) SYM(h->sym, letter)

/* Writers store keys that do not apply as 0. */
static inline int64_t or_else(int64_t v, int64_t otherwise) { return v ? v : otherwise; }

void hparams_rope(hparams *h, keys *k);
void hparams_windows(hparams *h, keys *k);      /* which blocks have a window, and its size */
void hparams_experts(hparams *h, keys *k);
void hparams_place_experts(hparams *h, keys *k); /* which blocks have experts */
void hparams_encoder(hparams *h, keys *k);      /* after the attention */
void hparams_recurrent_widths(hparams *h, keys *k);  /* of recurrent mixers; heads are known */
void hparams_recurrent_blocks(hparams *h, keys *k);  /* which blocks have them; feed-forwards are placed */
void hparams_place_rotary(hparams *h, keys *k);  /* which blocks turn; after the windows */

#endif
