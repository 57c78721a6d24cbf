#include "base/hash.h"

#include <cstring>

namespace gpu_platform::base {

namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* bytes, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, size);  // x86-64 and arm64 are both little-endian here
  return word;
}

}  // namespace

// Multiply-fold over 8-byte words, finished with the length; odd constants from the digits of pi.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  constexpr std::uint64_t kA = 0x243f6a8885a308d3ULL;
  constexpr std::uint64_t kB = 0x13198a2e03707345ULL;
  std::uint64_t state = mix(seed ^ kA, kB);
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) state = mix(state ^ load(p, 8) ^ kA, kB);
  if (left > 0) state = mix(state ^ load(p, left) ^ kA, kB);
  return mix(state ^ bytes.size(), kA);
}

}  // namespace gpu_platform::base
