#!/bin/sh
# Compiles the program of docs/tutorial.md as it stands, without a warning, and runs it: it ends with 0 when its network fits.
# Usage: tutorial.sh BUILD_FOLDER CC
set -eu
build=$1 cc=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/loam-tutorial-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
sed -n '/^```c$/,/^```$/{/^```/!p}' "$root/docs/tutorial.md" >"$scratch/fit.c"
# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Wextra -Werror -I"$root/include" "$scratch/fit.c" "$build/libloam.a" \
    $(pkg-config --libs libutf8proc libxxhash jansson) -pthread -lm -o "$scratch/fit"
"$scratch/fit"
