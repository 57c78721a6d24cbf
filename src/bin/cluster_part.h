#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "bin/core_part.h"
#include "bin/engine_part.h"
#include "bin/late_sink.h"
#include "bin/workload_queue.h"
#include "config/configuration.h"
#include "execution/kubernetes/kubernetes_engine.h"
#include "host/user_directory.h"

namespace gpu_platform::bin {

// The part that knows the site's Kubernetes cluster: the engine of its nodes, and the workloads of
// others in it. If the site names no cluster, it is empty, and each call does nothing.
//
// Ownership: refers to the core, which outlives it. Thread: as CorePart.
class ClusterPart final : public EnginePart {
 public:
  struct Options {
    std::string lease_holder;  // the name by which this process has the lease already; empty: none
    std::shared_ptr<host::UserDirectory> users;
    std::function<void(const base::Error&)> on_fatal;  // another controller has taken the cluster
    std::function<bool()> must_end;                    // the process is to end; may be empty
  };
  static base::Result<std::unique_ptr<ClusterPart>> open(const Options& options,
                                                         const config::Configuration& configuration,
                                                         CorePart& core);
  ~ClusterPart() override;
  ClusterPart(const ClusterPart&) = delete;
  ClusterPart& operator=(const ClusterPart&) = delete;

  void add_engine(EngineTable& engines) override;
  // No driver of ours confirms a release there.
  void connect() override;
  // Submits the workloads of others.
  base::Status start(const config::Configuration& configuration) override;
  void wait_for_nodes(const std::function<bool()>& must_end) override;
  void warn_of_what_is_missing(const config::Configuration& configuration) const override;
  void stop() override;

  bool is_empty() const { return engine_ == nullptr; }

 private:
  explicit ClusterPart(CorePart& core);

  CorePart& core_;
  LateSink observations_;
  std::unique_ptr<WorkloadQueue> workloads_;             // null: the site sets no cluster
  std::unique_ptr<execution::KubernetesEngine> engine_;  // null: the site sets no cluster
  bool are_nodes_known_ = false;
};

}  // namespace gpu_platform::bin
