#include "kubernetes/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/utf8.h"
#include "os/descriptor.h"

namespace gpu_platform::kubernetes {
namespace {

constexpr std::size_t kMaxFile = std::size_t{4} << 20;

}  // namespace

base::Result<std::string> read_text_file(const std::string& path) {
  // Without O_NONBLOCK a FIFO by that name would hold us up for ever.
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return std::unexpected(base::system_error(path, errno));
  std::string text;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::unexpected(base::system_error(path, errno));
    if (size == 0) return text;
    text.append(buffer, static_cast<std::size_t>(size));
    if (text.size() > kMaxFile) {
      return base::fail(base::ErrorCode::kResourceExhausted,
                        fmt::format("{}: is larger than 4 MiB", path));
    }
  }
}

std::string below(const std::string& folder, const std::string& path) {
  return path.starts_with('/') || folder.empty() ? path : folder + "/" + path;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= limit) return shown + "…";
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    if (c == U'\n' || c == U'\r' || c == U'\t') {
      if (!shown.empty() && shown.back() != ' ') shown.push_back(' ');
    } else if (base::is_harmful(c)) {
      shown.push_back('?');
    } else {
      shown += before.substr(0, before.size() - text.size());
    }
  }
  if (shown.ends_with(' ')) shown.pop_back();
  return shown;
}

}  // namespace gpu_platform::kubernetes
