#!/bin/sh
# Compiles every public header alone: none relies on what its includer included before.
#
#   headers_alone.sh COMPILER SOURCE_DIRECTORY BUILD_DIRECTORY LLVM_INCLUDE_DIRECTORY WITH_CUDA CUDA_INCLUDE_DIRECTORY
#
# Without CUDA the headers that need cuda.h are left out.
set -eu
compiler=$1
build=$3
llvm=$4
cuda=${6:-/}
export compiler build llvm cuda
cd "$2"
without=$(if [ "$5" = ON ]; then echo '^$'; else
  grep -lE '<cuda.h>|"measure/(cuda_(driver|context|kernel)|device_(buffer_sets|check(er|ed_calls)|conditions|reference|session)|call_graph).h"' measure/*.h
  fi)
printf '%s\n' schedule/*.h codegen/*.h measure/*.h costmodel/*.h db/*.h search/*.h cli/*.h | grep -vxF "$without" |
  xargs -P "$(nproc)" -n 1 sh -c '
    printf "#include \"%s\"\n" "$1" |
      "$compiler" -std=c++20 -fsyntax-only -I. -I"$build" -isystem "$llvm" -isystem "$cuda" -x c++ - ||
      { echo "$1 does not compile alone"; exit 255; }' sh
