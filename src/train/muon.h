/* muon.h - the Muon step for matrices (Jordan et al. 2024): momentum, made orthogonal by Newton and Schulz, as the update. */
#ifndef LOAM_TRAIN_MUON_H
#define LOAM_TRAIN_MUON_H

#include "train/trainer.h"

typedef struct muon_space {
    float *x, *gram, *square;   /* the matrix, and two of the smaller extent squared */
    uint8_t *scratch;           /* of all threads */
} muon_space;

loam_status muon_prepare(const loam_trainer *t, muon_space *s, loam_error *err);
/* All matrices, one after the other, each by all threads. */
loam_status muon_step(loam_trainer *t, muon_space *s, float g_scale, double rate);
void muon_release(muon_space *s);

#endif
