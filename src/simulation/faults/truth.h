#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "execution/virtual_engine.h"
#include "model/ids.h"
#include "model/job.h"
#include "simulation/faults/findings.h"

namespace gpu_platform::simulation {

// Records what really happened on the virtual nodes, seen past controller, journal and every faulty
// link, and checks these rules:
//   one-start        a process is started at most once for an attempt
//   gpu-exclusive    a GPU is used by the processes of at most one attempt at any moment. This
//                    holds without exception: a GPU on a node given up as lost stays with the
//                    attempt that was there until the node says that nothing of it is left.
//   gang             a process starts with exactly the GPUs that its job asked for
//   one-run          of one job, at most one attempt has processes, unless the others were given up
//                    as lost with their node: those may run on behind a broken connection
class Truth final : public execution::VirtualWitness {
 public:
  struct Attempt {
    std::uint32_t starts = 0;
    bool is_alive = false;  // its main process, or what it left behind
    bool has_ended = false;
    model::Exit exit;
    base::Instant started_at;  // on the boot clock, as ended_at
    base::Instant ended_at;
    std::vector<std::string> gpus;  // in use while alive
  };

  explicit Truth(Findings& findings) : findings_(findings) {}

  void process_started(const execution::StartOrder& order, base::Instant at) override;
  void process_ended(model::AttemptId attempt, const model::Exit& exit, base::Instant at) override;
  void processes_gone(model::AttemptId attempt, base::Instant at) override;

  // The core has given the attempt up as lost, durably.
  void give_up(model::AttemptId attempt) { given_up_.insert(attempt); }
  // Nothing was ever seen of an attempt that is not in the map.
  const Attempt* find(model::AttemptId attempt) const;
  std::uint64_t hash() const { return hash_; }

 private:
  void note(std::string_view what, model::AttemptId attempt, base::Instant at);

  Findings& findings_;
  std::map<model::AttemptId, Attempt> attempts_;
  std::map<std::string, model::AttemptId> users_of_gpus_;  // by UUID
  std::set<model::AttemptId> given_up_;
  std::uint64_t hash_ = 0;
};

}  // namespace gpu_platform::simulation
