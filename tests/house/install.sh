#!/bin/sh
# Installs the build into a scratch folder and builds a program against it: CMake package and pkg-config, shared and static.
# Usage: install.sh BUILD_FOLDER CC
set -eu
build=$1 cc=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/loam-install-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
cmake --install "$build" --prefix "$prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }

mkdir "$scratch/app"
cat >"$scratch/app/main.c" <<'END'
#include <loam/status.h>
#include <stdio.h>
int main(void) { return puts(loam_version()) < 0; }
END
cat >"$scratch/app/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(app C)
find_package(loam REQUIRED)
foreach(kind shared static loam)
  add_executable(app_${kind} main.c)
  target_link_libraries(app_${kind} PRIVATE loam::${kind})
endforeach()
END
cmake -S "$scratch/app" -B "$scratch/app/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log"
cmake --build "$scratch/app/build" >>"$scratch/log" || { cat "$scratch/log"; exit 1; }
for kind in shared static loam; do "$scratch/app/build/app_$kind"; done

pc=$(find "$prefix" -name loam.pc)
export PKG_CONFIG_PATH="${pc%/loam.pc}"
lib=${pc%/pkgconfig/loam.pc}
# shellcheck disable=SC2046
"$cc" "$scratch/app/main.c" $(pkg-config --cflags --libs loam) -o "$scratch/pc_shared"
LD_LIBRARY_PATH=$lib "$scratch/pc_shared"
rm "$lib"/libloam.so*
# shellcheck disable=SC2046
"$cc" "$scratch/app/main.c" $(pkg-config --static --cflags --libs loam) -o "$scratch/pc_static"
"$scratch/pc_static"
if [ -e "$prefix/bin/loam" ]; then "$prefix/bin/loam" version; fi
echo "shared and static, by find_package and by pkg-config"
