/* rows.h - walking a row of floats in vectors of 16 lanes, the rest included. Included after a vec_*.h. */
/* Runs the statements for every full vector and once for the rest. Inside, i is the first element, and LOAD and STORE
 * take `rest` lanes (a constant 16 in the loop); lanes beyond load as 0. */
#define FOR_ROW(n, ...) \
    do { \
        int64_t i = 0; \
        for (; i + 16 <= (n); i += 16) { \
            enum { rest = 16 }; \
            __VA_ARGS__; \
        } \
        if (i < (n)) { \
            const int rest = (int)((n)-i); \
            __VA_ARGS__; \
        } \
    } while (0)
#define LOAD(p) (rest == 16 ? v_load((p) + i) : v_load_first((p) + i, rest))
#define STORE(p, v) (rest == 16 ? v_store((p) + i, v) : v_store_first((p) + i, v, rest))
