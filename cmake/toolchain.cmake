# Compiler, linker and cache settings that every target shares.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# Line numbers for backtraces are enough in a release; full debug information doubles what is written.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
if(GP_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside libstdc++ and Boost headers at -O2 where nothing is wrong.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-array-bounds
                      -Wno-stringop-overread -Wno-dangling-pointer -Wno-free-nonheap-object)
  set(GP_PCH_FLAG -fpch-preprocess)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of GCC 12's library calls what that library deprecates; GCC tells of our own uses.
  add_compile_options(-Wthread-safety -Wno-unused-command-line-argument -Wno-deprecated-declarations)
endif()

if(GP_SANITIZE)
  # ThreadSanitizer of GCC 12 warns that it does not model fences, also inside libraries.
  add_compile_options(-Wno-tsan)
  if(GP_SANITIZE STREQUAL "thread")
    # With this macro protobuf's headers add members that the packaged library does not have.
    add_compile_options(-U__SANITIZE_THREAD__)
  endif()
  add_compile_options(-fsanitize=${GP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GP_SANITIZE})
else()
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
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GP_CCACHE})
endif()
