#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "execution/engine.h"
#include "execution/process/job_request.h"
#include "node/protocol.h"

namespace gpu_platform::execution {

// Returns whether the attempt shares a GPU as a client of an MPS server.
bool is_mps_client(const StartOrder& order);

// Which attempts are clients of the MPS server of which user on which GPU of this host: what the
// launcher is to know of it, told once after each change, and what it answers. An attempt is one
// from before its launch until nothing of it is left.
// Pure. Thread: one.
class MpsSets {
 public:
  struct Options {
    std::string control;  // nvidia-cuda-mps-control, absolute; empty: no server is started here
    BoardPlaces boards;
    bool private_folders = true;  // of the jobs
  };

  explicit MpsSets(Options options) : options_(std::move(options)) {}

  bool can_serve() const { return !options_.control.empty(); }

  // Both may be repeated. An attempt that is no client changes nothing, and
  // none is one where no server can be started.
  void join(const StartOrder& order);
  void leave(model::AttemptId attempt);
  // There is another launcher, which knows nothing: no server is ready until it says so.
  void tell_all_again();

  // What has changed since it was told, a message for each server.
  std::vector<node::MpsServer> take_changes();

  // Returns the attempts of which an answer says something: that they can be launched, as
  // is_ready() says from then on, or that their server cannot be had, with the answer's reason.
  std::vector<model::AttemptId> take(const node::MpsState& state);
  bool is_ready(model::AttemptId attempt) const;
  // Returns what the attempt needs to be a client; nothing if it is none, or as long as no launcher
  // has said where the server is.
  std::optional<MpsClient> client_of(model::AttemptId attempt) const;

 private:
  struct Key {
    std::string gpu;  // UUID
    std::uint32_t uid = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Server {
    std::optional<node::BoardFiles> board;
    std::map<model::AttemptId, node::MpsJob> jobs;
    std::set<model::AttemptId> ready;
    std::string folder;  // as it was last said
  };

  const std::pair<const Key, Server>* server_of(model::AttemptId attempt) const;
  node::MpsServer message_for(const Key& key) const;

  const Options options_;
  std::map<Key, Server> servers_;  // with jobs
  std::set<Key> changed_;
  std::map<Key, node::MpsServer> told_;  // those with jobs
};

}  // namespace gpu_platform::execution
