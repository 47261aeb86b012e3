/* row.h - the part of kernels_ref_row that fills the decoders and encoders of rows. */
#ifndef LOAM_KERNELS_REF_ROW_H
#define LOAM_KERNELS_REF_ROW_H

#include "kernels/kernels.h"

void kernels_ref_codec(kernels *k);

#endif
