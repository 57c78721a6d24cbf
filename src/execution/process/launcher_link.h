#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "model/user_range.h"
#include "node/protocol.h"
#include "node/site_hooks.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

// The rules of a launcher for jobs.
struct LauncherRules {
  bool allow_root = false;
  model::UserRange users = {};  // that may have jobs
  bool mode_setting = false;    // jobs with GPUs may open /dev/nvidia-modeset
  bool filter_syscalls = true;  // of jobs
};

// The connection to the launcher: started by us, or a service of its own that listens. One thread;
// not blocking, except for the start of the launcher.
class LauncherLink {
 public:
  struct Options {
    std::string folder;     // of one that we start
    std::string program;    // of gpu-platform-node, where we start it
    std::string socket;     // where it listens; empty: we start it
    node::SiteHooks hooks;  // these three for one that we start
    LauncherRules rules;
    std::string containers;  // rules of the container engine; empty: none
  };

  explicit LauncherLink(Options options) : options_(std::move(options)) {}
  ~LauncherLink() { hang_up(); }
  LauncherLink(const LauncherLink&) = delete;
  LauncherLink& operator=(const LauncherLink&) = delete;

  // Connects and says Hello. The answer comes like any other message.
  base::Status connect();
  // This ends a launcher of ours; its supervisors live on.
  void hang_up();
  // The descriptor is for epoll; it is -1 while there is no connection.
  int fd() const { return socket_.get(); }

  enum class Sent { kYes, kNotNow, kBroken };
  Sent send(const node::Message& message, int fd = -1);

  struct Received {
    bool closed = false;
    std::optional<node::Message> message;  // its views end with the next receive
    os::Descriptor fd;
  };
  // Neither closed nor message: nothing is there now.
  Received receive();

 private:
  base::Status spawn();
  base::Status dial();

  Options options_;
  os::Descriptor socket_;
  pid_t child_ = -1;
  char buffer_[node::kMaxMessage];
};

}  // namespace gpu_platform::execution
