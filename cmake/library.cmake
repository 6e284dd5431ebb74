# elastic_precompiled(target [owner]): the target's C++ sources find src/base/precompiled.h parsed already. The owner,
# elastic_base unless another is named, makes it; all that is compiled with the same flags shares it. Tests have theirs
# (tests/CMakeLists.txt).
function(elastic_precompiled target)
  set(owner elastic_base ${ARGN})
  list(GET owner -1 owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/src/base/precompiled.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# elastic_sources(target most_lines source ...): gives the target these sources. With ELASTIC_UNITY some of them are
# compiled together, so many lines at most: elastic_units(), at the end, asks units.py which, for all targets at once.
function(elastic_sources target most_lines)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  if(ELASTIC_UNITY)
    list(JOIN ARGN "|" files)
    set_property(GLOBAL APPEND_STRING PROPERTY ELASTIC_UNITS "${target}|${most_lines}|${files}\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  else()
    target_sources(${target} PRIVATE ${ARGN})
  endif()
endfunction()
function(elastic_units)
  get_property(units GLOBAL PROPERTY ELASTIC_UNITS)
  file(WRITE ${PROJECT_BINARY_DIR}/units/list "${units}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/cmake/units.py ${PROJECT_SOURCE_DIR}/tests/mistakes.py)
  execute_process(
    COMMAND ${python} ${PROJECT_SOURCE_DIR}/cmake/units.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/units
      ${PROJECT_BINARY_DIR}/units/list
    OUTPUT_VARIABLE units OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" units "${units}")
  foreach(line ${units})
    string(REPLACE "|" ";" line "${line}")
    list(POP_FRONT line target)
    target_sources(${target} PRIVATE ${line})
  endforeach()
endfunction()

# elastic_library(NAME target [SMALL] SOURCES a.cpp ... [ALONE b.cpp ...] [TESTS a_test.cpp ...] [DEPS target ...])
#
# A folder's code as one static library. With SMALL it is compiled for size: what runs once in a launch, or writes what
# people read. ALONE are sources that no other is compiled with: they have options of their own, or a program of the
# tests has others in their place. Its unit tests stand beside the sources and are gathered into
# the one executable `unit_tests`; ctest runs them folder by folder as unit.<target>. A pure folder
# simply does not name elastic_net, elastic_process or elastic_uv in DEPS (tests/structure holds that).
function(elastic_library)
  cmake_parse_arguments(ARG "SMALL" "NAME" "SOURCES;ALONE;TESTS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_ALONE})
  elastic_sources(${ARG_NAME} 400 ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC elastic_flags ${ARG_DEPS})
  if(ARG_SMALL AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${ARG_NAME} PRIVATE -Os)
    elastic_precompiled(${ARG_NAME} elastic_report)
  else()
    elastic_precompiled(${ARG_NAME})
  endif()
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
