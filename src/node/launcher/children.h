#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "node/launcher/daemon_socket.h"
#include "node/launcher/driver_watch.h"
#include "node/launcher/launcher_host.h"
#include "node/mps/mps_keeper.h"
#include "node/owed_epilog.h"
#include "node/relay/relay.h"
#include "node/supervisor/supervisor.h"

namespace gpu_platform::node {

struct Child {
  int pid = -1;    // -1: it was not made, with errno
  int pidfd = -1;  // the caller closes it
};

// The copies of itself that the launcher makes: supervisors, the epilogs of lost supervisors,
// relays, the watchers of the driver program, the keepers of turns and of MPS daemons. Each closes
// what only the launcher may hold before it begins.
class Children {
 public:
  // All must outlive it. `socket`: the connection to the daemon, or -1.
  Children(const LauncherOptions& options, LauncherHost& host, const DaemonSocket& listener,
           const int& socket)
      : o_(options), host_(host), listener_(listener), socket_(socket) {}

  // `record`: its record, locked, so that the lock is inherited.
  Child start_supervisor(model::AttemptId attempt, const LaunchRequest& request, int record);
  // Runs the site's epilog of an attempt whose supervisor was lost; `record` as above. It is marked
  // as begun, and as owed again where no child was made.
  Child start_lost_epilog(const OwedEpilog& owed, model::AttemptId attempt,
                          const LaunchRequest& request, int record,
                          const std::optional<EndRecord>& end);

  struct Channel {
    int cgroup = -1;  // the job's; -1: none
    int fd = -1;      // to the daemon
    int log = -1;     // -1: nothing is told
  };
  Child start_relay(model::AttemptId attempt, const Record& record, const Identity& user,
                    const Channel& channel);

  // Watches over the program that writes to the GPUs' driver.
  Child start_driver_watch(const DriverWatch& watch);

  // Keeps the turns on one GPU; `socket` and `open_cgroup`: see SliceKeeperOptions.
  Child start_slice_keeper(int socket, const std::function<int(model::AttemptId)>& open_cgroup);

  // Keeps the MPS daemon of a user on a GPU, with these options; its log and the score for memory
  // are set here.
  Child start_mps_keeper(MpsKeeperOptions options);

  // A descriptor that no child may have, until it is closed here.
  void keep_private(int fd) { private_.push_back(fd); }
  void close_private(int fd);

 private:
  void leave_launcher() const;
  SupervisorOptions supervisor_options(model::AttemptId attempt, const LaunchRequest& request,
                                       int record) const;
  const char* oom_score() const;
  [[noreturn]] void become_relay(model::AttemptId attempt, const Record& record,
                                 const Identity& user, const Channel& channel) const;

  const LauncherOptions& o_;
  LauncherHost& host_;
  const DaemonSocket& listener_;
  const int& socket_;
  std::vector<int> private_;
};

}  // namespace gpu_platform::node
