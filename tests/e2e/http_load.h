#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// A load generator for the daemon's socket or for its listener: each client sends a request, waits
// for the whole answer and sends the next one. One thread, so that what it costs is easy to state.
// What cannot be done (no connection, a connection that the daemon closes) ends the program.

namespace gpu_platform::e2e {

struct LoadOptions {
  std::string socket;
  std::size_t clients = 1;
  std::size_t requests = 1000;  // in all
  std::uint16_t tls_port = 0;   // not 0: over TLS to this port of 127.0.0.1, with any server
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

// Connections that stay open. `requests` of the options has no meaning.
class Crowd {
 public:
  explicit Crowd(const LoadOptions& options);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  // Asks on each connection, one after the other.
  LoadResult ask_all(const std::string& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Opens a stream of server-sent events on each of `clients` connections and gives `take` each event
// as it comes, until `is_over`.
void follow(const LoadOptions& options, const std::function<std::string(std::size_t)>& request,
            const std::function<void(const std::string& event)>& take,
            const std::atomic<bool>& is_over);

std::string post(const std::string& path, const std::string& body);
std::string get(const std::string& path);

// The p-th percentile (0-100) of values.
double percentile(std::vector<double> values, double p);

}  // namespace gpu_platform::e2e
