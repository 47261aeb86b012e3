/* dump.h - the memory as a stream of bytes and back.
 *
 * One sequence or all of them, page by page, so that what is decoded afterwards has the same bits. Little-endian:
 *
 *   u32 groups
 *   per group    u32 pages, u32 tables
 *     per table  u32 sequence, u32 n, n x u32 index into the pages below
 *     per page   u32 used, 64 x i32 positions (-1: empty), u64 twins
 *   per group, per layer of the group, per page: keys and values of the page, as they lie in memory
 *   where layers are recurrent:
 *     u32 cells, u32 tables; per table u32 sequence, u32 index into the cells (2^32 - 1: none); per cell i32 position
 *     per recurrent layer, per cell: its two rows of floats
 *
 * Reading is in two phases: everything is checked and room is found before anything changes. */
#ifndef LOAM_MEMORY_DUMP_H
#define LOAM_MEMORY_DUMP_H

#include "base/reader.h"
#include "memory/memory.h"

/* Receives the bytes in order; false stops. */
typedef bool (*dump_write_fn)(void *user, const void *data, size_t n);

/* seq -1: all sequences. LOAM_E_IO when write said so, LOAM_E_NOMEM. */
loam_status memory_dump(const memory *m, int seq, dump_write_fn write, void *user);

/* Replaces all sequences (seq -1), or sequence seq by the one in the stream, whatever its number there. On failure
 * nothing has changed: FORMAT (malformed, or of another geometry), FULL (no room), NOMEM. */
loam_status memory_undump(memory *m, int seq, reader *r, loam_error *err);

/* Hash of types, widths, groups of the layers: states fit only a memory of the same geometry. */
uint64_t memory_geometry(const memory *m);

#endif
