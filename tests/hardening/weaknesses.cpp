#include "weaknesses.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace gpu_platform::hardening {

namespace {

bool is_ours(const ElfSymbol& symbol) {
  if (!symbol.is_function || !symbol.is_defined || symbol.size == 0) return false;
  const std::string_view name = symbol.name;
  return name == "main" || name.starts_with("nvml") || name.find("12gpu_platform") != name.npos ||
         name.find("12gpu_emulator") != name.npos;
}

// Others may call it by its name, so its address may be taken where the compiler does not see it.
// Linkers write such symbols of a program as local ones; what only its own file knows is told by
// its name.
bool is_known_outside(std::string_view name) {
  if (name == "main" || name.starts_with("nvml")) return true;
  // A lambda, and what is made for one, has no name elsewhere either.
  return name.starts_with("_ZN") && name.find("_GLOBAL__N_") == name.npos &&
         name.find("EUl") == name.npos && name.find('.') == name.npos;
}

bool is_checked_call(std::string_view name) {
  return name.starts_with("__") && name.ends_with("_chk");
}

// An instruction that takes the stack's guard value, %fs:0x28, with any register: mov, sub, xor.
bool reads_guard(std::string_view code) {
  constexpr std::string_view kGuard("\x25\x28\0\0\0", 5);
  for (std::size_t at = code.find(kGuard); at != code.npos; at = code.find(kGuard, at + 1)) {
    if (at < 4) continue;
    const auto* const before = reinterpret_cast<const unsigned char*>(code.data() + at - 4);
    const bool is_access = before[2] == 0x8b || before[2] == 0x2b || before[2] == 0x33;
    if (before[0] == 0x64 && (before[1] & 0xfb) == 0x48 && is_access && (before[3] & 0xc7) == 4) {
      return true;
    }
  }
  return false;
}

// Has an operand at that address, relative to the next instruction.
bool refers_to(std::string_view code, std::uint64_t address, std::uint64_t place) {
  std::int32_t distance = 0;
  for (std::size_t end = sizeof distance; end <= code.size(); ++end) {
    std::memcpy(&distance, code.data() + end - sizeof distance, sizeof distance);
    if (address + end + static_cast<std::uint64_t>(distance) == place) return true;
  }
  return false;
}

bool begins_with_landing_pad(std::string_view code) {
  return code.starts_with("\xf3\x0f\x1e\xfa");  // endbr64
}

// Returns whether a call or jump in the code goes to one of the addresses.
bool calls_one_of(std::string_view code, std::uint64_t address,
                  const std::set<std::uint64_t>& targets) {
  constexpr std::size_t kSize = 5;
  for (std::size_t at = 0; at + kSize <= code.size(); ++at) {
    const auto operation = static_cast<unsigned char>(code[at]);
    if (operation != 0xe8 && operation != 0xe9) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, code.data() + at + 1, sizeof distance);
    if (targets.contains(address + at + kSize + static_cast<std::uint64_t>(distance))) return true;
  }
  return false;
}

class Findings {
 public:
  Findings(const ElfFile& file, Linked linked) : file_(file), linked_(linked) {}

  std::vector<std::string> take() {
    look_at_layout();
    look_at_segments();
    look_at_loading();
    look_at_code();
    return std::move(found_);
  }

 private:
  void expect(bool is_right, std::string_view weakness) {
    if (!is_right) found_.emplace_back(weakness);
  }

  void look_at_layout() {
    const bool is_program = linked_ != Linked::kLibrary;
    expect(file_.header.e_type == ET_DYN, "it is loaded at an address that is known");
    expect(!is_program || file_.has_flag(DT_FLAGS_1, DF_1_PIE),
           "it is not a position-independent program");
    expect(!file_.dynamic.contains(DT_TEXTREL) && !file_.has_flag(DT_FLAGS, DF_TEXTREL),
           "its code is written to when it is loaded");
    if (linked_ != Linked::kStaticProgram && linked_ != Linked::kBareProgram) return;
    expect(!file_.has_segment(PT_INTERP) && !file_.dynamic.contains(DT_NEEDED),
           "it needs a loader or a library of the host");
  }

  void look_at_segments() {
    for (const Elf64_Phdr& segment : file_.segments) {
      const bool is_both = (segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0;
      expect(segment.p_type != PT_LOAD || !is_both, "a segment can be written and executed");
      expect(segment.p_type != PT_GNU_STACK || (segment.p_flags & PF_X) == 0,
             "its stack can be executed");
    }
    expect(file_.has_segment(PT_GNU_STACK), "it does not say that its stack is only data");
  }

  void look_at_loading() {
    expect(file_.has_segment(PT_GNU_RELRO), "its relocated tables stay writable");
    expect(file_.has_flag(DT_FLAGS, DF_BIND_NOW) || file_.has_flag(DT_FLAGS_1, DF_1_NOW),
           "functions are bound late, so their table stays writable");
    expect(!file_.dynamic.contains(DT_RPATH) && !file_.dynamic.contains(DT_RUNPATH),
           "it looks for libraries in folders of its own");
  }

  void look_at_code() {
    std::set<std::uint64_t> checked_calls;
    bool asks_library = false;  // in a program with a loader for a checked function
    bool knows_guard = false;
    std::uint64_t guard = 0;  // where it is a variable
    for (const ElfSymbol& symbol : file_.symbols) {
      if (symbol.name.starts_with("__stack_chk_fail")) knows_guard = true;
      if (symbol.name == "__stack_chk_guard" && linked_ == Linked::kBareProgram) {
        guard = symbol.address;
      }
      if (!is_checked_call(symbol.name)) continue;
      if (symbol.is_defined) checked_calls.insert(symbol.address);
      if (!symbol.is_defined) asks_library = true;
    }
    expect(knows_guard, "no function ends at __stack_chk_fail");
    if (file_.header.e_machine != EM_X86_64) return;  // whose code these lines read
    bool guards = false;
    bool calls_checked = asks_library;
    bool is_seen = false;
    bool all_land = true;
    for (const ElfSymbol& symbol : file_.symbols) {
      if (!is_ours(symbol)) continue;
      const std::string_view code = file_.at(symbol.address, symbol.size);
      guards = guards || (guard != 0 ? refers_to(code, symbol.address, guard) : reads_guard(code));
      is_seen = true;
      all_land = all_land && (!is_known_outside(symbol.name) || begins_with_landing_pad(code));
      calls_checked = calls_checked || calls_one_of(code, symbol.address, checked_calls);
    }
    expect(guards, "no function of ours checks its stack");
    expect(is_seen, "it has no symbols to find our functions by");
    expect(all_land, "a function of ours does not begin with a landing pad");
    expect(calls_checked || linked_ == Linked::kBareProgram,
           "no function of ours calls a checked function of the C library");
  }

  const ElfFile& file_;
  Linked linked_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> weaknesses(const ElfFile& file, Linked linked) {
  return Findings(file, linked).take();
}

}  // namespace gpu_platform::hardening
