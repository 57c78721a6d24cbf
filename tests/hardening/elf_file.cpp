#include "elf_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpu_platform::hardening {

namespace {

template <class T>
bool read_table(std::string_view bytes, std::uint64_t offset, std::uint64_t count,
                std::vector<T>& table) {
  if (offset > bytes.size() || count > (bytes.size() - offset) / sizeof(T)) return false;
  table.resize(count);
  std::memcpy(table.data(), bytes.data() + offset, count * sizeof(T));
  return true;
}

std::optional<std::string_view> section_bytes(std::string_view bytes, const Elf64_Shdr& section) {
  if (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset) {
    return std::nullopt;
  }
  return bytes.substr(section.sh_offset, section.sh_size);
}

std::string name_at(std::string_view names, std::uint64_t offset) {
  if (offset >= names.size()) return {};
  return std::string(names.substr(offset, names.find('\0', offset) - offset));
}

bool read_symbols(std::string_view bytes, const std::vector<Elf64_Shdr>& sections,
                  const Elf64_Shdr& table, std::vector<ElfSymbol>& out) {
  std::vector<Elf64_Sym> raw;
  if (table.sh_link >= sections.size()) return false;
  const auto names = section_bytes(bytes, sections[table.sh_link]);
  if (!names || !read_table(bytes, table.sh_offset, table.sh_size / sizeof(Elf64_Sym), raw)) {
    return false;
  }
  for (const Elf64_Sym& symbol : raw) {
    out.push_back({name_at(*names, symbol.st_name), symbol.st_value, symbol.st_size,
                   ELF64_ST_TYPE(symbol.st_info) == STT_FUNC, symbol.st_shndx != SHN_UNDEF});
  }
  return true;
}

}  // namespace

std::optional<ElfFile> ElfFile::parse(std::string bytes) {
  ElfFile file;
  file.bytes = std::move(bytes);
  if (file.bytes.size() < sizeof file.header) return std::nullopt;
  std::memcpy(&file.header, file.bytes.data(), sizeof file.header);
  const bool is_known = std::memcmp(file.header.e_ident, ELFMAG, SELFMAG) == 0 &&
                        file.header.e_ident[EI_CLASS] == ELFCLASS64 &&
                        file.header.e_ident[EI_DATA] == ELFDATA2LSB;
  std::vector<Elf64_Shdr> sections;
  if (!is_known ||
      !read_table(file.bytes, file.header.e_phoff, file.header.e_phnum, file.segments) ||
      !read_table(file.bytes, file.header.e_shoff, file.header.e_shnum, sections)) {
    return std::nullopt;
  }
  for (const Elf64_Shdr& section : sections) {
    const bool has_symbols = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
    if (has_symbols && !read_symbols(file.bytes, sections, section, file.symbols)) {
      return std::nullopt;
    }
  }
  for (const Elf64_Phdr& segment : file.segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    std::vector<Elf64_Dyn> entries;
    if (!read_table(file.bytes, segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn), entries)) {
      return std::nullopt;
    }
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      file.dynamic.emplace(entry.d_tag, entry.d_un.d_val);
    }
  }
  return file;
}

bool ElfFile::has_segment(std::uint32_t type) const {
  return std::ranges::any_of(segments, [&](const Elf64_Phdr& s) { return s.p_type == type; });
}

bool ElfFile::has_flag(std::int64_t tag, std::uint64_t flag) const {
  const auto [first, last] = dynamic.equal_range(tag);
  return std::any_of(first, last, [&](const auto& entry) { return (entry.second & flag) != 0; });
}

std::string_view ElfFile::at(std::uint64_t address, std::uint64_t size) const {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t offset = address - segment.p_vaddr;
    if (offset > segment.p_filesz || size > segment.p_filesz - offset) continue;
    const std::uint64_t place = segment.p_offset + offset;
    if (place > bytes.size() || size > bytes.size() - place) return {};
    return std::string_view(bytes).substr(place, size);
  }
  return {};
}

}  // namespace gpu_platform::hardening
