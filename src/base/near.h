/* near.h - how far two words are apart, for "did you mean". */
#ifndef LOAM_BASE_NEAR_H
#define LOAM_BASE_NEAR_H

#include <stddef.h>

enum { NEAR_MOST = 62, NEAR_FAR = 99 };

/* Letters to insert, delete or replace (Levenshtein 1966). Words of more than NEAR_MOST letters are NEAR_FAR apart. */
static inline int near_distance(const char *a, size_t na, const char *b, size_t nb)
{
    int row[NEAR_MOST + 1];
    if (na > NEAR_MOST || nb > NEAR_MOST) return NEAR_FAR;
    for (size_t j = 0; j <= nb; j++) row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < step ? change : step;
        }
    }
    return row[nb];
}

#endif
