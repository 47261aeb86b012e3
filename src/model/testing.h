/* testing.h - for tests alone: switches one trait of an opened model's recipe off or to another form, to show that the
 * expected logits depend on it. A model is immutable otherwise: mutate it before any context sees it. */
#ifndef LOAM_MODEL_TESTING_H
#define LOAM_MODEL_TESTING_H

#include "model/model.h"

typedef enum trait {
#define TRAIT(NAME, what) TRAIT_##NAME,
#include "model/traits.def"
#undef TRAIT
    TRAIT_COUNT
} trait;

/* "rotary off" */
const char *trait_name(trait t);

/* False when the model does not have the trait, or has it in a form that changes nothing (a factor of 1). */
bool model_mutate(loam_model *m, trait t);

#endif
