#include "node/limits/cpu_binding.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "node/raw_call.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxNumber = 8191;  // the kernel's own limit of CPUs
constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > kMaxNumber) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

void add(Bits& bits, std::size_t number) {
  if (bits.size() <= number / kWordBits) bits.resize(number / kWordBits + 1);
  bits[number / kWordBits] |= 1UL << (number % kWordBits);
}

}  // namespace

std::optional<Bits> parse_number_list(std::string_view text) {
  Bits bits;
  while (true) {
    const auto first = take_number(text);
    if (!first) return std::nullopt;
    std::size_t last = *first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      const auto end = take_number(text);
      if (!end || *end < *first) return std::nullopt;
      last = *end;
    }
    for (std::size_t number = *first; number <= last; ++number) add(bits, number);
    if (text.empty()) return bits;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

std::string format_number_list(const Bits& bits) {
  const auto has = [&](std::size_t number) {
    return (bits[number / kWordBits] >> (number % kWordBits) & 1) != 0;
  };
  std::string text;
  const std::size_t end = bits.size() * kWordBits;
  for (std::size_t first = 0; first < end; ++first) {
    if (!has(first)) continue;
    std::size_t last = first;
    while (last + 1 < end && has(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
    first = last;
  }
  return text;
}

Bits common_numbers(const Bits& a, const Bits& b) {
  Bits common(std::min(a.size(), b.size()));
  for (std::size_t i = 0; i < common.size(); ++i) common[i] = a[i] & b[i];
  return common;
}

void bind_self(const CpuBinding& binding) {
  if (!binding.cpus.empty()) {
    raw_call(SYS_sched_setaffinity, 0, binding.cpus.size() * sizeof(unsigned long),
             binding.cpus.data());
  }
  if (!binding.nodes.empty()) {
    // The kernel counts one bit more than it reads. Several preferred nodes need Linux 5.15.
    raw_call(SYS_set_mempolicy, MPOL_PREFERRED_MANY, binding.nodes.data(),
             binding.nodes.size() * kWordBits + 1);
  }
}

}  // namespace gpu_platform::node
