#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "health/gpu_case.h"
#include "model/evidence.h"
#include "model/ids.h"

// What no single piece shows: the same faults under different jobs, and how those jobs did
// elsewhere. A program that fails on other GPUs in the same way is to blame itself.

namespace gpu_platform::health {

// The suspicions against one GPU. It lives as long as one call of find_suspicions(); what it is
// made from must outlive it.
class Suspicions {
 public:
  // Adds to the findings.
  Suspicions(const GpuCase& gpu, std::vector<Finding>& findings) : gpu_(gpu), findings_(findings) {}

  void find();

 private:
  // A fault explains others around it.
  static constexpr base::Duration kExplains = base::minutes(10);
  static constexpr std::size_t kMaxCompared = 64;  // GPUs that are looked at for one program
  static constexpr std::size_t kManyGpus = 4;
  static constexpr std::int64_t kManySigns = 100;
  static constexpr std::size_t kLemonJobs = 3;  // of programs that fail nowhere else
  static constexpr base::Duration kHalfDay = base::hours(12);
  static constexpr std::size_t kJobsInARow = 5;
  static constexpr base::Duration kMonthOfJobs = base::hours(24 * 31);

  // One program's failures on this GPU.
  struct Program {
    std::string_view user;
    std::string_view program;
    model::JobId job;  // if the program has no name
    std::vector<Burst> bursts;
    std::set<model::JobId> jobs;
    std::set<std::uint32_t> xids;
    bool tells_hardware = false;
    bool never_started = false;
    bool did_well = false;  // elsewhere
    std::size_t hangs = 0;
    std::size_t alone = 0;  // failures of jobs with many GPUs that only this one had

    bool is_known() const { return !user.empty() || !program.empty() || job.valid(); }
  };

  struct Elsewhere {
    bool did_well = false;
    bool failed = false;      // on another GPU, without a fault of that one
    bool failed_far = false;  // on another node
    bool did_well_far = false;
  };

  // How many GPUs the job has that the records know of, and whether another one had such an XID.
  struct Gang {
    std::size_t gpus = 1;
    bool others_had_it = false;
  };

  // The pieces.
  bool is_exception(const model::Evidence& piece) const;
  static bool is_failure(const model::Evidence& piece);
  bool counts(const model::Evidence& piece) const;
  // Whether a fault of another GPU of the job, or of this one, explains the piece.
  bool is_explained(const model::Evidence& piece) const;
  bool has_fault_near(std::span<const model::Evidence> pieces, const model::Evidence& piece) const;

  // The jobs.
  static bool is_same_program(const model::Evidence& piece, const Program& program);
  static Program& program_of(std::vector<Program>& programs, const model::Evidence& piece);
  Gang gang_of(const model::Evidence& piece) const;
  Elsewhere look_elsewhere(const Program& program, bool by_exceptions) const;
  // Whether another GPU of the job is more to blame: it alone had exceptions, or more other jobs
  // failed on it.
  bool points_elsewhere(const model::Evidence& piece) const;
  bool had_exception(model::JobId job) const;
  std::size_t failed_jobs(std::span<const model::Evidence> pieces) const;
  // Whether, among jobs that did well here, some failed in a month whose programs do well elsewhere
  // and fail nowhere else.
  bool is_lemon() const;

  // The signs of the GPU and of its neighbours.
  // Conditions that are no proof, and make one GPU of several the likelier one.
  bool has_signs(std::span<const model::Evidence> pieces) const;
  // Signs of weak memory or links near that time, none of which would take the GPU out alone.
  bool has_weak_signs(base::Instant at) const;
  // XID 13 named the same unit in two bursts or more, and no other unit.
  bool same_unit_again() const;
  // No other GPU of the node had such XIDs in the same day; false if the node has no other.
  bool neighbours_are_clean(base::Instant at) const;
  // Whether it has clearly more such XIDs than the other GPUs of its node in this week. Where they
  // have them, too, a course or a new version of a library is the likelier cause.
  bool stands_out(std::size_t bursts) const;

  void find_exceptions();
  void find_failing_jobs();
  // A node where GPU after GPU has a fault, and with which jobs fail that do well without it.
  void find_lemon_node();
  void report(std::string_view rule, const model::Evidence& last, std::uint32_t confidence,
              std::string text);
  void report(const Rule& rule, const model::Evidence& last, std::uint32_t confidence,
              std::string text);

  const GpuCase& gpu_;
  std::vector<Finding>& findings_;
};

}  // namespace gpu_platform::health
