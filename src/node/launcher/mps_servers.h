#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/launcher/attempts_on_disk.h"
#include "node/launcher/children.h"
#include "node/launcher/launcher_host.h"
#include "node/mps/mps_places.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// The keepers of the MPS daemons on this host (node/mps), one for each user and GPU, and their
// places. A keeper that was killed is seen here, and another one takes the daemon over. Only root's
// launcher with cgroups has MPS daemons.
//
// They outlive the connection to the daemon and the launcher, as jobs do: the next daemon names
// those that it wants. One that it has not named after a minute, and that no living job uses, is
// ended.
class MpsServers {
 public:
  // `tell` sends a message to the daemon. All must outlive it.
  MpsServers(const LauncherHost& host, const AttemptsOnDisk& attempts, Children& children,
             std::function<void(const Message&)> tell);
  ~MpsServers() { leave(); }
  MpsServers(const MpsServers&) = delete;
  MpsServers& operator=(const MpsServers&) = delete;

  // Returns why there are none on this host; empty: there may be.
  static std::string refusal(const LauncherHost& host);

  // `user`: that of the order, if it has jobs.
  void take(const MpsServer& order, const Identity& user);
  // Answers an order that is not carried out.
  void refuse(const MpsServer& order, const std::string& why) const;
  // The launcher ends: what was told to end has ended then, and the others live on.
  void leave();
  // A daemon has said Hello.
  void daemon_came(std::int64_t now_ms);

  // Adds what to wait for; work() then looks at all of them. -1: for as long as it takes.
  void watch(std::vector<pollfd>& handles) const;
  int timeout_ms(std::int64_t now_ms) const;
  void work(std::int64_t now_ms);

 private:
  struct Keeper {
    MpsServer wanted;  // without jobs: it is being ended
    Identity user;
    bool is_named = false;  // by the daemon that is connected
    Child process;          // its pid is -1 while none runs
    int socket = -1;        // to it
    std::int64_t started_ms = 0;
    std::int64_t start_at_ms = 0;  // while none runs: when the next step is tried
  };

  void end(const std::string& name, const MpsServer& order);
  void start(const std::string& name, Keeper& keeper, std::int64_t now_ms);
  void send(Keeper& keeper) const;
  void pass_on(const Keeper& keeper);
  void has_ended(Keeper& keeper, std::int64_t now_ms);
  bool is_removed(const std::string& name, Keeper& keeper, std::int64_t now_ms);
  void close_handles(Keeper& keeper) const;
  void end_unnamed();
  bool has_living_job(const Keeper& keeper) const;

  const LauncherHost& host_;
  const AttemptsOnDisk& attempts_;
  Children& children_;
  const std::function<void(const Message&)> tell_;
  MpsPlaces places_;
  std::map<std::string, Keeper> keepers_;  // by mps_name()
  // Places in use that a launcher before us has left, and that no daemon has named yet.
  std::set<std::string> left_;
  std::int64_t unnamed_end_at_ms_ = -1;  // -1: never
  char buffer_[kMaxMessage];
};

}  // namespace gpu_platform::node
