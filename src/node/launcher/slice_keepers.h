#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "node/launcher/attempts_on_disk.h"
#include "node/launcher/children.h"
#include "node/launcher/launcher_host.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// The keepers of the turns on this host's GPUs (node/time_slices): one for each GPU with two jobs
// or more that take turns. A keeper that is killed is seen here: what it had frozen is thawed, and
// another one takes its place. Without cgroups of jobs there are no turns.
class SliceKeepers {
 public:
  // All must outlive it.
  SliceKeepers(const LauncherOptions& options, const LauncherHost& host,
               const AttemptsOnDisk& attempts, Children& children)
      : o_(options), host_(host), attempts_(attempts), children_(children) {}
  ~SliceKeepers() { end_all(); }
  SliceKeepers(const SliceKeepers&) = delete;
  SliceKeepers& operator=(const SliceKeepers&) = delete;

  void take(const TimeSlices& order);
  // Passes it to the keeper of this GPU, if there is one.
  void pass_on(const GpuIsIdle& news) const;
  // The daemon has gone: there are no turns any more, and nothing is frozen.
  void end_all();

  // Adds what to wait for; work() then looks at all of them. -1: for as long as it takes.
  void watch(std::vector<pollfd>& handles) const;
  int timeout_ms(std::int64_t now_ms) const;
  void work(std::int64_t now_ms);

 private:
  struct Keeper {
    TimeSlices wanted;
    Child process;    // its pid is -1 while none runs
    int socket = -1;  // to it
    std::int64_t started_ms = 0;
    std::int64_t start_at_ms = 0;  // while none runs: when the next one is started
  };

  void start(Keeper& keeper, std::int64_t now_ms);
  void end(Keeper& keeper);
  void close_handles(Keeper& keeper);
  void has_ended(Keeper& keeper, std::int64_t now_ms);
  void send(Keeper& keeper);
  void thaw(const TimeSlices& jobs) const;
  int open_cgroup(model::AttemptId attempt) const;

  const LauncherOptions& o_;
  const LauncherHost& host_;
  const AttemptsOnDisk& attempts_;
  Children& children_;
  std::map<std::string, Keeper> keepers_;  // by GPU
};

}  // namespace gpu_platform::node
