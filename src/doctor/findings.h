#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "hardware/readings.h"
#include "node/protocol.h"

// Facts of a host in, findings out. Nothing here asks the host.

namespace gpu_platform::doctor {

enum class Verdict : std::uint8_t {
  kGood,
  kWarning,  // jobs run; something is weaker or slower than it could be
  kBad,      // jobs do not run, or not on GPUs
};
std::string to_string(Verdict verdict);  // "ok", "warning", "bad"

struct Finding {
  std::string check;  // stable name: "isolation.devices"
  Verdict verdict = Verdict::kGood;
  std::string text;    // what was found
  std::string advice;  // what to do; empty where all is well
  friend bool operator==(const Finding&, const Finding&) = default;
};

// Returns findings about the guards that a launcher started by this user could hold.
std::vector<Finding> judge_isolation(const std::vector<node::GuardState>& guards);

// Returns findings about the ways in which jobs can share a GPU here. `mps_control`: where
// nvidia-cuda-mps-control is; empty if it is nowhere.
std::vector<Finding> judge_sharing(const std::vector<node::GuardState>& guards,
                                   const std::string& mps_control);

// Returns findings about the driver and its GPUs. No driver is a warning: emulated nodes and CPU
// jobs need none.
std::vector<Finding> judge_gpus(const hardware::Inventory& inventory);

struct DcgmFacts {
  std::string library;  // the one that can be used; empty: there is none
  std::string problem;  // why one that is there cannot be used
};
// DCGM only adds to what the driver says, so that its absence is no fault.
Finding judge_dcgm(const DcgmFacts& dcgm);

struct DiskFacts {
  std::string path;         // the data directory, or the nearest folder above it that exists
  std::string file_system;  // "ext4", "tmpfs", "nfs"
  bool is_writable = false;
  base::Bytes available;
};
Finding judge_disk(const DiskFacts& disk);

struct KernelFacts {
  std::uint64_t open_files = 0;        // soft limit of file descriptors
  bool is_clock_synchronised = false;  // as adjtimex says
};
std::vector<Finding> judge_kernel(const KernelFacts& kernel);

struct ServiceFacts {
  bool has_systemd = false;     // it is the init of this host
  bool has_units = false;       // the three units are installed
  bool daemon_answers = false;  // a daemon listens where the command line looks for one
  std::string server;           // the one that answers, or all that were asked: "unix:/run/s"
  bool is_of_this_host = true;  // none of them is named by the caller as one elsewhere
};
Finding judge_service(const ServiceFacts& service);

// What to do, and the findings that it helps.
struct Advice {
  std::string checks;  // "isolation.memory, isolation.cpu"
  std::string text;
  friend bool operator==(const Advice&, const Advice&) = default;
};
// Returns each piece of advice once, in the order of the first finding that has it.
std::vector<Advice> advice_of(const std::vector<Finding>& findings);

// The worst of them.
Verdict overall(const std::vector<Finding>& findings);

}  // namespace gpu_platform::doctor
