#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bin/core_part.h"
#include "bin/engine_part.h"
#include "bin/late_sink.h"
#include "bin/workload_queue.h"
#include "config/configuration.h"
#include "execution/kubernetes/exporter/exporter_reader.h"
#include "execution/kubernetes/kubernetes_engine.h"
#include "host/user_directory.h"
#include "monitoring/exported_readings.h"
#include "telemetry/frame.h"

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
  // Has frames made of all readings. To be called before start(); the listener outlives the part.
  void tell_frames_to(telemetry::FrameListener& frames) { frames_ = &frames; }
  // Submits the workloads of others, and reads the GPUs if the site wants that.
  base::Status start(const config::Configuration& configuration) override;
  void wait_for_nodes(const std::function<bool()>& must_end) override;
  void warn_of_what_is_missing(const config::Configuration& configuration) const override;
  void stop() override;

  bool is_empty() const { return engine_ == nullptr; }

  // The latest reading of a GPU of the cluster; null: there is none. From start() on, any thread.
  std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const;
  // Why there are no readings of a node of the cluster; empty: there are. The same.
  std::string why_no_readings(std::string_view node) const;

 private:
  ClusterPart(CorePart& core, std::shared_ptr<host::UserDirectory> users);
  base::Status start_reading(const config::Configuration& configuration);

  CorePart& core_;
  const std::shared_ptr<host::UserDirectory> users_;
  LateSink observations_;
  std::unique_ptr<WorkloadQueue> workloads_;             // null: the site sets no cluster
  std::unique_ptr<execution::KubernetesEngine> engine_;  // null: the site sets no cluster
  bool are_nodes_known_ = false;
  telemetry::FrameListener* frames_ = nullptr;              // null: nothing is read
  std::unique_ptr<monitoring::ExportedReadings> readings_;  // null: the same
  std::unique_ptr<execution::ExporterReader> reader_;       // null: the same
};

}  // namespace gpu_platform::bin
