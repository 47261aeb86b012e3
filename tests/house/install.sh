#!/bin/sh
# Installs the build into a scratch folder and builds a C and a C++ program against it: CMake package and pkg-config, shared and
# static. Both programs write a file, read it back and convert numbers; the C++ one through the owners of loam.hpp.
# Usage: install.sh BUILD_FOLDER CC
set -eu
build=$1 cc=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/loam-install-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
cmake --install "$build" --prefix "$prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }

mkdir "$scratch/app"
cat >"$scratch/app/main.c" <<'END'
#include <loam/convert.h>
#include <loam/loam.h>
#include <stdio.h>
int main(void)
{
    float x = 0.1f, y;
    uint16_t h;
    loam_model *model;
    loam_error err;
    loam_f32_to_f16(&x, &h, 1);
    loam_f16_to_f32(&h, &y, 1);
    if (h != 0x2E66 || y != 0x1.998p-4f) return 1;
    if (loam_model_open(&model, "no-such-file", NULL, &err) == LOAM_OK || model) return 1;
    return puts(loam_version()) < 0;
}
END
cat >"$scratch/app/main.cpp" <<'END'
#include <loam/convert.h>
#include <loam/loam.hpp>
#include <cstdio>
#include <cstring>
int main(int argc, char **argv)
{
    loam_error err;
    loam_gguf_builder *raw = nullptr;
    if (argc < 2 || loam_gguf_builder_create(&raw, nullptr, false, &err) != LOAM_OK) return 1;
    loam::gguf_builder builder(raw);
    loam_gguf_set_text(builder.get(), "general.name", "app", 3);
    if (loam_gguf_write(builder.get(), argv[1], nullptr, &err) != LOAM_OK) return std::puts(err.message), 1;
    loam_gguf *opened = nullptr;
    if (loam_gguf_open(&opened, argv[1], nullptr, &err) != LOAM_OK) return std::puts(err.message), 1;
    loam::gguf file(opened);
    loam_gguf_value value;
    if (!loam_gguf_key_find(file.get(), "general.name", &value) || value.bytes != 3) return 1;
    loam::model none;
    return none || std::printf("%s, C++\n", loam_version()) < 0;
}
END
cat >"$scratch/app/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(app C CXX)
set(CMAKE_CXX_STANDARD 11)
find_package(loam REQUIRED)
foreach(kind shared static loam)
  add_executable(app_${kind} main.c)
  target_link_libraries(app_${kind} PRIVATE loam::${kind})
  add_executable(cpp_${kind} main.cpp)
  target_link_libraries(cpp_${kind} PRIVATE loam::${kind})
endforeach()
END
cmake -S "$scratch/app" -B "$scratch/app/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log"
cmake --build "$scratch/app/build" >>"$scratch/log" || { cat "$scratch/log"; exit 1; }
for kind in shared static loam; do
    "$scratch/app/build/app_$kind"
    "$scratch/app/build/cpp_$kind" "$scratch/app.gguf"
done

pc=$(find "$prefix" -name loam.pc)
export PKG_CONFIG_PATH="${pc%/loam.pc}"
lib=${pc%/pkgconfig/loam.pc}
# shellcheck disable=SC2046
"$cc" "$scratch/app/main.c" $(pkg-config --cflags --libs loam) -o "$scratch/pc_shared"
LD_LIBRARY_PATH=$lib "$scratch/pc_shared"
# shellcheck disable=SC2046
c++ -std=c++11 -Wall -Wextra -Werror "$scratch/app/main.cpp" $(pkg-config --cflags --libs loam) -o "$scratch/pp_shared"
LD_LIBRARY_PATH=$lib "$scratch/pp_shared" "$scratch/app.gguf"
rm "$lib"/libloam.so*
# shellcheck disable=SC2046
"$cc" "$scratch/app/main.c" $(pkg-config --static --cflags --libs loam) -o "$scratch/pc_static"
# shellcheck disable=SC2046
c++ -std=c++11 "$scratch/app/main.cpp" $(pkg-config --static --cflags --libs loam) -o "$scratch/pp_static"
"$scratch/pp_static" "$scratch/app.gguf"
"$scratch/pc_static"
if [ -e "$prefix/bin/loam" ]; then "$prefix/bin/loam" version; fi
echo "C and C++, shared and static, by find_package and by pkg-config"
