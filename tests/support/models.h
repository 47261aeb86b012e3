/* models.h - small models that tests make for themselves. */
#ifndef LOAM_TEST_MODELS_H
#define LOAM_TEST_MODELS_H

#include <stdint.h>

#include "loam/model.h"

/* The tiny shape of loam_debug_make_model with these weights, opened; its file is gone already. NULL where that failed. */
loam_model *tiny_model(const char *type, uint64_t seed);

#endif
