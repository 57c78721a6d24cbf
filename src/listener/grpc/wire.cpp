#include "listener/grpc/wire.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/percent.h"

namespace gpu_platform::listener {

namespace {

constexpr std::int64_t kYearMs = 365LL * 24 * 3'600'000;
constexpr std::size_t kPrefix = 5;  // a flag, and the length in four bytes

GrpcCode code_of(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalidArgument:
      return GrpcCode::kInvalidArgument;
    case base::ErrorCode::kNotFound:
      return GrpcCode::kNotFound;
    case base::ErrorCode::kPermissionDenied:
      return GrpcCode::kPermissionDenied;
    case base::ErrorCode::kUnauthenticated:
      return GrpcCode::kUnauthenticated;
    case base::ErrorCode::kFailedPrecondition:
      return GrpcCode::kFailedPrecondition;
    case base::ErrorCode::kResourceExhausted:
      return GrpcCode::kResourceExhausted;
    case base::ErrorCode::kAlreadyExists:
      return GrpcCode::kAlreadyExists;
    case base::ErrorCode::kUnavailable:
      return GrpcCode::kUnavailable;
    case base::ErrorCode::kDataLoss:
      return GrpcCode::kDataLoss;
    case base::ErrorCode::kInternal:
      return GrpcCode::kInternal;
  }
  return GrpcCode::kUnknown;
}

std::uint32_t length_in(std::string_view prefix) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kPrefix; ++i) {
    length = length << 8 | static_cast<unsigned char>(prefix[i]);
  }
  return length;
}

}  // namespace

GrpcStatus status_of(const base::Error& error) {
  return {code_of(error.code), error.message, error.field, {}};
}

std::string percent_encoded(std::string_view text) {
  return base::percent_encoded(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '%'; });
}

std::optional<std::chrono::milliseconds> parse_timeout(std::string_view text) {
  constexpr std::size_t kMaxDigits = 8;
  struct Unit {
    char name;
    std::int64_t nanoseconds;
  };
  static constexpr std::array<Unit, 6> kUnits = {{{'H', 3'600'000'000'000},
                                                  {'M', 60'000'000'000},
                                                  {'S', 1'000'000'000},
                                                  {'m', 1'000'000},
                                                  {'u', 1'000},
                                                  {'n', 1}}};
  if (text.size() < 2 || text.size() > kMaxDigits + 1) return std::nullopt;
  const auto unit = std::ranges::find(kUnits, text.back(), &Unit::name);
  text.remove_suffix(1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || unit == kUnits.end()) {
    return std::nullopt;
  }
  const std::int64_t per_unit = std::max<std::int64_t>(unit->nanoseconds / 1'000'000, 1);
  const std::int64_t units_per_ms = std::max<std::int64_t>(1'000'000 / unit->nanoseconds, 1);
  const std::int64_t ms = number * per_unit / units_per_ms;
  return std::chrono::milliseconds(std::clamp<std::int64_t>(ms, 1, kYearMs));
}

void append_framed(std::string& out, std::string_view message) {
  out.push_back('\0');
  const auto size = static_cast<std::uint32_t>(message.size());
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
  out += message;
}

base::Status GrpcMessageReader::put(std::string_view bytes) {
  waiting_ += bytes;
  std::size_t at = 0;
  while (waiting_.size() - at >= kPrefix) {
    const std::string_view rest = std::string_view(waiting_).substr(at);
    if (rest.front() != '\0') {
      return base::invalid(
          "request",
          "request: compressed messages are not supported; send grpc-encoding: identity");
    }
    const std::size_t length = length_in(rest);
    if (length > max_bytes_) {
      return base::fail(
          base::ErrorCode::kResourceExhausted,
          fmt::format("request: the message has {} bytes; the limit is {}", length, max_bytes_),
          "request");
    }
    if (rest.size() - kPrefix < length) break;
    ready_.emplace_back(rest.substr(kPrefix, length));
    at += kPrefix + length;
  }
  waiting_.erase(0, at);
  return {};
}

std::optional<std::string> GrpcMessageReader::next() {
  if (ready_.empty()) return std::nullopt;
  std::string message = std::move(ready_.front());
  ready_.pop_front();
  return message;
}

}  // namespace gpu_platform::listener
