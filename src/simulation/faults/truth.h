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
//   gpu-exclusive    a GPU is used by the processes of at most one attempt at any moment, or of
//                    attempts whose shares of it are one GPU together at most. This holds without
//                    exception: a GPU on a node given up as lost stays with the attempt that was
//                    there until the node says that nothing of it is left.
//   gang             a process starts with exactly the GPUs that its job asked for
//   reset            no process has a GPU when its reset begins
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
    // Of an attempt in pods: the ranks that were started, the GPUs of those that run, and how the
    // others ended.
    std::set<std::uint32_t> ranks_started;
    std::map<std::uint32_t, std::vector<std::string>> ranks_alive;
    std::vector<model::Exit> exits;

    bool has_begun() const { return starts > 0 || !ranks_started.empty(); }
    // Returns whether that is an end of the attempt; of several ranks, of one of them.
    bool ended_with(const model::Exit& end) const;
  };
  struct RankOf {
    std::uint32_t rank = 0;
    std::size_t ranks = 1;  // of the attempt
  };

  explicit Truth(Findings& findings) : findings_(findings) {}

  void process_started(const execution::StartOrder& order, base::Instant at) override;
  void process_ended(model::AttemptId attempt, const model::Exit& exit, base::Instant at) override;
  void processes_gone(model::AttemptId attempt, base::Instant at) override;
  void reset_began(const execution::ResetOrder& order, base::Instant at) override;

  // The container of a rank runs on these GPUs, or has ended and left nothing. The attempt counts
  // as started with its last rank, and as gone when none runs.
  void rank_started(const execution::StartOrder& order, RankOf which,
                    const std::vector<std::string>& gpus, base::Instant at);
  void rank_ended(model::AttemptId attempt, std::uint32_t rank, const model::Exit& exit,
                  base::Instant at);

  // The core has given the attempt up as lost, durably.
  void give_up(model::AttemptId attempt) { given_up_.insert(attempt); }
  // Nothing was ever seen of an attempt that is not in the map.
  const Attempt* find(model::AttemptId attempt) const;
  std::uint64_t hash() const { return hash_; }

 private:
  // A GPU in use: the attempts with processes on it, and the share of each.
  using Users = std::map<model::AttemptId, base::GpuShare>;
  void take_gpu(model::AttemptId id, const std::string& uuid, base::GpuShare share);
  void leave_gpu(model::AttemptId id, const std::string& uuid);
  void check_one_run(model::AttemptId id);
  void check_gang(const execution::StartOrder& order, std::size_t gpus);
  void note(std::string_view what, model::AttemptId attempt, base::Instant at);

  Findings& findings_;
  std::map<model::AttemptId, Attempt> attempts_;
  std::map<std::string, Users> users_of_gpus_;  // by UUID; none empty
  std::set<model::AttemptId> given_up_;
  std::uint64_t hash_ = 0;
};

}  // namespace gpu_platform::simulation
