#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "bin/power_limits.h"
#include "config/configuration.h"
#include "node/probe/probe_runner.h"
#include "node/protocol.h"
#include "os/descriptor.h"

namespace gpu_platform::bin {

// Keeps the power limits of GPUs as the site wants them (health.power_limits): after each inventory
// of a node, and when the configuration changes, it has those limits set that differ. What failed
// is logged, and tried again with the next inventory or configuration; the same reason is logged
// once for each configuration. The limits before its first changes are kept in a file, and GPUs
// without an entry get them back. The end of the daemon changes no limit: jobs go on under them.
//
// Thread: asks on one of its own, for an answer may take a while. Calls do not wait.
class PowerPolicy : public node::ProbeListener {
 public:
  struct Options {
    std::vector<config::PowerLimit> wanted;
    std::string file;  // where former limits are kept
    // Has the driver program do this; returns where a node::DriverAnswer comes.
    std::function<base::Result<os::Descriptor>(const std::string& node, const node::RunDriver&)>
        ask;
    // A limit was set.
    std::function<void(const std::string& uuid, base::Milliwatts limit)> was_set;
  };

  // `next` gets all reports, and must outlive it.
  PowerPolicy(Options options, node::ProbeListener& next);
  ~PowerPolicy() override;

  void on_report(node::ProbeReport report) override;
  // Of a configuration that was read again, though it may be the same.
  void set_wanted(std::vector<config::PowerLimit> wanted);
  // All nodes that there are at the start have been described, or could not be: entries that no GPU
  // fits are warned of now, and after each configuration that is read.
  void warn_of_unused_entries();

 private:
  using Gpus = GpusByNode::mapped_type;

  void run();
  void look_at(const std::string& node, Gpus gpus);
  void apply(const std::string& node, const hardware::GpuDescription& gpu);
  bool keep(const std::string& uuid, const ChangedLimit* limit);
  std::string set_limit(const std::string& node, const std::string& uuid, base::Milliwatts limit);
  std::string answer_on(os::Descriptor asked, const std::string& uuid);
  void warn_once(std::string text);

  const Options options_;
  node::ProbeListener& next_;
  ChangedLimits changed_;  // of its thread, as in the file

  std::mutex mutex_;  // guards what is below
  std::condition_variable woken_;
  std::vector<config::PowerLimit> wanted_;
  GpusByNode known_;              // as last told
  std::set<std::string> due_;     // nodes
  std::set<std::string> warned_;  // what was logged
  bool are_all_known_ = false;    // the nodes
  int asked_ = -1;                // the socket that an answer is awaited on
  bool is_stopping_ = false;
  std::thread thread_;  // last
};

}  // namespace gpu_platform::bin
