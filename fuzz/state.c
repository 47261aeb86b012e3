/* state.c - fuzz target: bytes as what a saved state holds behind its head and checksum. Whatever they are, loading is refused or done; a refused state leaves every
 * sequence as it was, and what is loaded can be looked at, continued and saved again.
 *
 *     byte 0: bit 0 attention, or attention and states with past ones; bit 1 one sequence, or all
 *     then the sequences, as memory/dump.h has them */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "memory/dump.h"
#include "memory/memory.h"

#define N_SEQ 4

static void require(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static memory *fresh(bool hybrid)
{
    loam_error err;
    memory *m;
    static memory_layer layers[3] = { { true, 2, 8, 8, 0 }, { true, 2, 8, 8, 64 }, { 0 } };
    layers[2] = hybrid ? (memory_layer){ .r_row = 3, .s_row = 5 } : (memory_layer){ true, 1, 8, 8, 0 };
    memory_params p = { .layers = layers, .n_layer = 3, .n_ctx = 512, .n_ctx_seq = 512, .n_seq_max = N_SEQ, .n_batch = 64,
                        .k_type = LOAM_F32, .v_type = LOAM_F16, .n_rs_seq = hybrid ? 2 : 0 };
    require(memory_new(&m, &p, &err) == LOAM_OK, "no memory");
    return m;
}

/* n tokens behind sequence q; false where there is no room. */
static bool add(memory *m, int32_t q, int n)
{
    int32_t pos[64], last = memory_pos_max(m, q);
    const kv_view *view;
    bool fits = memory_begin(m) == LOAM_OK && last < INT32_MAX - 64;
    for (int i = 0; i < n && fits; i++) {
        pos[i] = last + 1 + i;
        fits = memory_add(m, &(memory_token){ pos[i], &q, 1 }) == LOAM_OK;
    }
    if (fits) fits = memory_view(m, 0, n, pos, &view) == LOAM_OK;
    if (fits) memory_commit(m);
    else memory_rollback(m);
    return fits;
}

static bool nothing(void *user, const void *data, size_t n)
{
    (void)data;
    *(size_t *)user += n;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    int how = data[0], seq = how & 2 ? 1 : -1;
    memory *m = fresh(how & 1);
    loam_error err = { .code = LOAM_OK };
    int32_t before[N_SEQ];
    size_t bytes = 0;
    for (int q = 0; q < N_SEQ - 1; q++) require(add(m, q, 20 + 10 * q), "no room at the start");
    require(memory_seq_cp(m, 0, 3, 0, INT32_MAX) == LOAM_OK, "no copy");
    for (int q = 0; q < N_SEQ; q++) before[q] = memory_pos_max(m, q);
    reader r = { .data = data + 1, .end = size - 1 };
    loam_status status = memory_undump(m, seq, &r, &err);
    require((status == LOAM_OK) == (err.message[0] == 0), "a status without its message");
    for (int q = 0; q < N_SEQ; q++) {
        bool kept = status != LOAM_OK || (seq >= 0 && q != seq);
        require(!kept || memory_pos_max(m, q) == before[q], "another sequence has changed");
        require(memory_has_states(m) || memory_pos_min(m, q) <= memory_pos_max(m, q), "positions are the wrong way round");
    }
    require(memory_dump(m, -1, nothing, &bytes) == LOAM_OK && bytes > 0, "it cannot be saved again");
    for (int q = 0; q < N_SEQ; q++) {
        add(m, q, 7);
        memory_seq_rm(m, q, memory_pos_max(m, q), INT32_MAX);
        memory_seq_cp(m, q, (q + 1) % N_SEQ, 0, INT32_MAX);
    }
    memory_clear(m);
    for (int q = 0; q < N_SEQ; q++) require(memory_pos_max(m, q) == -1 && add(m, q, 60), "a cleared memory is not empty");
    memory_free(m);
    return 0;
}
