#include "accounting/numbering.h"

#include "base/hash.h"

namespace gpu_platform::accounting {

namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

Numbering::Numbering() : slots_(kFirstSlots) {}

std::size_t Numbering::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at] != 0) {
    const Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && entry.text == text) break;
    at = (at + 1) & mask;
  }
  return at;
}

bool Numbering::has(std::string_view text) const {
  return slots_[slot_of(text, base::hash64(text))] != 0;
}

std::uint32_t Numbering::number_of(std::string_view text) {
  const std::uint64_t hash = base::hash64(text);
  const std::size_t at = slot_of(text, hash);
  if (slots_[at] != 0) return slots_[at] - 1;
  entries_.push_back({hash, std::string(text)});
  const auto count = static_cast<std::uint32_t>(entries_.size());
  slots_[at] = count;
  if (entries_.size() * 2 > slots_.size()) grow();
  return count - 1;
}

void Numbering::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t number = 0; number < entries_.size(); ++number) {
    std::size_t at = entries_[number].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = number + 1;
  }
}

}  // namespace gpu_platform::accounting
