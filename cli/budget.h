/* budget.h - `loam quantize --budget`: the plan of types, its table and its plot. */
#ifndef LOAM_CLI_BUDGET_H
#define LOAM_CLI_BUDGET_H

#include "loam/budget.h"
#include "util.h"

/* Plans for the file words[0] as --budget, -f and the like say, prints the trade-off, writes --plot. An exit code; *out is NULL
 * on failure. im may be NULL. */
int budget_from_options(loam_budget **out, const options *o, const loam_imatrix *im);

#endif
