#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Numbers of any count of bits one behind the other, the first in the lowest bits of the first
// byte. As base/codec.h, for columns of numbers (series_codec.h).

namespace gpu_platform::telemetry {

constexpr std::uint64_t low_bits(std::uint64_t bits, int count) {
  return count >= 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
}

constexpr std::uint64_t zigzag(std::uint64_t v) {
  return (v << 1) ^ (0 - (v >> 63));
}
constexpr std::uint64_t unzigzag(std::uint64_t v) {
  return (v >> 1) ^ (0 - (v & 1));
}

class BitWriter {
 public:
  explicit BitWriter(std::string& out) : out_(out) {}

  // `bits` has no bit above the lowest `count`, which is at most 64.
  void put(std::uint64_t bits, int count) {
    held_ |= bits << used_;
    if (used_ + count < 64) {
      used_ += count;
      return;
    }
    append(8);
    held_ = used_ == 0 ? 0 : bits >> (64 - used_);
    used_ += count - 64;
  }
  // Small numbers take few bits: 7 and those below the leading one.
  void number(std::uint64_t v) {
    const int width = std::bit_width(v);
    put(static_cast<std::uint64_t>(width), 7);
    if (width > 1) put(low_bits(v, width - 1), width - 1);
  }
  // Appends what is held, up to a whole byte. Call it once, at the end.
  void finish() { append(static_cast<std::size_t>(used_ + 7) / 8); }

 private:
  void append(std::size_t size) {
    char bytes[8];
    std::memcpy(bytes, &held_, sizeof bytes);  // x86-64 and arm64 are both little-endian here
    out_.append(bytes, size);
  }

  std::string& out_;
  std::uint64_t held_ = 0;
  int used_ = 0;
};

// Reads zeros behind the end and never beyond it: check ok() once at the end.
class BitReader {
 public:
  explicit BitReader(std::string_view in) : in_(in) {}

  // The next 57 bits at least.
  std::uint64_t peek() const {
    std::uint64_t word = 0;
    const std::size_t byte = at_ / 8;
    if (byte + sizeof word <= in_.size()) [[likely]] {
      std::memcpy(&word, in_.data() + byte, sizeof word);
    } else if (byte < in_.size()) {
      std::memcpy(&word, in_.data() + byte, in_.size() - byte);
    }
    return word >> (at_ % 8);
  }
  void skip(int count) { at_ += static_cast<std::size_t>(count); }
  std::uint64_t take(int count) {
    constexpr int kHalf = 32;
    if (count <= kHalf) return take_few(count);
    const std::uint64_t low = take_few(kHalf);
    return low | take_few(count - kHalf) << kHalf;
  }
  std::uint64_t number() {
    const int width = static_cast<int>(take(7));
    if (width > 64) reject();
    if (width <= 1 || width > 64) return width == 1 ? 1 : 0;
    return take(width - 1) | std::uint64_t{1} << (width - 1);
  }

  void reject() { is_bad_ = true; }
  bool ok() const { return !is_bad_ && at_ <= in_.size() * 8; }
  // All bytes were read, but for less than a byte that fills the last one.
  bool at_end() const { return ok() && (at_ + 7) / 8 == in_.size(); }

 private:
  std::uint64_t take_few(int count) {
    const std::uint64_t bits = low_bits(peek(), count);
    skip(count);
    return bits;
  }

  std::string_view in_;
  std::size_t at_ = 0;  // in bits
  bool is_bad_ = false;
};

}  // namespace gpu_platform::telemetry
