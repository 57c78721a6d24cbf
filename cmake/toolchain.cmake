# Compiler, linker and cache settings that every target shares.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# A release has the names of its functions and not the lines of its source, which would be three quarters of what is
# written. The machine code is the same either way, so a second build with lines reads a core file of the first one.
option(GP_LINES "Give a release the lines of its source, for backtraces" OFF)
if(GP_LINES)
  set(GP_LINES_FLAG -g1)
endif()
# Checked calls of the C library need an optimizer; what is left unset is zero in a release alone, so that
# sanitizers still see it.
set(GP_FORTIFY "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 ${GP_LINES_FLAG} -DNDEBUG ${GP_FORTIFY} -ftrivial-auto-var-init=zero")

# A mistake in memory ends the program instead of serving an attacker (docs/deployment.md, "How the programs are
# built"; tests/hardening reads it from the files). The same for everything, as precompiled headers ask for.
add_compile_options(-fstack-protector-strong)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
include(CheckCXXCompilerFlag)
foreach(flag -fcf-protection=full -mbranch-protection=standard)  # x86-64 and arm64
  string(MAKE_C_IDENTIFIER "GP_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    add_compile_options(${flag})
  endif()
endforeach()
# Said here and not by CMake's property: gpu-platform and the tests share a header that is compiled with -fPIC.
add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>
                 -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
if(GP_WERROR)
  add_compile_options(-Werror)
endif()
# gp_add_gcc_options(<options>): for what GCC compiles, which tests may not be (gp_compile_as_test).
macro(gp_add_gcc_options)
  foreach(option ${ARGN})
    add_compile_options($<$<NOT:$<BOOL:$<TARGET_PROPERTY:GP_BY_CLANG>>>:${option}>)
  endforeach()
endmacro()
set(GP_CLANG_OPTIONS -Wthread-safety -Wno-unused-command-line-argument -Wno-deprecated-declarations)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside libstdc++ and Boost headers at -O2 where nothing is wrong.
  gp_add_gcc_options(-Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-array-bounds
                     -Wno-stringop-overread -Wno-dangling-pointer -Wno-free-nonheap-object)
  set(GP_PCH_FLAG -fpch-preprocess)
  # -O2 sets these and other levels do not, and from GCC 13 on one that differs refuses the precompiled header. Said for
  # all levels they change nothing: the one bounds what another flag of -O2 does, the other is for code with AVX.
  foreach(flag -munroll-only-small-loops -mvzeroupper)  # x86-64
    string(MAKE_C_IDENTIFIER "GP_HAS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known} AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      gp_add_gcc_options(${flag})
    endif()
  endforeach()
  # The compiler looks for memory to reuse when it has 1 GB rather than 128 MB: a tenth of its time, for a third more memory.
  gp_add_gcc_options(--param=ggc-min-expand=400 --param=ggc-min-heapsize=1000000)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of GCC 12's library calls what that library deprecates; GCC tells of our own uses.
  add_compile_options(${GP_CLANG_OPTIONS})
endif()

if(GP_SANITIZE)
  set(sanitizer_options -fsanitize=${GP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(GP_SANITIZE STREQUAL "thread")
    # ThreadSanitizer of GCC 12 warns that it does not model fences, also inside libraries. With the macro protobuf's
    # headers add members that the packaged library does not have.
    add_compile_options(-Wno-tsan -U__SANITIZE_THREAD__ ${sanitizer_options})
  else()
    # The rooms are looked at, and not what tests alone consist of (gp_compile_as_test), which takes half as long to
    # compile so. Searches for bad inputs (tests/fuzz) share the objects of the rooms, so these say which way they went.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND GP_SANITIZE MATCHES "address")
      set(GP_FUZZ ON)
      list(APPEND sanitizer_options -fsanitize=fuzzer-no-link)
      # Undefined behaviour is looked for in the project's own code. A mistake of it in a library's template, such as an index
      # past the end, is AddressSanitizer's and the library's own assertions' to find. A fifth of the time and of the code.
      list(APPEND sanitizer_options -fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/undefined_elsewhere.txt)
    endif()
    foreach(option ${sanitizer_options})
      add_compile_options($<$<NOT:$<BOOL:$<TARGET_PROPERTY:GP_OF_TESTS>>>:${option}>)
    endforeach()
  endif()
  add_link_options(-fsanitize=${GP_SANITIZE})
endif()
if(NOT GP_SANITIZE STREQUAL "thread")
  add_link_options(-fuse-ld=mold)
endif()

# A busy daemon spends a third of its time in glibc's malloc, and next to none in jemalloc (bench/RESULTS.md).
# Sanitizers bring an allocator of their own.
function(gp_use_fast_allocator target)
  if(NOT GP_SANITIZE)
    find_library(GP_JEMALLOC jemalloc REQUIRED)
    target_link_libraries(${target} PRIVATE ${GP_JEMALLOC})
  endif()
endfunction()

find_program(GP_CCACHE ccache)
if(GP_CCACHE)
  set(environment ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${environment} ${GP_CCACHE})
endif()

# gp_compile_as_test(<targets>): what tests alone consist of is neither optimised nor sanitized, and clang compiles it where
# GP_TESTS_BY names it: in three fifths of GCC's time. What is tested stays what ships: the rooms' own code is GCC's, inline
# functions included (gp_test_program). The cache of compilers puts the one in the place of the other; without the cache
# there is one compiler.
if(GP_TESTS_BY AND GP_CCACHE)
  find_program(GP_TEST_COMPILER ${GP_TESTS_BY})
endif()
function(gp_compile_as_test)
  set_target_properties(${ARGN} PROPERTIES GP_OF_TESTS ON)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE -O0 -U_FORTIFY_SOURCE)
    if(GP_TEST_COMPILER)
      target_compile_options(${target} PRIVATE ${GP_CLANG_OPTIONS} "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endforeach()
  if(GP_TEST_COMPILER)
    set_target_properties(${ARGN} PROPERTIES GP_BY_CLANG ON
        CXX_COMPILER_LAUNCHER "${environment};CCACHE_COMPILER=${GP_TEST_COMPILER};${GP_CCACHE}")
  endif()
endfunction()
