#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// What gRPC says over HTTP/2 (gRPC's PROTOCOL-HTTP2.md): messages with their lengths, statuses and
// times. No input or output of its own.

namespace gpu_platform::listener {

enum class GrpcCode {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// The end of a call.
struct GrpcStatus {
  GrpcCode code = GrpcCode::kOk;
  std::string message;
  std::string field;       // of the request, that is at fault; empty: none
  std::string request_id;  // the server's name for the request; empty: none

  friend bool operator==(const GrpcStatus&, const GrpcStatus&) = default;
};

GrpcStatus status_of(const base::Error& error);

// A text as the trailer "grpc-message" has it: bytes that are not printable ASCII are escaped.
std::string percent_encoded(std::string_view text);

// Reads "grpc-timeout": up to eight digits and a unit, of hours to nanoseconds. Less than a
// millisecond is one, and more than a year is a year.
std::optional<std::chrono::milliseconds> parse_timeout(std::string_view text);

// Appends the message with its prefix.
void append_framed(std::string& out, std::string_view message);

// Takes the messages of one call out of its bytes, however these are cut.
class GrpcMessageReader {
 public:
  explicit GrpcMessageReader(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  // Nothing more is taken after an error: a message is too large, or compressed.
  base::Status put(std::string_view bytes);
  std::optional<std::string> next();
  // No message has begun.
  bool is_between() const { return waiting_.empty(); }
  std::size_t bytes() const { return waiting_.size(); }

 private:
  const std::size_t max_bytes_;
  std::string waiting_;
  std::deque<std::string> ready_;
};

}  // namespace gpu_platform::listener
