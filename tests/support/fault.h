/* fault.h - an allocator for tests: it counts the living blocks, checks the contract of the hook, and fails when told.
 *
 * Install it at the start of main, before anything of Loam allocates:
 *
 *     static loam_status open_and_close(void *arg, loam_error *err) { ... }     gives back all it took, also on failure
 *     ...
 *     long points = fault_loop("open", open_and_close, path);                   fails allocation 1, 2, 3, ... in turn
 */
#ifndef LOAM_TEST_FAULT_H
#define LOAM_TEST_FAULT_H

#include <stdbool.h>

#include "loam/status.h"

void fault_install(void);
long fault_live(void);    /* blocks that are alive: equal before and after, or something leaked */
long fault_bytes(void);   /* of the living blocks */
long fault_count(void);   /* allocations (growing ones too) since the last fault_arm */

/* From now on the nth allocation fails (1: the next one), with `sticky` every later one too; n 0: none fails. */
void fault_arm(long n, bool sticky);
bool fault_hit(void);     /* an allocation has failed since fault_arm */

/* Runs fn with the nth allocation failing, n = 1, 2, ... until a run meets no failure; once with only the nth failing,
 * once with all from the nth on. Fails the running cmocka test when a run leaks, when a run that met a failure gives
 * anything but LOAM_E_NOMEM with a message or LOAM_OK (the failure was harmless), or when the last run does not succeed.
 * Returns the number of points reached, and prints it with `what`. */
typedef loam_status (*fault_fn)(void *arg, loam_error *err);
long fault_loop(const char *what, fault_fn fn, void *arg);

#endif
