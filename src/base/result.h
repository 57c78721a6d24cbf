#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

// Operating failures are values. Three things are never mixed: a bug (CHECK), an operating failure
// (Result) and an ordinary outcome such as "no capacity" (a value of its own, never an Error).

namespace gpu_platform::base {

// The door (api/convert) maps each code to one HTTP status and one exit code; nothing else does.
enum class ErrorCode {
  kInvalidArgument,     // the request is malformed or a value is out of range: field names it
  kNotFound,            // no such job, node, GPU
  kPermissionDenied,    // the caller may not do or see this
  kUnauthenticated,     // no valid credential
  kFailedPrecondition,  // refused by policy or by the state things are in
  kResourceExhausted,   // full: queue, disk, request too large
  kAlreadyExists,       // in use, or a request id used for another request
  kUnavailable,         // try again: daemon stopping, driver or engine not answering
  kDataLoss,            // stored data is damaged
  kInternal,            // an unexpected failure of the system below us
};

// Stable upper-case name, as in "INVALID_ARGUMENT".
std::string_view to_string(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // a sentence that says what is wrong and what is allowed
  std::string field;    // dotted path of the offending input field, empty when no field is at fault

  friend bool operator==(const Error&, const Error&) = default;
};

// std::expected that the compiler does not let a caller ignore.
template <class T = void>
struct [[nodiscard]] Result : std::expected<T, Error> {
  using std::expected<T, Error>::expected;
};

using Status = Result<void>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message, std::string field = {}) {
  return std::unexpected(Error{code, std::move(message), std::move(field)});
}

inline std::unexpected<Error> invalid(std::string field, std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), std::move(field));
}

// The message of a failed system call: "open /x: No such file or directory".
Error system_error(std::string_view what, int error_number);

}  // namespace gpu_platform::base

#define GP_CONCAT_INNER(a, b) a##b
#define GP_CONCAT(a, b) GP_CONCAT_INNER(a, b)

// Returns the error of `expression` from the enclosing function, if it has one.
#define TRY(expression)                                           \
  do {                                                            \
    if (auto try_result = (expression); !try_result) [[unlikely]] \
      return std::unexpected(std::move(try_result).error());      \
  } while (false)

// TRY_ASSIGN(auto x, f()): declares or assigns x from the value of f(), or returns its error.
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_INNER(GP_CONCAT(try_value_, __LINE__), declaration, expression)
#define TRY_ASSIGN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                             \
  if (!temporary) [[unlikely]]                               \
    return std::unexpected(std::move(temporary).error());    \
  declaration = std::move(*temporary)
