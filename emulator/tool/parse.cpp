#include "tool/parse.h"

#include <charconv>
#include <string>

namespace gpu_emulator {
namespace {

std::optional<std::uint32_t> hex(std::string_view text, std::size_t digits) {
  std::uint32_t value = 0;
  if (text.size() != digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<PciAddress> parse_pci(std::string_view text) {
  if (text.size() == 12) {
    // Linux writes four digits of domain, NVML eight.
    const auto domain = hex(text.substr(0, 4), 4);
    if (!domain || text[4] != ':') return std::nullopt;
    text.remove_prefix(5);
    const auto rest = parse_pci("00000000:" + std::string(text));
    if (!rest) return std::nullopt;
    PciAddress address = *rest;
    address.domain = *domain;
    return address;
  }
  if (text.size() != 16 || text[8] != ':' || text[11] != ':' || text.substr(14) != ".0") {
    return std::nullopt;
  }
  const auto domain = hex(text.substr(0, 8), 8);
  const auto bus = hex(text.substr(9, 2), 2);
  const auto device = hex(text.substr(12, 2), 2);
  if (!domain || !bus || !device || *device > 0x1f) return std::nullopt;
  return PciAddress{*domain, *bus, *device, 0, 0};
}

}  // namespace gpu_emulator
