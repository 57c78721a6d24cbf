#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

#include "execution/container/container_cleanup.h"
#include "execution/container/container_exec.h"
#include "execution/container/container_run.h"
#include "node/user_switch.h"

// gpu-platform-container: speaks to the container engine for one job with an image, or for a
// command or a connection beside one. The job's supervisor or a relay starts it; descriptors 3 and
// 4 are the request and what it reports to.

namespace {

using gpu_platform::execution::ContainerEntryOptions;
using gpu_platform::execution::ContainerRunOptions;

constexpr int kUsage = 2;
constexpr std::string_view kHelp =
    "usage: gpu-platform-container run|exec|connect --rules FILE --cgroup PATH | --cluster NAME\n"
    "                                  --attempt JOB-N --uid N --gid N --groups N,N [--name NAME]\n"
    "                                  [--root DIR] [--columns N --rows N] [--port N]\n"
    "       gpu-platform-container clean --rules FILE --cgroup PATH | --cluster NAME --root DIR\n"
    "run, exec, connect: use the container engine for a job. clean: removes what attempts "
    "that\n"
    "are over have left with the engine and below /run, and images that the rules do not keep.\n"
    "Do not run them by hand: the node part does.\n";

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

bool parse_small(std::string_view text, std::uint16_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number != 0;
}

bool parse_option(std::string_view name, std::string_view value, ContainerRunOptions& options) {
  if (name == "--rules") options.rules = value;
  if (name == "--cgroup") options.cgroup = value;
  if (name == "--cluster") options.cluster = value;
  if (name == "--attempt") options.attempt = value;
  for (const char* const text : {"--rules", "--cgroup", "--cluster", "--attempt"}) {
    if (name == text) return !value.empty();
  }
  if (name == "--root") {
    options.root = value;
    return value.starts_with('/');
  }
  if (name == "--name") {
    options.name = value;
    return true;
  }
  if (name == "--uid") return parse_number(value, options.uid);
  if (name == "--gid") return parse_number(value, options.gid);
  return name == "--groups" && parse_groups(value, options.groups);
}

bool parse_entry_option(std::string_view name, std::string_view value,
                        ContainerEntryOptions& options) {
  if (name == "--port") return parse_small(value, options.port);
  if (name == "--columns" || name == "--rows") {
    if (!options.terminal) options.terminal.emplace();
    return parse_small(value,
                       name == "--rows" ? options.terminal->rows : options.terminal->columns);
  }
  return parse_option(name, value, options.place);
}

bool is_complete(const ContainerRunOptions& options) {
  const bool has_place = options.cgroup.starts_with('/') != !options.cluster.empty();
  return !options.rules.empty() && has_place && !options.attempt.empty();
}

int run_clean(int argc, char** argv) {
  gpu_platform::execution::ContainerCleanOptions options;
  bool is_right = argc == 8;
  for (int i = 2; is_right && i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--rules") options.rules = argv[i + 1];
    if (name == "--cgroup") options.cgroup = argv[i + 1];
    if (name == "--cluster") options.cluster = argv[i + 1];
    if (name == "--root") options.root = argv[i + 1];
  }
  const bool has_place = options.cgroup.starts_with('/') != !options.cluster.empty();
  is_right = is_right && !options.rules.empty() && has_place && options.root.starts_with('/');
  if (is_right) return gpu_platform::execution::clean_containers(options);
  fputs(kHelp.data(), stderr);
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "clean") return run_clean(argc, argv);
  ContainerEntryOptions entry;
  const ContainerRunOptions& options = entry.place;
  const std::string_view what = argc > 1 ? argv[1] : "";
  // With root's rights it holds more than the job's user, who is not to read it.
  if (geteuid() == 0 && gpu_platform::node::close_to_tracing() != nullptr) return kUsage;
  bool is_right = argc % 2 == 0 && (what == "run" || what == "exec" || what == "connect");
  for (int i = 2; is_right && i + 1 < argc; i += 2) {
    is_right = parse_entry_option(argv[i], argv[i + 1], entry);
  }
  const bool may_be_rootless = what == "run" || options.cluster.empty();
  is_right = is_right && is_complete(options) && may_be_rootless &&
             (what == "connect") == (entry.port != 0);
  if (!is_right) {
    fputs(kHelp.data(), stderr);
    return kUsage;
  }
  // The engine is not to get them, nor is anything that is started here.
  fcntl(options.request_fd, F_SETFD, FD_CLOEXEC);
  fcntl(options.report_fd, F_SETFD, FD_CLOEXEC);
  if (what == "exec") return gpu_platform::execution::run_container_exec(entry);
  if (what == "connect") return gpu_platform::execution::run_container_connect(entry);
  return gpu_platform::execution::run_container(options);
}
