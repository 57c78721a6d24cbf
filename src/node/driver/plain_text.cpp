#include "node/driver/plain_text.h"

namespace gpu_platform::node {

std::string plain_line(std::string_view text, std::size_t max) {
  std::string line;
  for (const char c : text) {
    if (line.size() >= max) break;
    if (c == '\n') {
      if (!line.empty() && !line.ends_with(' ')) line += line.ends_with(':') ? " " : "; ";
    } else if (c == ' ') {
      if (!line.empty() && !line.ends_with(' ')) line += c;
    } else if (c != '\r') {
      line += c < ' ' || c > '~' ? '?' : c;
    }
  }
  while (line.ends_with(' ') || line.ends_with(';')) line.pop_back();
  return line;
}

}  // namespace gpu_platform::node
