#include "hardware/kernel_log.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

constexpr std::size_t kLongestText = 256;
constexpr std::size_t kMaxRegisters = 7;
constexpr std::size_t kLongestProcessName = 15;  // the kernel's
constexpr std::uint32_t kKernelFacility = 0;     // priorities are below 8

// Takes `prefix` off the text; false where it does not begin so.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <class Number>
bool take_number(std::string_view& text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Takes the text up to `end`, which goes, too; false where it is not there.
bool take_until(std::string_view& text, std::string_view end, std::string_view& taken) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return false;
  taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return true;
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, kLongestText));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return out;
}

// The name is the program's own choice, so it is no part of the driver's words. It may have commas,
// and ends within the kernel's limit.
void skip_process_name(std::string_view& text) {
  const std::size_t end = text.rfind(", ", kLongestProcessName);
  if (end != std::string_view::npos) return text.remove_prefix(end + 2);
  text = {};
}

// "pid=1234, name=python3, " or "pid='<unknown>', name=<unknown>, ", where the driver knows one.
void take_process(std::string_view& text, KernelLine& line) {
  if (!take(text, "pid=")) return;
  take(text, "'");
  if (!take_number(text, line.pid)) line.pid = 0;
  std::string_view rest;
  if (!take_until(text, ", ", rest)) {
    text = {};
    return;
  }
  if (take(text, "name=")) skip_process_name(text);
}

bool has_registers(std::uint32_t xid) {
  return xid == 74 || (xid >= 144 && xid <= 150);
}

// Those in the last brackets of "... on link 6(0x10000, 0x0)" and "... Link 00 (0x1 0x2)".
std::vector<std::uint32_t> registers_in(std::string_view text) {
  std::vector<std::uint32_t> registers;
  const std::size_t bracket = text.rfind('(');
  if (bracket == std::string_view::npos) return registers;
  text.remove_prefix(bracket);
  std::string_view before;
  while (registers.size() < kMaxRegisters && take_until(text, "0x", before)) {
    std::uint32_t value = 0;
    if (take_number(text, value, 16)) registers.push_back(value);
  }
  return registers;
}

// "PCI:0000:65:00" or "0000:65:00", with " GPU-I:05" behind it on a GPU with MIG.
bool read_place(std::string_view words, KernelLine& line) {
  const std::size_t blank = words.find(' ');
  line.place = pci_place_of(words.substr(0, blank));
  if (line.place.empty()) return false;
  if (blank == std::string_view::npos) return true;
  words.remove_prefix(blank + 1);
  std::uint32_t instance = 0;
  if (take(words, "GPU-I:") && take_number(words, instance)) line.gpu_instance = instance;
  return true;
}

// What follows "NVRM: Xid (" or "SXid (".
bool read_numbered(std::string_view text, KernelLine& line) {
  std::string_view place;
  if (!take_until(text, "): ", place) || !read_place(place, line)) return false;
  if (!take_number(text, line.code)) return false;
  take(text, ", ");
  take_process(text, line);
  line.text = shown(text);
  return true;
}

std::optional<KernelLine> read_xid(std::string_view text) {
  KernelLine line;
  if (!read_numbered(text, line)) return std::nullopt;
  if (has_registers(line.code)) line.registers = registers_in(line.text);
  return line;
}

std::optional<KernelLine> read_switch_error(std::string_view text) {
  std::string_view device;
  if (!take_until(text, ": ", device) || !take(text, "SXid (")) return std::nullopt;
  KernelLine line;
  line.kind = KernelLineKind::kSwitchError;
  if (!read_numbered(text, line)) return std::nullopt;
  line.is_fatal = line.text.starts_with("Fatal");
  return line;
}

// "GPU 0000:91:00.0: GPU has fallen off the bus." and "GPU at PCI:0000:91:00 has fallen off the
// bus".
std::optional<KernelLine> read_off_the_bus(std::string_view text) {
  if (text.find("fallen off the bus") == std::string_view::npos) return std::nullopt;
  take(text, "at ");
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view address = text.substr(0, end);
  if (address.ends_with(':')) address.remove_suffix(1);
  KernelLine line;
  line.kind = KernelLineKind::kOffTheBus;
  line.place = pci_place_of(address);
  if (line.place.empty()) return std::nullopt;
  line.code = 79;
  line.text = "GPU has fallen off the bus";
  return line;
}

// "nvidia 0000:65:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, ...". Lines of the
// ports above it tell of the same error.
std::optional<KernelLine> read_pcie_error(std::string_view text) {
  std::string_view place;
  if (!take_until(text, ": ", place)) return std::nullopt;
  take(text, "AER: ");
  if (!text.starts_with("PCIe Bus Error: severity=")) return std::nullopt;
  KernelLine line;
  line.kind = KernelLineKind::kPcieError;
  line.place = pci_place_of(place);
  if (line.place.empty()) return std::nullopt;
  line.is_fatal = text.find("(Fatal)") != std::string_view::npos;
  line.text = shown(text);
  return line;
}

// Words that say which unit or which action it is.
bool has_telling_text(const KernelLine& line) {
  return line.kind != KernelLineKind::kXid || line.code == 13 || line.code == 74 ||
         line.code == 154;
}

}  // namespace

std::optional<KernelRecord> read_kernel_record(std::string_view record) {
  KernelRecord out;
  std::uint32_t priority = 0;
  std::string_view rest;
  if (!take_number(record, priority) || !take(record, ",")) return std::nullopt;
  if (!take_number(record, out.sequence)) return std::nullopt;
  if (!take(record, ",") || !take_until(record, ";", rest)) return std::nullopt;
  out.is_of_kernel = priority / 8 == kKernelFacility;
  out.text = record.substr(0, record.find('\n'));
  return out;
}

std::string pci_place_of(std::string_view address) {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;
  take(address, "PCI:");
  const bool is_read = take_number(address, domain, 16) && take(address, ":") &&
                       take_number(address, bus, 16) && take(address, ":") &&
                       take_number(address, device, 16);
  if (!is_read || bus > 0xff || device > 0x1f) return {};
  if (take(address, ".") && !take_number(address, function, 16)) return {};
  if (!address.empty()) return {};
  return fmt::format("{:08x}:{:02x}:{:02x}", domain, bus, device);
}

std::optional<KernelLine> read_kernel_line(std::string_view text) {
  if (take(text, "NVRM: ")) {
    if (take(text, "Xid (")) return read_xid(text);
    if (take(text, "GPU ")) return read_off_the_bus(text);
    return std::nullopt;
  }
  if (take(text, "nvidia-nvswitch")) return read_switch_error(text);
  if (take(text, "nvidia ")) return read_pcie_error(text);
  return std::nullopt;
}

bool join(KernelLine& before, const KernelLine& line) {
  const bool is_same = before.kind == line.kind && before.place == line.place &&
                       before.code == line.code && before.is_fatal == line.is_fatal &&
                       before.gpu_instance == line.gpu_instance &&
                       before.registers == line.registers;
  if (!is_same || (has_telling_text(before) && before.text != line.text)) return false;
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  before.count = line.count > kMost - before.count ? kMost : before.count + line.count;
  return true;
}

}  // namespace gpu_platform::hardware
