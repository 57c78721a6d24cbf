#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "execution/attempt_access.h"
#include "execution/engine.h"
#include "execution/environment_source.h"
#include "execution/process/job_request.h"
#include "execution/process/launcher_link.h"
#include "host/user_directory.h"
#include "model/channel.h"
#include "node/protocol.h"
#include "node/site_hooks.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

struct ProcessEngineOptions {
  std::string data_dir;         // absolute; exists, owned by us alone; our launcher's is in it
  std::string node_program;     // path of gpu-platform-node
  std::string launcher_socket;  // of a launcher that runs as a service; empty: we start one
  std::uint64_t output_file_bytes = std::uint64_t{64} << 20;  // kept output is rotated at this size
  std::uint32_t output_files = 2;   // parts kept, the current one included
  std::uint64_t max_processes = 0;  // of a job, threads included; 0: any number
  bool private_folders = false;     // each job has /tmp and /dev/shm of its own
  bool hide_processes = false;      // of other users, where it has
  std::uint64_t start_timeout_ms = 30'000;
  std::uint64_t open_timeout_ms = 10'000;  // for the launcher's first answer
  std::uint64_t output_limit_bytes = 0;    // of all that an attempt prints so much is kept; 0: all
  // The hooks of the launcher that the daemon starts; a launcher that is a service has its own.
  node::SiteHooks hooks;
  LauncherRules launcher_rules;
  std::string containers;  // the rules of the container engine, for such a launcher; empty: none
  // Looks up the accounts of jobs' users. Null: the engine has a directory of its own.
  std::shared_ptr<host::UserDirectory> users;
  BoardPlaces board_places;                 // of emulated nodes; empty: there are none
  CudaNames cuda_names = CudaNames::kAuto;  // of GPUs, in CUDA_VISIBLE_DEVICES
  // Reports to the board of an emulated node that a process runs on these GPUs; null: there are no
  // boards. Called on the engine's thread; must not wait.
  std::function<void(const std::string& node, const std::vector<std::string>& uuids,
                     std::uint32_t pid)>
      enter_on_board;
  // Has the probe of a node let go of its driver for a reset, and look at it again after; null:
  // there is no probe. Called on the engine's thread; must not wait.
  std::function<void(const std::string& node, bool is_held)> hold_probe;
  base::Duration time_slice = base::seconds(10);  // of jobs that take turns and name no other
  std::string mps_control;                        // nvidia-cuda-mps-control; empty: there is none
  // Tells of an MPS server that was lost with its clients; null: to none. As hold_probe.
  std::function<void(const std::string& gpu, std::uint32_t uid)> tell_mps_loss;
  std::uint64_t reset_limit_ms = 180'000;  // of GPUs that are reset together
  std::uint64_t check_limit_ms = 300'000;  // also after a reset
  std::uint64_t deep_check_limit_ms = 1'800'000;
};

// The isolation of jobs on this host, for people.
struct NodePart {
  bool has_cgroups = false;              // false: isolation is advisory
  bool can_switch_user = false;          // false: jobs run as the daemon's own user
  std::string detail;                    // where the cgroups are, or why there are none
  std::vector<node::GuardState> guards;  // how jobs are kept apart, each way: held or advisory
  std::uint32_t launcher_pid = 0;
  std::string folder;  // of the launcher: records and kept output (node/protocol.h)
};

// Runs jobs as processes of this host, through the launcher and one supervisor per attempt. Each
// attempt is started at most once, even after a crash: its record can be created only once and is
// the truth about it, and the record's lock is the sign of life.
//
// Thread: one of its own; calls post an order and return. Observations come from that thread. The
// end of the engine ends no job. There is one engine per data directory (the store's lock ensures
// that).
class ProcessEngine : public Engine, public AttemptAccess {
 public:
  // Waits until the launcher answers, at most `open_timeout_ms`. Environment and sink must outlive
  // the engine.
  static base::Result<std::unique_ptr<ProcessEngine>> open(const ProcessEngineOptions& options,
                                                           const EnvironmentSource& environment,
                                                           ObservationSink& sink);
  ~ProcessEngine() override;

  // The boot of the machine on which it runs, as nodes and records have it. Any thread.
  const std::string& boot_id() const { return boot_id_; }

  void start(const StartOrder& order) override;
  void stop(const StopOrder& order) override;
  void set_limit(const LimitOrder& order) override;
  void signal(const SignalOrder& order) override;
  void forget(const ForgetOrder& order) override;
  void reset(const ResetOrder& order) override;
  void adopt(const std::vector<KnownAttempt>& known) override;

  // Replaces ProcessEngineOptions::time_slice. Any thread.
  void use_time_slice(base::Duration slice);

  void open_channel(model::ChannelOrder order, ChannelOpened done) override;
  std::string step_of(model::AttemptId attempt) const override;
  std::string output_of(model::AttemptId attempt) const override;
  // Supervisors write output as it comes: there is nothing to fetch.
  void follow_output(model::AttemptId) override {}
  bool awaits_output(model::AttemptId) const override { return false; }
  bool has_output(model::JobId job) const override;
  void remove_output(std::vector<model::JobId> jobs) override;

  // Has a regular file that a user named opened for reading, with that user's rights. Returns a
  // handle for the answer at once. Any thread.
  base::Result<os::Descriptor> ask_for_users_file(std::uint32_t uid, std::string path);
  // Waits for that answer. It is kNotFound or kPermissionDenied as for the user, and kUnavailable
  // if it takes longer than `timeout`.
  static base::Result<os::Descriptor> take_users_file(const os::Descriptor& asked,
                                                      const std::string& path,
                                                      std::chrono::milliseconds timeout);

  // Has the driver program do this to GPUs of a node; the engine adds where an emulated board is.
  // Returns where the answer (node::DriverAnswer) comes: it closes without one if the launcher is
  // away or busy. Any thread.
  base::Result<os::Descriptor> ask_driver(const std::string& node_name, node::RunDriver request);

  // Writes to the attempt's output that it uses more memory of a GPU than its part has, unless its
  // user has named a file for it. Best effort. Any thread.
  void warn_of_memory(model::AttemptId attempt, base::Bytes used, base::Bytes part);
  // The same of a job that does not use its GPUs and is stopped in so many minutes; 0: it is not.
  void warn_of_idle(model::AttemptId attempt, std::uint32_t stops_in_minutes);

  // A GPU does nothing while jobs take turns on it: the one that is awake gives its turn on. Best
  // effort. Any thread.
  void give_turn_on(std::string gpu_uuid);

  // Any thread.
  NodePart node_part() const;

 private:
  class Worker;
  ProcessEngine(std::unique_ptr<Worker> worker, std::string boot_id);
  const std::string boot_id_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace gpu_platform::execution
