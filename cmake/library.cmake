# elastic_precompiled(target): the target's C++ sources find src/base/precompiled.h parsed already. elastic_base, the
# lowest floor, makes it; all that is compiled with the same flags shares it. Tests have theirs (tests/CMakeLists.txt).
function(elastic_precompiled target)
  if(target STREQUAL "elastic_base")
    target_precompile_headers(elastic_base PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/src/base/precompiled.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM elastic_base)
  endif()
endfunction()

# elastic_library(NAME target SOURCES a.cpp ... [TESTS a_test.cpp ...] [DEPS target ...])
#
# A folder's code as one static library. Its unit tests stand beside the sources and are gathered into
# the one executable `unit_tests`; ctest runs them folder by folder as unit.<target>. A pure folder
# simply does not name elastic_net, elastic_process or elastic_uv in DEPS (tests/structure holds that).
function(elastic_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;TESTS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC elastic_flags ${ARG_DEPS})
  elastic_precompiled(${ARG_NAME})
  set_property(GLOBAL APPEND PROPERTY ELASTIC_LIBRARIES ${ARG_NAME})
  foreach(test ${ARG_TESTS})
    set_property(GLOBAL APPEND PROPERTY ELASTIC_TEST_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${test})
  endforeach()
  if(ARG_TESTS)
    set_property(GLOBAL APPEND PROPERTY ELASTIC_TESTED_LIBRARIES ${ARG_NAME})
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    list(TRANSFORM ARG_TESTS PREPEND "*${folder}/")
    list(JOIN ARG_TESTS "," filter)
    set_property(GLOBAL PROPERTY ELASTIC_TESTS_OF_${ARG_NAME} "${filter}")
  endif()
endfunction()
