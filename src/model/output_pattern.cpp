#include "model/output_pattern.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace gpu_platform::model {

namespace {

constexpr std::string_view kOfArrays = "aA";

std::optional<std::string> expanded(char letter, const OutputNames& names) {
  switch (letter) {
    case 'j':
      return fmt::format("{}", names.job.value);
    case 'x':
      return std::string(names.name);
    case 'u':
      return std::string(names.user);
    case 'N':
      return std::string(names.node);
    case '%':
      return "%";
    case 'A':
      if (names.array_id.valid()) return fmt::format("{}", names.array_id.value);
      return std::nullopt;
    case 'a':
      if (names.array_id.valid()) return fmt::format("{}", names.array_index);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

base::Status check_output_pattern(std::string_view pattern, std::string_view field, PatternOf of) {
  const OutputNames names{.array_id = JobId(of == PatternOf::kArray ? 1 : 0)};
  for (std::size_t at = pattern.find('%'); at != std::string_view::npos;
       at = pattern.find('%', at + 2)) {
    const std::string_view sequence = pattern.substr(at, 2);
    if (sequence.size() == 2 && expanded(sequence[1], names)) continue;
    const bool of_arrays = sequence.size() == 2 && kOfArrays.contains(sequence[1]);
    return base::invalid(
        std::string(field),
        fmt::format(
            "{}: '{}' {}; there are %j (job id), %x (name), %u (user), %N (node), %% and, of "
            "arrays, %A (array id) and %a (index)",
            field, sequence, of_arrays ? "is only for members of job arrays" : "is not known"));
  }
  return {};
}

bool names_job(std::string_view pattern) {
  return expand_output(pattern, {.name = "a"}) != expand_output(pattern, {.name = "b"});
}

std::string expand_output(std::string_view pattern, const OutputNames& names) {
  std::string path;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool is_sequence = pattern[at] == '%' && at + 1 < pattern.size();
    auto text = is_sequence ? expanded(pattern[at + 1], names) : std::nullopt;
    if (!text) {
      path.push_back(pattern[at]);
      continue;
    }
    std::ranges::replace(*text, '/', '_');
    path += *text;
    ++at;
  }
  return path;
}

}  // namespace gpu_platform::model
