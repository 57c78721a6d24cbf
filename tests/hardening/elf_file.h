#pragma once

#include <elf.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The contents of a linked program of 64 bits, read from its bytes.

namespace gpu_platform::hardening {

struct ElfSymbol {
  std::string name;  // as the linker knows it
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  bool is_function = false;
  bool is_defined = false;
};

struct ElfFile {
  // Nothing where the bytes are no such file, or refer to what lies outside of them.
  static std::optional<ElfFile> parse(std::string bytes);

  std::string bytes;
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::multimap<std::int64_t, std::uint64_t> dynamic;  // values by tag
  std::vector<ElfSymbol> symbols;                      // of the linker and of the loader

  bool has_segment(std::uint32_t type) const;
  // Returns whether an entry of that tag has this bit.
  bool has_flag(std::int64_t tag, std::uint64_t flag) const;
  // Returns the bytes at an address before the program runs; empty if they are not in the file.
  std::string_view at(std::uint64_t address, std::uint64_t size) const;
};

}  // namespace gpu_platform::hardening
