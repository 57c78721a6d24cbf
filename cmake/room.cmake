# One call describes a room: a folder under src/ becomes the library gp_<name>, its *_test.cpp one test program.

# Headers that nearly every file uses, compiled once per build folder: gp_pch for rooms and programs, and
# gp_test_pch for tests, which are not optimised: they are most of the code and compile twice as fast so,
# while what they test stays as it ships.
function(gp_precompiled_header)
  set(standard <algorithm> <array> <atomic> <cstdint> <deque> <expected> <functional> <map> <memory> <optional>
               <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
  foreach(name gp_pch gp_test_pch)
    file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "")
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
    target_link_libraries(${name} PUBLIC fmt::fmt)
    target_compile_options(${name} PUBLIC ${GP_PCH_FLAG})
  endforeach()
  target_precompile_headers(gp_pch PRIVATE ${standard})
  target_link_libraries(gp_test_pch PUBLIC GTest::gtest GTest::gmock)
  target_precompile_headers(gp_test_pch PRIVATE ${standard} <gtest/gtest.h> <gmock/gmock.h>)
  gp_compile_as_test(gp_test_pch)
endfunction()

# gp_join(<target> [<files>]): the target's sources are compiled several at a time (GP_JOIN of them), so that headers
# are read and templates compiled once for all of them. The files named stay apart: something in their unnamed
# namespaces has a name that another file's has, too, be it a function with other parameters: which of the two is
# called must not depend on who else is in the unit.
function(gp_join target)
  if(NOT GP_JOIN)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${GP_JOIN})
  if(ARGN)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  # GCC takes a source that another includes for a header: a type of its unnamed namespace may be a member here.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:GP_BY_CLANG>>>:-Wno-subobject-linkage>)
  endif()
endfunction()

