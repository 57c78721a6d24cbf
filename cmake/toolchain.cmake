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
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside libstdc++ and Boost headers at -O2 where nothing is wrong.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-array-bounds
                      -Wno-stringop-overread -Wno-dangling-pointer -Wno-free-nonheap-object)
  set(GP_PCH_FLAG -fpch-preprocess)
  # -O2 sets these and other levels do not, and from GCC 13 on one that differs refuses the precompiled header. Said for
  # all levels they change nothing: the one bounds what another flag of -O2 does, the other is for code with AVX.
  foreach(flag -munroll-only-small-loops -mvzeroupper)  # x86-64
    string(MAKE_C_IDENTIFIER "GP_HAS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known} AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      add_compile_options(${flag})
    endif()
  endforeach()
  # The compiler looks for memory to reuse when it has 1 GB rather than 128 MB: a tenth of its time, for a third more memory.
  add_compile_options(--param=ggc-min-expand=400 --param=ggc-min-heapsize=1000000)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of GCC 12's library calls what that library deprecates; GCC tells of our own uses.
  add_compile_options(-Wthread-safety -Wno-unused-command-line-argument -Wno-deprecated-declarations)
endif()

if(GP_SANITIZE)
  if(GP_SANITIZE STREQUAL "thread")
    # ThreadSanitizer of GCC 12 warns that it does not model fences, also inside libraries.
    add_compile_options(-Wno-tsan)
    # With this macro protobuf's headers add members that the packaged library does not have.
    add_compile_options(-U__SANITIZE_THREAD__)
  endif()
  add_compile_options(-fsanitize=${GP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GP_SANITIZE})
  # Searches for bad inputs (tests/fuzz) share the objects of the sanitized tests, so these say which way they went.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND GP_SANITIZE MATCHES "address")
    set(GP_FUZZ ON)
    add_compile_options(-fsanitize=fuzzer-no-link)
    set(GP_TEST_FLAGS -fno-sanitize=fuzzer-no-link)
  endif()
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
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_DEPEND=1 ${GP_CCACHE})
endif()
