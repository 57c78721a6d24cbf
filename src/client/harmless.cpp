#include "client/harmless.h"

#include "base/utf8.h"

namespace gpu_platform::client {

std::string harmless(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    if (base::is_harmful(c)) {
      shown.push_back('?');
    } else {
      shown.append(before.substr(0, before.size() - text.size()));
    }
  }
  return shown;
}

}  // namespace gpu_platform::client