# gp_program(<target> [WAITS]): the program shares the header that rooms are compiled with. WAITS as for a room.
function(gp_program target)
  # Programs would get -fPIE, which the shared precompiled header (-fPIC) does not fit.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE ${GP_PCH_FLAG} -fPIC)
  target_precompile_headers(${target} REUSE_FROM gp_pch)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  if("WAITS" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
  endif()
endfunction()

# gp_room(NAME <name> [DIR <dir>] [DEPENDS <targets>] [TEST_DEPENDS <targets>] [ONLY <regex>] [EXCLUDE <regex>]
#         [LABELS <labels>] [WAITS | STEADY] [ALL_APART | APART <files>]
#         [TEST_SHARDS <n>] [TEST_SOURCES <files>] [TESTS_APART | TEST_APART <files>] [TESTS_AS_ROOM])
# Library of every *.cpp under DIR (the current folder) that is not a test; tests of the same folder beside it.
# EXCLUDE drops files whose path below DIR matches, ONLY those that do not match, so that a part of a room can be a
# target of its own.
# WAITS: the room waits for clients, a daemon or a disk most of the time, so that a release optimises it less (-Og) and
# compiles it in two thirds of the time.
# STEADY: the room is measured to be as fast with -O1 (bench/RESULTS.md), which takes a fifth less to compile.
# TEST_SOURCES: what the tests need of other rooms' tests.
# TESTS_AS_ROOM: the tests are compiled by the compiler of the rooms (gp_test_program, AS_ROOM).
# APART, TEST_APART: files that are not compiled together with others (gp_join); ALL_APART, TESTS_APART: none is.
function(gp_room)
  cmake_parse_arguments(R "WAITS;STEADY;ALL_APART;TESTS_APART;TESTS_AS_ROOM" "NAME;DIR;ONLY;EXCLUDE;TEST_SHARDS" "DEPENDS;TEST_DEPENDS;TEST_SOURCES;LABELS;APART;TEST_APART" ${ARGN})
  if(NOT R_DIR)
    set(R_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${R_DIR} ${R_DIR}/*.cpp)
  if(R_ONLY)
    list(FILTER sources INCLUDE REGEX ${R_ONLY})
  endif()
  if(R_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${R_EXCLUDE})
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(TRANSFORM sources PREPEND ${R_DIR}/)
  list(TRANSFORM tests PREPEND ${R_DIR}/)
  if(sources)
    add_library(gp_${R_NAME} STATIC ${sources})
    target_include_directories(gp_${R_NAME} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(gp_${R_NAME} PUBLIC fmt::fmt ${R_DEPENDS})
    target_compile_options(gp_${R_NAME} PRIVATE ${GP_PCH_FLAG})
    target_precompile_headers(gp_${R_NAME} REUSE_FROM gp_pch)
    if(R_WAITS)
      target_compile_options(gp_${R_NAME} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
    endif()
    if(R_STEADY)
      target_compile_options(gp_${R_NAME} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    endif()
    if(NOT R_ALL_APART)
      list(TRANSFORM R_APART PREPEND ${R_DIR}/)
      gp_join(gp_${R_NAME} ${R_APART})
    endif()
  else()
    add_library(gp_${R_NAME} INTERFACE)
    target_include_directories(gp_${R_NAME} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(gp_${R_NAME} INTERFACE fmt::fmt ${R_DEPENDS})
  endif()
  if(tests)
    set(compiler)
    if(R_TESTS_AS_ROOM)
      set(compiler AS_ROOM)
    endif()
    gp_test(${compiler} NAME ${R_NAME}_test SOURCES ${tests} ${R_TEST_SOURCES} DEPENDS gp_${R_NAME} ${R_TEST_DEPENDS} LABELS unit ${R_LABELS}
            SHARDS ${R_TEST_SHARDS})
    if(NOT R_TESTS_APART)
      list(TRANSFORM R_TEST_APART PREPEND ${R_DIR}/)
      gp_join(${R_NAME}_test ${R_TEST_APART})
    endif()
  endif()
endfunction()

# Tests that take long begin first, so that none is left to run alone at the end: seconds, roughly.
set(GP_SECONDS_e2e_crash_test 100)
set(GP_SECONDS_controller_test 15)
set(GP_SECONDS_controller_test.2 15)
set(GP_SECONDS_execution_process_test 45)
set(GP_SECONDS_execution_process_test.2 45)
set(GP_SECONDS_e2e_containers_exec_test 70)
set(GP_SECONDS_e2e_kubernetes_test 65)
set(GP_SECONDS_api_test 60)
set(GP_SECONDS_e2e_attack_doors_test 60)
set(GP_SECONDS_e2e_engine_contract_test 60)
set(GP_SECONDS_e2e_kubernetes_workloads_test 40)
set(GP_SECONDS_store_test 40)
set(GP_SECONDS_store_test.2 40)
set(GP_SECONDS_e2e_shims_test 35)
set(GP_SECONDS_e2e_attack_container_root_test 45)
set(GP_SECONDS_e2e_attack_container_test 30)
set(GP_SECONDS_e2e_change_test 30)
set(GP_SECONDS_e2e_containers_life_test 30)
set(GP_SECONDS_views_test 30)
set(GP_SECONDS_views_test.2 30)
set(GP_SECONDS_e2e_attack_job_test 25)
set(GP_SECONDS_e2e_attach_test 25)
set(GP_SECONDS_e2e_interactive_test 20)
set(GP_SECONDS_e2e_listener_test 20)
set(GP_SECONDS_e2e_prediction_test 15)
set(GP_SECONDS_e2e_shims_queries_test 15)

# gp_archives(<variable> <libraries>): the files of those of the libraries that are rooms, and of the rooms they need.
function(gp_archives variable)
  set(found)
  foreach(library ${ARGN})
    if(NOT library MATCHES "^gp_" OR NOT TARGET ${library})
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    get_target_property(needed ${library} INTERFACE_LINK_LIBRARIES)
    gp_archives(deeper ${needed})
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND found $<TARGET_FILE:${library}>)
    endif()
    list(APPEND found ${deeper})
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# gp_test_program(<name> [AS_ROOM] SOURCES <files> [DEPENDS <targets>]): a GoogleTest program. AS_ROOM: the compiler of the
# rooms compiles it, too, for sources that use Boost.Asio's executors, whose names GCC 12 and clang make differently.
# GP_TESTS_OF names a preset whose objects of the tests are taken instead of compiling them again; ./dev build has them made.
function(gp_test_program name)
  cmake_parse_arguments(T "AS_ROOM" "" "SOURCES;DEPENDS" ${ARGN})
  set(objects test_objects/${name})
  set(built)
  if(GP_TESTS_OF AND NOT T_AS_ROOM)
    set(built ${CMAKE_SOURCE_DIR}/build/${GP_TESTS_OF})
    add_executable(${name} ${CMAKE_BINARY_DIR}/gp_test_pch.cpp)
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${built}/${name})
  else()
    add_executable(${name} ${T_SOURCES})
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${objects} CONTENT "\"$<JOIN:$<TARGET_OBJECTS:${name}>,\"\n\">\"\n")
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main Threads::Threads fmt::fmt ${T_DEPENDS})
  # Programs would get -fPIE, which the shared precompiled header (-fPIC) does not fit.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${GP_PCH_FLAG} -fPIC)
  if(T_AS_ROOM AND GP_TEST_COMPILER)
    target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
  elseif(T_AS_ROOM OR NOT GP_TESTS_OF)
    target_precompile_headers(${name} REUSE_FROM gp_test_pch)
    gp_compile_as_test(${name})
  endif()
  # Of an inline function that the rooms and the tests both have, the linker takes the first: named before the tests, the
  # rooms give it, optimised, and what is tested is what ships. (The archives are named again behind the tests.)
  gp_archives(rooms ${T_DEPENDS})
  target_link_options(${name} PRIVATE ${rooms})
  if(built)
    target_link_options(${name} PRIVATE @${built}/${objects})
  endif()
endfunction()

# gp_add_test(<name> <command> <timeout> <labels>): has ctest run it, those that take long first.
function(gp_add_test name command timeout labels)
  add_test(NAME ${name} COMMAND ${command})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout})
  if(GP_SECONDS_${name})
    set_tests_properties(${name} PROPERTIES COST ${GP_SECONDS_${name}})
  endif()
endfunction()

# gp_test([AS_ROOM] NAME <name> SOURCES <files> [DEPENDS <targets>] [LABELS <labels>] [TIMEOUT <s>] [SHARDS <n>]): a GoogleTest
# program, registered with ctest as one test (its cases are listed by the program itself). SHARDS: as so many tests,
# each with a part of the cases, for a program that waits longer than the others of its stage take; the further ones are
# called <name>.2 and so on, and so are the links by which they are run.
function(gp_test)
  cmake_parse_arguments(T "AS_ROOM" "NAME;TIMEOUT;SHARDS" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  set(compiler)
  if(T_AS_ROOM)
    set(compiler AS_ROOM)
  endif()
  gp_test_program(${T_NAME} ${compiler} SOURCES ${T_SOURCES} DEPENDS ${T_DEPENDS})
  gp_add_test(${T_NAME} ${T_NAME} ${T_TIMEOUT} "${T_LABELS}")
  if(NOT T_SHARDS)
    return()
  endif()
  set_tests_properties(${T_NAME} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${T_SHARDS};GTEST_SHARD_INDEX=0")
  foreach(number RANGE 2 ${T_SHARDS})
    set(shard ${T_NAME}.${number})
    math(EXPR index "${number} - 1")
    gp_add_test(${shard} ${CMAKE_BINARY_DIR}/${shard} ${T_TIMEOUT} "${T_LABELS}")
    set_tests_properties(${shard} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${T_SHARDS};GTEST_SHARD_INDEX=${index}")
    add_custom_command(TARGET ${T_NAME} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink ${T_NAME} ${shard}
                       WORKING_DIRECTORY ${CMAKE_BINARY_DIR} VERBATIM)
  endforeach()
endfunction()
