/* quantize.c - quantizing a file while its allocations fail, one after the other: no crash, no leak, no file left behind. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "loam/debug.h"
#include "loam/quantize.h"

static char in[512], out[512];

static loam_status quantize(void *arg, loam_error *err)
{
    loam_quantize_params p = loam_quantize_defaults();
    p.type = arg;
    p.n_threads = 2;
    remove(out);
    loam_status status = loam_quantize_file(in, out, &p, NULL, err);
    bool there = access(out, F_OK) == 0;
    assert_int_equal(there, status == LOAM_OK);
    return status;
}

static void every_allocation(void **unused)
{
    (void)unused;
    loam_error err;
    static char type[] = "q8_0";
    if (loam_debug_make_model(in, "tiny", "f16", 1, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_true(fault_loop("quantize", quantize, type) > 5);
    remove(in);
    remove(out);
}

int main(void)
{
    fault_install();
    scratch_path(in, "in.gguf");
    scratch_path(out, "out.gguf");
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
