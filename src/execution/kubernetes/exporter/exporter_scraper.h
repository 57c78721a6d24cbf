#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "execution/kubernetes/exporter/exporter_pods.h"
#include "kubernetes/client.h"
#include "kubernetes/reflector.h"
#include "model/gpu_metrics.h"

namespace gpu_platform::execution {

// What the site says of its exporters (config keys engines.kubernetes.exporter.*).
struct ExporterSettings {
  std::string namespace_name = "gpu-operator";  // of their pods
  std::string selector;  // labels of the pods; empty: those of NVIDIA's exporter
  std::uint16_t port = 9400;
  std::string path = "/metrics";
  base::Duration interval = base::seconds(15);  // between two readings of a node
};

// Reads the GPUs of a cluster's nodes from the pages of NVIDIA's dcgm-exporter, each through the
// API server's proxy to the exporter's pod on the node. A page that does not come in ten seconds,
// or is too large for the client, is given up. A node whose exporter fails is asked less often,
// at least every two minutes.
//
// Thread: the client's, but for why_none().
class ExporterScraper {
 public:
  // Takes what was read of the GPUs of a node, by UUID. Returns the number of them that the node
  // has.
  using Take =
      std::function<std::size_t(const std::string& node, std::map<std::string, model::GpuMetrics>)>;

  // The client outlives it. `warn`: that the pods cannot be followed, and that they can be again;
  // may be empty.
  ExporterScraper(kubernetes::Client& client, ExporterSettings settings, Take take,
                  std::function<void(const std::string& line)> warn);
  ~ExporterScraper();
  ExporterScraper(const ExporterScraper&) = delete;
  ExporterScraper& operator=(const ExporterScraper&) = delete;

  // Does what is due. Call after each Client::poll(), with the monotonic time in nanoseconds.
  void advance(std::int64_t now_ns);
  // When advance() has something to do although nothing came; 0: nothing.
  std::int64_t due_ns() const;

  // Why there are no readings of a node; empty: there are. Any thread.
  std::string why_none(std::string_view node) const;

 private:
  struct Target {
    std::string pod;
    kubernetes::RequestId request = 0;  // under way; 0: none
    std::int64_t asked_ns = 0;
    std::int64_t due_ns = 0;     // when it is asked next; while a request is under way: not in due_
    std::uint32_t failures = 0;  // in a row
  };

  kubernetes::FollowHandlers handlers();
  void follow_pods(std::int64_t now_ns);
  void aim(const std::string& node, std::int64_t now_ns);
  void drop(const std::string& node);
  void ask(const std::string& node, std::int64_t now_ns);
  void take_answer(const std::string& node, const kubernetes::Answer& answer);
  std::string read(const std::string& node, const std::string& pod,
                   const kubernetes::Answer& answer) const;
  std::string path_of(const std::string& pod) const;
  void note(const std::string& node, std::optional<std::string> why);

  kubernetes::Client& client_;
  const ExporterSettings settings_;
  const Take take_;
  const std::function<void(const std::string& line)> warn_;
  ExporterPods pods_;
  std::map<std::string, Target> targets_;               // by node; those with a pod that is ready
  std::set<std::pair<std::int64_t, std::string>> due_;  // targets without a request under way

  mutable std::mutex mutex_;
  bool is_listed_ = false;                               // guarded by mutex_
  std::string trouble_;                                  // guarded by mutex_; of the list of pods
  std::map<std::string, std::string, std::less<>> why_;  // guarded by mutex_; by node with a pod

  kubernetes::Reflector reflector_;  // last: its handlers use the others
};

}  // namespace gpu_platform::execution
