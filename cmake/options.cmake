option(ELASTIC_STATIC "Link everything statically, glibc too" ON)
option(ELASTIC_SANITIZE "Address, undefined behaviour and leak sanitizers" OFF)
option(ELASTIC_WERROR "Warnings are errors" OFF)
option(ELASTIC_UNITY "Sources of a folder are compiled together, some at a time" OFF)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")  # the sanitizers' build; -O2 takes twice as long

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UV REQUIRED libuv)
pkg_check_modules(SODIUM REQUIRED libsodium)
pkg_check_modules(CARES REQUIRED libcares)
pkg_check_modules(MUNGE REQUIRED munge)
pkg_check_modules(RE2 REQUIRED re2)

file(RELATIVE_PATH elastic_source_from_build ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
string(REGEX REPLACE "/$" "" elastic_source_from_build "${elastic_source_from_build}")
# Interface targets carry the flags, so that every target states what it is made with.
add_library(elastic_flags INTERFACE)
target_include_directories(elastic_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(elastic_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wformat=2 -Wundef
  -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough -Wmissing-declarations
  -Wno-restrict  # g++ 12 sees overlaps in std::string that are not there (GCC bug 105651)
  # With a precompiled header g++ 12 forgets which headers are the system's, and warns of what it inlines from them.
  # Where there is none these warnings are kept.
  $<$<NOT:$<BOOL:${CMAKE_DISABLE_PRECOMPILE_HEADERS}>>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>
  $<$<BOOL:${ELASTIC_WERROR}>:-Werror>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>  # ccache needs it where a header is precompiled
  # In KiB. By default the compiler collects its garbage several times for a large file: a twelfth of its time, for memory
  # that it gives back at the end anyway.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>
  # The same bytes wherever the source lies, also where ccache names the files from the build's directory.
  -ffile-prefix-map=${elastic_source_from_build}=.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build
  -fno-strict-aliasing -fstack-protector-strong)
target_compile_definitions(elastic_flags INTERFACE ELASTIC_RUN_VERSION="${PROJECT_VERSION}")

if(ELASTIC_SANITIZE)
  # vptr: each of its checks opens a pipe, and fails where no descriptor is left. null and object-size find what the
  # address sanitizer finds, too; with alignment they are in every access, and cost a fifth of the compilation.
  target_compile_options(elastic_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize=vptr,null,object-size,alignment -fno-sanitize-recover=all -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)  # with sanitizers g++ 12 sees it in <regex> and std::variant where it is not
  target_link_options(elastic_flags INTERFACE -fsanitize=address,undefined)
else()
  target_compile_options(elastic_flags INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(elastic_flags INTERFACE -Wl,--gc-sections)
endif()
if(ELASTIC_STATIC)
  target_link_options(elastic_flags INTERFACE -static)
endif()

# libuv: Debian's static archive has another name than the shared library.
add_library(elastic_uv INTERFACE)
target_include_directories(elastic_uv SYSTEM INTERFACE ${UV_INCLUDE_DIRS})
if(ELASTIC_STATIC)
  find_library(UV_STATIC_LIBRARY NAMES libuv_a.a libuv.a REQUIRED)
  target_link_libraries(elastic_uv INTERFACE ${UV_STATIC_LIBRARY} Threads::Threads)
else()
  target_link_libraries(elastic_uv INTERFACE ${UV_LINK_LIBRARIES} Threads::Threads)
endif()

# libsodium: keyed hashes, in rendezvous/protocol/proof.cpp alone.
add_library(elastic_sodium INTERFACE)
target_include_directories(elastic_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIRS})
if(ELASTIC_STATIC)
  find_library(SODIUM_STATIC_LIBRARY NAMES libsodium.a REQUIRED)
  target_link_libraries(elastic_sodium INTERFACE ${SODIUM_STATIC_LIBRARY})
else()
  target_link_libraries(elastic_sodium INTERFACE ${SODIUM_LINK_LIBRARIES})
endif()

# libmunge: who a process of another host is, as munge says; in src/net/munge.cpp alone.
add_library(elastic_munge INTERFACE)
target_include_directories(elastic_munge SYSTEM INTERFACE ${MUNGE_INCLUDE_DIRS})
if(ELASTIC_STATIC)
  find_library(MUNGE_STATIC_LIBRARY NAMES libmunge.a REQUIRED)
  target_link_libraries(elastic_munge INTERFACE ${MUNGE_STATIC_LIBRARY})
else()
  target_link_libraries(elastic_munge INTERFACE ${MUNGE_LINK_LIBRARIES})
endif()

# RE2: --progress-pattern, in health/progress/step_pattern.cpp alone.
add_library(elastic_re2 INTERFACE)
target_include_directories(elastic_re2 SYSTEM INTERFACE ${RE2_INCLUDE_DIRS})
if(ELASTIC_STATIC)
  find_library(RE2_STATIC_LIBRARY NAMES libre2.a REQUIRED)
  target_link_libraries(elastic_re2 INTERFACE ${RE2_STATIC_LIBRARY})
else()
  target_link_libraries(elastic_re2 INTERFACE ${RE2_LINK_LIBRARIES})
endif()

# c-ares: host names, in src/net/names.cpp alone.
add_library(elastic_cares INTERFACE)
target_include_directories(elastic_cares SYSTEM INTERFACE ${CARES_INCLUDE_DIRS})
if(ELASTIC_STATIC)
  find_library(CARES_STATIC_LIBRARY NAMES libcares.a REQUIRED)
  target_link_libraries(elastic_cares INTERFACE ${CARES_STATIC_LIBRARY})
else()
  target_link_libraries(elastic_cares INTERFACE ${CARES_LINK_LIBRARIES})
endif()

# http-parser: requests and answers, in src/net/http/reader.cpp alone. Debian has no pkg-config file for it.
add_library(elastic_http_parser INTERFACE)
find_path(HTTP_PARSER_INCLUDE http_parser.h REQUIRED)
target_include_directories(elastic_http_parser SYSTEM INTERFACE ${HTTP_PARSER_INCLUDE})
if(ELASTIC_STATIC)
  find_library(HTTP_PARSER_LIBRARY NAMES libhttp_parser.a REQUIRED)
else()
  find_library(HTTP_PARSER_LIBRARY NAMES http_parser REQUIRED)
endif()
target_link_libraries(elastic_http_parser INTERFACE ${HTTP_PARSER_LIBRARY})
