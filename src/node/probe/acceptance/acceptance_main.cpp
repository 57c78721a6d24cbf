#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "node/probe/acceptance/cuda_work.h"
#include "node/probe/acceptance/gpu_report.h"

// gpu-acceptance report [--library PATH] [--nvidia-smi PATH] [--cuda PATH]   readings as JSON
//                work --seconds N [--cuda PATH]                               keeps a GPU busy
//                structs                                                      sizes as JSON
//                page RESULTS.json                                            a page for people
// The program of scripts/gpu_acceptance. Changes no setting of a GPU.

namespace {

namespace node = gpu_platform::node;

int report(const std::map<std::string, std::string>& options) {
  const auto value = [&](const char* name, const char* otherwise) {
    const auto found = options.find(name);
    return found == options.end() ? std::string(otherwise) : found->second;
  };
  const auto json =
      node::make_gpu_report({value("--library", "libnvidia-ml.so.1"), value("--nvidia-smi", ""),
                             value("--cuda", "libcuda.so.1")});
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return json.contains("problem") ? 1 : 0;
}

int work(const std::map<std::string, std::string>& options) {
  const auto seconds = options.find("--seconds");
  int count = 0;
  if (seconds == options.end() ||
      std::from_chars(seconds->second.data(), seconds->second.data() + seconds->second.size(),
                      count)
              .ec != std::errc{} ||
      count < 1 || count > 600) {
    fmt::print(stderr, "work --seconds 1..600\n");
    return 2;
  }
  const auto cuda = options.find("--cuda");
  const auto done = node::do_cuda_work(cuda == options.end() ? "libcuda.so.1" : cuda->second,
                                       gpu_platform::base::seconds(count));
  if (!done) {
    fmt::print(stderr, "{}\n", done.error().message);
    return 1;
  }
  fmt::print("pid {} on {}: {} launches, {} results checked\n", getpid(), done->device,
             done->launches, done->checked);
  return 0;
}

int page(const std::string& path) {
  std::ifstream in(path);
  const auto results = nlohmann::json::parse(in, nullptr, false);
  if (!results.is_object()) {
    fmt::print(stderr, "{} holds no results\n", path);
    return 1;
  }
  fmt::print("{}", node::results_page(results));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string verb = words.empty() ? "" : words[0];
  if (verb == "page" && words.size() == 2) return page(words[1]);
  std::map<std::string, std::string> options;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) options[words[i]] = words[i + 1];
  if (verb == "report" && words.size() % 2 == 1) return report(options);
  if (verb == "work" && words.size() % 2 == 1) return work(options);
  if (verb == "structs" && words.size() == 1) {
    fmt::print("{}\n", node::struct_sizes().dump());
    return 0;
  }
  std::fputs(
      "usage: gpu-acceptance report [--library PATH] [--nvidia-smi PATH] [--cuda PATH]\n"
      "       gpu-acceptance work --seconds N [--cuda PATH]\n"
      "       gpu-acceptance structs\n"
      "       gpu-acceptance page RESULTS.json\n",
      stderr);
  return 2;
}
