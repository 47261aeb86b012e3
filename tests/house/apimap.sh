#!/bin/sh
# The pages that map other interfaces to Loam's are true, and tools/apimap can find what is not. Usage: apimap.sh SOURCE
set -eu
cd "$1"
tools/apimap
page=docs/.apimap-test-$$.md
trap 'rm -f "$page"' EXIT
must_fail() { # a row, what the message says
    printf '| Name | Loam | Test | Note |\n|---|---|---|---|\n%s\n' "$1" > "$page"
    if tools/apimap "$page" 2> "$page.err"; then echo "not found: $1"; rm -f "$page.err"; exit 1; fi
    if ! grep -q "$2" "$page.err"; then cat "$page.err"; rm -f "$page.err"; exit 1; fi
    rm -f "$page.err"
}
must_fail '| a | `loam_no_such_name` | `tests/unit/context_api.c` | |' 'has no loam_no_such_name'
must_fail '| a | `loam_context_params.no_field` | `tests/unit/context_api.c` | |' 'has no loam_context_params.no_field'
must_fail '| a | `loam_context_new` | - | |' 'no test'
must_fail '| a | `loam_context_new` | `tests/unit/none.c` | |' 'there is no'
must_fail '| a | `loam_quantize_file` | `tests/unit/context_api.c` | |' 'mentions none'
must_fail '| a | | - | |' 'nor a reason'
must_fail '| a | | - |' 'cells under'
must_fail 'text' 'no table'
