# `bundle`: build/PRESET/tilewright-VERSION-linux-x86_64.tar.xz, with the executable and every shared library it needs but the C
# library's own, for machines that have none of the build's packages. Included last, by the top CMakeLists.txt.
if(NOT TARGET tilewright)
  return()
endif()

# Libraries lie beside the executable. DT_RPATH, which the libraries' own look-ups inherit, not DT_RUNPATH, which they do not.
set_property(TARGET tilewright APPEND PROPERTY BUILD_RPATH "\$ORIGIN/../lib")
target_link_options(tilewright PRIVATE -Wl,--disable-new-dtags)

set(bundle_name "tilewright-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(bundle_stage "${PROJECT_BINARY_DIR}/bundle/${bundle_name}")
set(stage_command "${CMAKE_COMMAND}" "-DEXECUTABLE=$<TARGET_FILE:tilewright>" "-DSTAGE=${bundle_stage}"
  "-DSTRIP=${CMAKE_STRIP}" -P "${PROJECT_SOURCE_DIR}/cmake/StageBundle.cmake")

add_custom_target(bundle
  COMMAND ${stage_command}
  COMMAND "${CMAKE_COMMAND}" -E chdir "${PROJECT_BINARY_DIR}/bundle"
    "${CMAKE_COMMAND}" -E tar cJf "${PROJECT_BINARY_DIR}/${bundle_name}.tar.xz" "${bundle_name}"
  COMMENT "${bundle_name}.tar.xz"
  DEPENDS tilewright
  VERBATIM)

if(TILEWRIGHT_TESTS AND NOT TILEWRIGHT_SANITIZE)
  add_test(NAME Bundle.RunsFromAnEmptyDirectoryWithAnEmptyEnvironment
    COMMAND ${stage_command} -DRUN=ON)
endif()
