# Run with -P. Copies EXECUTABLES (separated by |) and the shared libraries that they need to STAGE/bin and STAGE/lib, stripped.
# With RUN, then starts the first from an empty directory with an empty environment and checks that it takes its libraries from the
# stage alone.
string(REPLACE "|" ";" EXECUTABLES "${EXECUTABLES}")
file(REMOVE_RECURSE "${STAGE}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${EXECUTABLES}
  RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing
  # The C library's and the loader belong to the machine that the bundle runs on.
  PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|pthread|dl|rt|resolv|util|nsl|anl))\\.so")
if(missing)
  message(FATAL_ERROR "bundle: no file for ${missing}")
endif()
file(MAKE_DIRECTORY "${STAGE}/bin" "${STAGE}/lib")
file(COPY ${EXECUTABLES} DESTINATION "${STAGE}/bin")
file(COPY ${libraries} DESTINATION "${STAGE}/lib" FOLLOW_SYMLINK_CHAIN)
list(GET EXECUTABLES 0 first)
get_filename_component(name "${first}" NAME)
file(GLOB files "${STAGE}/lib/*" "${STAGE}/bin/*")
foreach(file IN LISTS files)
  if(NOT IS_SYMLINK "${file}")
    execute_process(COMMAND "${STRIP}" --strip-unneeded "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()

if(NOT RUN)
  return()
endif()
set(empty "${STAGE}.empty")
file(REMOVE_RECURSE "${empty}")
file(MAKE_DIRECTORY "${empty}")
execute_process(COMMAND env -i "${STAGE}/bin/${name}" --version
  WORKING_DIRECTORY "${empty}" OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
message("${printed}")
execute_process(COMMAND env -i LD_TRACE_LOADED_OBJECTS=1 "${STAGE}/bin/${name}"
  WORKING_DIRECTORY "${empty}" OUTPUT_VARIABLE loaded COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" loaded "${loaded}")
foreach(line IN LISTS loaded)
  if(line MATCHES "=> (/[^ ]+)")
    set(path "${CMAKE_MATCH_1}")
    if(NOT path MATCHES "/bin/\\.\\./lib/" AND
       NOT path MATCHES "/(ld-linux[^/]*|lib(c|m|pthread|dl|rt|resolv|util|nsl|anl)\\.so[^/]*)$")
      message(FATAL_ERROR "bundle: ${path} is taken from this machine")
    endif()
  endif()
endforeach()
