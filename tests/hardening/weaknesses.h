#pragma once

#include <string>
#include <vector>

#include "elf_file.h"

// Finds what makes a mistake in memory easier to exploit in a program's file than it has to be.
// Reads what the file does, not what the compiler was told: whether our own functions check their
// stack, call the checked functions of the C library and begin where an indirect jump may land.

namespace gpu_platform::hardening {

enum class Linked {
  kProgram,        // with a loader
  kStaticProgram,  // without one: it needs nothing of the host
  kBareProgram,    // the same, and without a C library: its guard of stacks is its own variable
  kLibrary,
};

// One sentence each; empty: none was found.
std::vector<std::string> weaknesses(const ElfFile& file, Linked linked);

}  // namespace gpu_platform::hardening
