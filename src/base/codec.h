#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// The byte format shared by journal, snapshots and node protocol: little-endian base-128 varints,
// zig-zag for signed numbers, length-prefixed strings. No allocation on decode except into the
// caller's strings; a decoder never throws and never reads past its input: check ok() once at the
// end.

namespace gpu_platform::base {

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void u64(std::uint64_t v) {
    if (v < 0x80) return out_.push_back(static_cast<char>(v));
    char bytes[kMaxVarintBytes];
    std::size_t size = 0;
    for (; v >= 0x80; v >>= 7) bytes[size++] = static_cast<char>(v | 0x80);
    bytes[size++] = static_cast<char>(v);
    out_.append(bytes, size);
  }
  void i64(std::int64_t v) {
    u64((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void boolean(bool v) { out_.push_back(v ? 1 : 0); }
  void text(std::string_view v) {
    u64(v.size());
    out_.append(v);
  }

 private:
  static constexpr std::size_t kMaxVarintBytes = 10;

  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view in) : in_(in) {}

  std::uint64_t u64() {
    std::uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) return reject();
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      if (shift == 63 && byte > 1) return reject();
      result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return result;
    }
    return reject();
  }
  std::int64_t i64() {
    const std::uint64_t v = u64();
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
  }
  bool boolean() {
    const std::uint64_t v = u64();
    if (v > 1) reject();
    return v == 1;
  }
  // A view into the input, valid as long as the input is.
  std::string_view text() {
    const std::uint64_t size = u64();
    if (size > in_.size()) {
      reject();
      return {};
    }
    const std::string_view result = in_.substr(0, size);
    in_.remove_prefix(size);
    return result;
  }
  // Bytes after a length of four little-endian bytes (a length that the writer fills in
  // afterwards).
  std::string_view fixed_length_text() {
    std::uint32_t size = 0;
    if (in_.size() < sizeof size) {
      reject();
      return {};
    }
    std::memcpy(&size, in_.data(), sizeof size);
    in_.remove_prefix(sizeof size);
    if (size > in_.size()) {
      reject();
      return {};
    }
    const std::string_view result = in_.substr(0, size);
    in_.remove_prefix(size);
    return result;
  }
  // A count of elements that each take at least one byte: rejects counts no input of this size can
  // hold, so that a damaged length never causes a huge allocation.
  std::size_t count() {
    const std::uint64_t n = u64();
    if (n > in_.size()) {
      reject();
      return 0;
    }
    return static_cast<std::size_t>(n);
  }

  bool ok() const { return ok_; }
  bool at_end() const { return in_.empty(); }
  std::uint64_t reject() {
    ok_ = false;
    in_ = {};
    return 0;
  }

 private:
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace gpu_platform::base
