#include "model/token.h"

#include <algorithm>
#include <string_view>

namespace gpu_platform::model {

bool is_token_name(const std::string& name) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kOthers = "0123456789-_.";
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (name.empty() || name.size() > kLongest || !is_letter(name.front())) return false;
  return std::ranges::all_of(
      name, [&](char c) { return is_letter(c) || kOthers.find(c) != kOthers.npos; });
}

}  // namespace gpu_platform::model
