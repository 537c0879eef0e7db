# `bundle`: build/PRESET/tilewright-VERSION-linux-x86_64.tar.xz, with the executable, the tests that need a GPU, the tables of the
# GEMM suite, and every shared library they need but the C library's own, for machines that have none of the build's packages.
# Included last, by the top CMakeLists.txt.
if(NOT TARGET tilewright)
  return()
endif()

# Libraries lie beside the executable. DT_RPATH, which the libraries' own look-ups inherit, not DT_RUNPATH, which they do not.
set(bundle_targets tilewright)
if(TARGET gpu_test)
  list(APPEND bundle_targets gpu_test)
endif()
if(TARGET gemm_suite)
  list(APPEND bundle_targets gemm_suite)
endif()
set(bundle_files)
foreach(target IN LISTS bundle_targets)
  set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH "\$ORIGIN/../lib")
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  list(APPEND bundle_files "$<TARGET_FILE:${target}>")
endforeach()
list(JOIN bundle_files "|" bundle_files)

set(bundle_name "tilewright-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(bundle_stage "${PROJECT_BINARY_DIR}/bundle/${bundle_name}")
set(stage_command "${CMAKE_COMMAND}" "-DEXECUTABLES=${bundle_files}" "-DSTAGE=${bundle_stage}"
  "-DSTRIP=${CMAKE_STRIP}" -P "${PROJECT_SOURCE_DIR}/cmake/StageBundle.cmake")

add_custom_target(bundle
  COMMAND ${stage_command}
  COMMAND "${CMAKE_COMMAND}" -E chdir "${PROJECT_BINARY_DIR}/bundle"
    "${CMAKE_COMMAND}" -E tar cJf "${PROJECT_BINARY_DIR}/${bundle_name}.tar.xz" "${bundle_name}"
  COMMENT "${bundle_name}.tar.xz"
  DEPENDS ${bundle_targets}
  VERBATIM)

if(TILEWRIGHT_TESTS AND NOT TILEWRIGHT_SANITIZE)
  add_test(NAME Bundle.RunsFromAnEmptyDirectoryWithAnEmptyEnvironment
    COMMAND ${stage_command} -DRUN=ON)
endif()
