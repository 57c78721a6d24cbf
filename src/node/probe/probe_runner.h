#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "hardware/dcgm/dcgm_source.h"
#include "hardware/readings.h"
#include "node/probe/probe_protocol.h"

// The daemon's side of the probes: one process per node, watched by one thread. A driver that hangs
// blocks only its probe: the probe is abandoned and another one is started.

namespace gpu_platform::node {

// The target of one probe.
struct ProbeTarget {
  std::string node_name;
  bool emulated = false;
  std::string library = "libnvidia-ml.so.1";
  std::string host_description;          // of an emulated node; empty: the running kernel is asked
  std::vector<std::string> environment;  // KEY=VALUE, beside what the daemon has itself
  // Asked where the library cannot be opened; empty: nothing is.
  std::string nvidia_smi = "nvidia-smi";
  std::string kernel_log = "/dev/kmsg";  // read if it may be; empty: it is not
  hardware::DcgmSource dcgm = {};        // without libraries DCGM is not asked
};

// The emulated node in a folder that `gpu-emulator create` made.
ProbeTarget emulated_target(const std::string& node_name, const std::string& node_dir,
                            const std::string& library);

enum class ProbeTrouble : std::uint8_t {
  kCannotStart,
  kDied,
  kNotAnswering,  // the driver hangs
  kCannotRead,    // the machine cannot be described, or the probe sends nonsense
};

// Reported once each time it happens; a new inventory says that it is over.
struct ProbeProblem {
  ProbeTrouble trouble = ProbeTrouble::kDied;
  std::string message;

  friend bool operator==(const ProbeProblem&, const ProbeProblem&) = default;
};

struct ProbeReport {
  std::string node_name;
  bool emulated = false;
  std::variant<hardware::Inventory, ProbeReadings, ProbeProblem, ProbeEvents, ProbeKernelLog>
      content;
};

class ProbeListener {
 public:
  virtual ~ProbeListener() = default;
  // Called on the runner's thread, which it holds up for all probes: hand over and return. Reports
  // of one node come in order; after a probe was restarted its inventory comes again.
  virtual void on_report(ProbeReport report) = 0;
};

struct ProbeRunnerOptions {
  std::string executable;   // path of gpu-platform-probe
  std::string data_folder;  // whose file system's size probes tell; empty: they tell none
  base::Duration interval = base::seconds(5);
  // Loading a driver that no process holds open takes seconds per GPU.
  base::Duration first_inventory_limit = base::seconds(90);
  // The time for which a probe may be silent beyond the interval, and for which each of its other
  // threads may stay inside the driver.
  base::Duration silence_limit = base::seconds(15);
  base::Duration min_restart_delay = base::milliseconds(500);
  base::Duration max_restart_delay = base::seconds(30);
};

struct ProbeStatus {
  std::string node_name;
  int pid = 0;  // 0: none runs
  std::uint32_t starts = 0;
  std::uint32_t abandoned = 0;  // probes that hang in the driver and could not be ended yet

  friend bool operator==(const ProbeStatus&, const ProbeStatus&) = default;
};

// Every function may be called from any thread. Children are reaped by their pidfd: no other part
// of the process may wait for all children, or ignore SIGCHLD.
class ProbeRunner {
 public:
  // `listener` outlives the runner.
  static base::Result<std::unique_ptr<ProbeRunner>> start(ProbeRunnerOptions options,
                                                          ProbeListener& listener);
  // Ends all probes. Does not wait for those that hang.
  ~ProbeRunner();
  ProbeRunner(const ProbeRunner&) = delete;
  ProbeRunner& operator=(const ProbeRunner&) = delete;

  // Starts a probe for the node and keeps one running. A node is watched once: later calls of its
  // name change nothing.
  void watch(ProbeTarget target);

  // Asks the node's probe for readings now, of these GPUs at least; none named: of all. Questions
  // that come together become one, which has all that they want. An unknown node, or one without a
  // probe, is ignored.
  void read_now(const std::string& node_name, const ReadNow& wanted = {});

  // Ends the node's probe and starts none, so that nothing of ours has its driver open, until it is
  // let go on. Nothing is reported meanwhile; the inventory comes again after. Does not wait. An
  // unknown node is ignored.
  void hold(const std::string& node_name);
  void let_go_on(const std::string& node_name);

  std::vector<ProbeStatus> status() const;

 private:
  class Impl;
  explicit ProbeRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::node
