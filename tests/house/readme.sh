#!/bin/sh
# Compiles the C program of the README as it stands, without a warning, and runs it with the first model there is: one made
# on the spot by the command, so that nothing is needed from outside. Usage: readme.sh BUILD_FOLDER CC
set -eu
build=$1 cc=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/loam-readme-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
sed -n '/^```c$/,/^```$/{/^```/!p}' "$root/README.md" >"$scratch/hello.c"
grep -q 'int main' "$scratch/hello.c" || { echo "the README has no program"; exit 1; }
compile() {
    # shellcheck disable=SC2046
    "$cc" -std=c11 -Wall -Wextra -Werror -I"$root/include" "$scratch/$1.c" "$build/libloam.a" \
        $(pkg-config --libs libutf8proc libxxhash jansson) -pthread -lm -o "$scratch/$1"
}
compile hello
echo "the program compiles"

if "$scratch/hello" "$scratch/no-such-file" x 2>"$scratch/message"; then echo "a missing file is not noticed"; exit 1; fi
grep -q no-such-file "$scratch/message" || { echo "the message does not name the file:"; cat "$scratch/message"; exit 1; }

cat >"$scratch/make.c" <<'END'
#include <loam/debug.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    loam_error err;
    if (argc != 2 || loam_debug_make_model(argv[1], "tiny", "q8_0", 1, &err) != LOAM_OK) return puts(err.message), 1;
    return 0;
}
END
compile make
"$scratch/make" "$scratch/tiny.gguf"
"$scratch/hello" "$scratch/tiny.gguf" "Once upon a time" >"$scratch/text"
[ -s "$scratch/text" ] || { echo "the program wrote nothing"; exit 1; }
echo "the program runs: $(wc -c <"$scratch/text") bytes of text"
