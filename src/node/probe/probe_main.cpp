#include <fcntl.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "node/probe/probe.h"

// gpu-platform-probe --library PATH --fd N [--nvidia-smi PATH] [--host-description FILE]
//                    [--kernel-log PATH] [--data-folder PATH] [--dcgm PATH]...
//                    [--dcgm-address HOST:PORT] [--interval-ms N]
// Started by the daemon, not by people.

namespace {

template <class Number>
bool parse(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

std::optional<gpu_platform::node::ProbeOptions> parse_arguments(int argc, char** argv) {
  gpu_platform::node::ProbeOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    std::int64_t interval_ms = 0;
    if (name == "--library") {
      options.source.library = value;
    } else if (name == "--nvidia-smi") {
      options.source.nvidia_smi = value;
    } else if (name == "--host-description") {
      options.host_description = value;
    } else if (name == "--kernel-log") {
      options.kernel_log = value;
    } else if (name == "--data-folder") {
      options.data_folder = value;
    } else if (name == "--dcgm") {
      options.dcgm.libraries.emplace_back(value);
    } else if (name == "--dcgm-address") {
      options.dcgm.address = value;
    } else if (name == "--fd" && parse(value, options.fd)) {
      continue;
    } else if (name == "--interval-ms" && parse(value, interval_ms) && interval_ms >= 10 &&
               interval_ms <= 3'600'000) {
      options.interval = gpu_platform::base::milliseconds(interval_ms);
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0 || options.fd < 0 || fcntl(options.fd, F_GETFD) < 0) return std::nullopt;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = parse_arguments(argc, argv);
  if (!options) {
    std::fputs(
        "usage: gpu-platform-probe --library PATH --fd N [--nvidia-smi PATH] "
        "[--host-description FILE] [--kernel-log PATH] [--data-folder PATH] "
        "[--dcgm PATH]... [--dcgm-address HOST:PORT] [--interval-ms 10..3600000]\n"
        "The daemon starts it; N is a socket to the daemon.\n",
        stderr);
    return 2;
  }
  gpu_platform::node::Probe(std::move(*options)).run();
}
