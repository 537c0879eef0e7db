# Compiler flags that every target of the project gets.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-sign-compare
  # Rows of lists are designated initialisers that name only what differs from the default.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these falsely inside Abseil's and the standard library's inlined code.
  add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict
    -Wno-subobject-linkage)  # the last: in a unity build an anonymous namespace seems to stand in a header
endif()
if(TILEWRIGHT_SANITIZE)
  # Whatever undefined behaviour is found ends the program: a test that only printed it would pass.
  add_compile_options(-fsanitize=${TILEWRIGHT_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1)
  add_link_options(-fsanitize=${TILEWRIGHT_SANITIZE})
endif()
if(TILEWRIGHT_FUZZ)
  # Coverage for libFuzzer in all of the project's code; tests/fuzz links its main program.
  add_compile_options(-fsanitize=fuzzer-no-link,address)
  add_link_options(-fsanitize=address)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(LD_LLD NAMES ld.lld-19 ld.lld)
