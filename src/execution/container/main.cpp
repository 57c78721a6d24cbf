#include <fcntl.h>
#include <stdio.h>

#include <charconv>
#include <string>
#include <string_view>

#include "execution/container/container_run.h"

// gpu-platform-container: speaks to the container engine for one job with an image. Its supervisor
// starts it; descriptors 3 and 4 are the request and the report.

namespace {

using gpu_platform::execution::ContainerRunOptions;

constexpr int kUsage = 2;
constexpr std::string_view kHelp =
    "usage: gpu-platform-container run --rules FILE --cgroup PATH --attempt JOB-N\n"
    "                                  --uid N --gid N --groups N,N\n"
    "Speaks to the container engine for a job. Do not run it by hand: the node part does.\n";

bool parse_number(std::string_view text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_groups(std::string_view text, std::vector<std::string>& groups) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    std::uint32_t number = 0;
    if (!parse_number(word, number)) return false;
    groups.emplace_back(word);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return true;
}

bool parse_option(std::string_view name, std::string_view value, ContainerRunOptions& options) {
  if (name == "--rules") options.rules = value;
  if (name == "--cgroup") options.cgroup = value;
  if (name == "--attempt") options.attempt = value;
  if (name == "--rules" || name == "--cgroup" || name == "--attempt") return !value.empty();
  if (name == "--uid") return parse_number(value, options.uid);
  if (name == "--gid") return parse_number(value, options.gid);
  return name == "--groups" && parse_groups(value, options.groups);
}

}  // namespace

int main(int argc, char** argv) {
  ContainerRunOptions options;
  bool is_right = argc > 1 && argc % 2 == 0 && std::string_view(argv[1]) == "run";
  for (int i = 2; is_right && i + 1 < argc; i += 2) {
    is_right = parse_option(argv[i], argv[i + 1], options);
  }
  is_right = is_right && !options.rules.empty() && options.cgroup.starts_with('/') &&
             !options.attempt.empty();
  if (!is_right) {
    fputs(kHelp.data(), stderr);
    return kUsage;
  }
  // The engine is not to get them, nor is anything that is started here.
  fcntl(options.request_fd, F_SETFD, FD_CLOEXEC);
  fcntl(options.report_fd, F_SETFD, FD_CLOEXEC);
  return gpu_platform::execution::run_container(options);
}
