#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/gpu_metrics.h"
#include "model/host_metrics.h"
#include "node/probe/acceptance/answers.h"
#include "node/probe/acceptance/cuda_work.h"
#include "node/probe/acceptance/gpu_report.h"

// gpu-acceptance report [--library PATH] [--nvidia-smi PATH] [--cuda PATH]   readings as JSON
//                work --seconds N [--rounds N] [--memory-mib N] [--cuda PATH]   keeps a GPU busy
//                launches ...            as work; writes when each launch ended, in us
//                fault [--cuda PATH]     makes an error of a program on a GPU
//                gpus [--cuda PATH]      the UUIDs of the GPUs that CUDA shows
//                structs                 sizes as JSON
//                metrics                 the names of all metrics of GPUs and hosts, one in a line
//                value POINTER <JSON     the value there; exit 1 if there is none
//                turnaround <JSON        how long GPUs were free between the jobs of 'jobs list'
//                shares ROUND_MS MAX_ROUNDS FILE...   rounds, launches a second, share of each work
//                mask <JSON              results without serial numbers and whole UUIDs
//                page RESULTS.json       a page for people
// The program of scripts/gpu_acceptance. Changes no setting of a GPU.

namespace {

namespace node = gpu_platform::node;

using Options = std::map<std::string, std::string>;

// A fault that CUDA reported, as `fault` ends with it: no other of its ends has this code.
constexpr int kFaultSeen = 70;

std::string value_of(const Options& options, const char* name, const char* otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}

std::string cuda_of(const Options& options) {
  return value_of(options, "--cuda", "libcuda.so.1");
}

std::optional<int> number_in(const std::string& text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int> number_of(const Options& options, const char* name, const char* otherwise) {
  return number_in(value_of(options, name, otherwise));
}

int failure(const gpu_platform::base::Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

int report(const Options& options) {
  const auto json =
      node::make_gpu_report({value_of(options, "--library", "libnvidia-ml.so.1"),
                             value_of(options, "--nvidia-smi", ""), cuda_of(options)});
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return json.contains("problem") ? 1 : 0;
}

int work(const Options& options, bool tells_launches) {
  const auto seconds = number_of(options, "--seconds", "");
  const auto memory = number_of(options, "--memory-mib", "0");
  const auto rounds = number_of(options, "--rounds", "20000");
  if (!seconds || *seconds < 1 || *seconds > 600) {
    fmt::print(stderr, "work --seconds 1..600\n");
    return 2;
  }
  if (!memory || *memory < 0 || *memory > 1'000'000) {
    fmt::print(stderr, "work --memory-mib 0..1000000\n");
    return 2;
  }
  if (!rounds || *rounds < 1 || *rounds > 1'000'000) {
    fmt::print(stderr, "work --rounds 1..1000000\n");
    return 2;
  }
  const auto done =
      node::do_cuda_work({cuda_of(options), gpu_platform::base::seconds(*seconds),
                          static_cast<std::uint32_t>(*rounds), gpu_platform::base::kMiB * *memory});
  if (!done) return failure(done.error());
  for (const std::int64_t at : tells_launches ? done->ended_us : std::vector<std::int64_t>()) {
    fmt::print("{}\n", at);
  }
  fmt::print("pid {} on {}: {} launches, {} results checked, {:.1f} launches a second\n", getpid(),
             done->device, done->launches, done->checked, done->launches_per_second);
  return 0;
}

int fault(const Options& options) {
  const auto error = node::do_cuda_fault(cuda_of(options));
  if (!error) return failure(error.error());
  fmt::print("a write to an address that is not mapped ended with {} {}\n", error->code,
             error->name);
  return kFaultSeen;
}

int gpus(const Options& options) {
  const auto uuids = node::cuda_gpus(cuda_of(options));
  if (!uuids) return failure(uuids.error());
  for (const std::string& uuid : *uuids) fmt::print("{}\n", uuid);
  return 0;
}

int metrics() {
  const auto show = [](const auto& row) { fmt::print("{}\n", row.name); };
  gpu_platform::model::for_each_gpu_metric(show);
  gpu_platform::model::for_each_host_metric(show);
  return 0;
}

// What standard input holds.
template <class Json>
Json input() {
  return Json::parse(std::cin, nullptr, false);
}

int value(const std::string& pointer) {
  const auto found = node::value_at(input<nlohmann::json>(), pointer);
  if (found) fmt::print("{}\n", *found);
  return found ? 0 : 1;
}

int turnaround() {
  const auto times = node::turnarounds_ms(input<nlohmann::json>());
  if (times.empty()) return 1;
  fmt::print("{} times, p50 {} ms, p99 {} ms\n", times.size(), node::percentile(times, 50),
             node::percentile(times, 99));
  return 0;
}

// Compares works by what they have written as `launches`: "10 199.5 0.7501 0.2499".
int shares(const std::vector<std::string>& words) {
  const auto round_ms = number_in(words[1]);
  const auto max_rounds = number_in(words[2]);
  if (!round_ms || *round_ms < 1 || !max_rounds || *max_rounds < 1) {
    fmt::print(stderr, "shares ROUND_MS MAX_ROUNDS FILE...\n");
    return 2;
  }
  std::vector<std::vector<std::int64_t>> works;
  for (std::size_t i = 3; i < words.size(); ++i) {
    std::ifstream in(words[i]);
    works.push_back(node::launch_times({std::istreambuf_iterator<char>(in), {}}));
  }
  const auto found = node::launch_shares(works, {std::int64_t{*round_ms} * 1000, *max_rounds});
  if (!found) return 1;
  fmt::print("{} {:.1f}", found->rounds, found->per_second);
  for (const double share : found->of_each) fmt::print(" {:.4f}", share);
  fmt::print("\n");
  return 0;
}

int mask() {
  const auto masked = node::mask_identities(input<nlohmann::ordered_json>());
  if (!masked.is_object()) return 1;
  fmt::print("{}\n", masked.dump(1));
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
  if (verb == "value" && words.size() == 2) return value(words[1]);
  if (verb == "turnaround" && words.size() == 1) return turnaround();
  if (verb == "shares" && words.size() >= 4) return shares(words);
  if (verb == "mask" && words.size() == 1) return mask();
  if (verb == "metrics" && words.size() == 1) return metrics();
  Options options;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) options[words[i]] = words[i + 1];
  if (verb == "report" && words.size() % 2 == 1) return report(options);
  if (verb == "work" && words.size() % 2 == 1) return work(options, false);
  if (verb == "launches" && words.size() % 2 == 1) return work(options, true);
  if (verb == "fault" && words.size() % 2 == 1) return fault(options);
  if (verb == "gpus" && words.size() % 2 == 1) return gpus(options);
  if (verb == "structs" && words.size() == 1) {
    fmt::print("{}\n", node::struct_sizes().dump());
    return 0;
  }
  std::fputs(
      "usage: gpu-acceptance report [--library PATH] [--nvidia-smi PATH] [--cuda PATH]\n"
      "       gpu-acceptance work --seconds N [--rounds N] [--memory-mib N] [--cuda PATH]\n"
      "       gpu-acceptance launches ...   (as work)\n"
      "       gpu-acceptance fault|gpus [--cuda PATH]\n"
      "       gpu-acceptance structs | metrics\n"
      "       gpu-acceptance shares ROUND_MS MAX_ROUNDS FILE...\n"
      "       gpu-acceptance value POINTER | turnaround | mask   (JSON on standard input)\n"
      "       gpu-acceptance page RESULTS.json\n",
      stderr);
  return 2;
}
