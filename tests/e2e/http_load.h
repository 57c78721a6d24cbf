#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// A load generator for the daemon's socket: each client sends a request, waits for the whole answer
// and sends the next one. One thread, so that what it costs is easy to state.

namespace gpu_platform::e2e {

struct LoadOptions {
  std::string socket;
  std::size_t clients = 1;
  std::size_t requests = 1000;  // in all
};

struct LoadResult {
  double seconds = 0;
  std::size_t answered = 0;
  std::size_t refused = 0;           // answers that are not 2xx
  std::vector<double> latencies_ms;  // one per answer
  double generator_cpu_seconds = 0;
  std::string first_refusal;
};

// `request` gives the bytes of the n-th request.
LoadResult run_load(const LoadOptions& options,
                    const std::function<std::string(std::size_t)>& request);

std::string post(const std::string& path, const std::string& body);
std::string get(const std::string& path);

// The p-th percentile (0-100) of values.
double percentile(std::vector<double> values, double p);

}  // namespace gpu_platform::e2e
