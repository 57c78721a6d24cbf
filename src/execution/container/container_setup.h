#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "execution/container/container_failure.h"
#include "execution/container/container_gpus.h"
#include "execution/container/container_places.h"
#include "execution/container/container_rules.h"
#include "execution/container/container_run.h"
#include "execution/container/create_body.h"
#include "execution/container/engine_calls.h"
#include "execution/container/fetched_images.h"
#include "execution/container/image_fetch.h"
#include "execution/container/long_step.h"
#include "execution/container/mount_stages.h"
#include "execution/container/registry_credentials.h"
#include "execution/container/run_signals.h"
#include "execution/container/start_hold.h"
#include "model/container.h"
#include "node/identity.h"
#include "node/protocol.h"

namespace gpu_platform::execution {

// What is there before a container is made: the rules allow it, the engine answers and fits, the
// GPUs, mounts and the image are found. All of it goes into the plan.
//
// Ownership: refers to what it is given; holds the mounts' stages and the start until it is gone.
// Thread: one. Errors: words for the job's user.
class ContainerSetup {
 public:
  ContainerSetup(const ContainerRunOptions& options, const ContainerRules& rules,
                 const node::LaunchRequest& request, EngineCalls& engine, RunSignals& signals,
                 LongStep step)
      : o_(options),
        rules_(rules),
        request_(request),
        engine_(engine),
        signals_(signals),
        step_(std::move(step)),
        images_(options.root) {}

  ContainerDone<> prepare();
  // Call it once, after prepare().
  ContainerPlan plan();

  // The engine is our own user's, and puts the container into no cgroup of ours.
  bool is_rootless() const { return o_.cgroup.empty(); }
  std::string image() const;     // as it was asked for
  std::string platform() const;  // the same; may be empty
  node::Identity user() const;
  // With root's rights we make them ourselves.
  ContainerDone<std::vector<ContainerPlace>> places() const;
  // The name of the cgroup as the engine knows it; empty: rootless.
  const std::string& engine_cgroup() const { return engine_cgroup_; }
  const ImageOnHost& found_image() const { return image_; }
  const FetchedImages& images() const { return images_; }
  MountStages& stages() { return stages_; }
  StartHold& hold() { return hold_; }  // of a container that is root's
  const StartHold& hold() const { return hold_; }
  const std::vector<std::string>& start() const { return start_; }  // what it is started with
  bool knows_driver() const { return !info_.is_null(); }
  // Returns why an engine with this cgroup driver cannot have jobs.
  static ContainerDone<> check_driver(const std::string& driver);

 private:
  ContainerDone<> check_rules();
  ContainerDone<> find_cgroup();
  ContainerDone<> check_own_engine();
  ContainerDone<> check_engine();
  ContainerDone<> find_gpus();
  ContainerDone<> open_mounts();
  ContainerDone<> open_mps(const std::string& begin);
  ContainerDone<> get_image();
  ContainerDone<> prepare_start();
  RegistryCredentials credentials();
  model::ImagePull pull() const;
  std::string cluster() const;
  void set_gpus(ContainerPlan& plan) const;

  const ContainerRunOptions& o_;
  const ContainerRules& rules_;
  const node::LaunchRequest& request_;
  EngineCalls& engine_;
  RunSignals& signals_;
  const LongStep step_;
  const FetchedImages images_;
  std::string engine_cgroup_;
  std::vector<model::ContainerMount> mounts_;
  std::vector<model::ContainerMount> board_files_;
  MountStages stages_;
  ImageOnHost image_;
  StartHold hold_;
  std::vector<std::string> start_;
  nlohmann::json info_;  // the engine's
  GpuWay gpu_way_ = GpuWay::kNone;
  GpuNodes gpu_nodes_;
};

}  // namespace gpu_platform::execution
