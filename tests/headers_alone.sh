#!/bin/sh
# Compiles every public header alone: none relies on what its includer included before.
#
#   headers_alone.sh COMPILER SOURCE_DIRECTORY BUILD_DIRECTORY LLVM_INCLUDE_DIRECTORY
set -eu
compiler=$1
build=$3
llvm=$4
export compiler build llvm
cd "$2"
printf '%s\n' schedule/*.h codegen/*.h measure/*.h costmodel/*.h db/*.h search/*.h cli/*.h |
  xargs -P "$(nproc)" -n 1 sh -c '
    printf "#include \"%s\"\n" "$1" |
      "$compiler" -std=c++20 -fsyntax-only -I. -I"$build" -isystem "$llvm" -x c++ - ||
      { echo "$1 does not compile alone"; exit 255; }' sh
