#pragma once

#include <cstdint>
#include <map>

#include "base/units.h"
#include "model/job.h"

namespace gpu_platform::controller {

// The load of one user, or of all users, in the core.
struct UserLoad {
  std::uint64_t waiting_jobs = 0;  // held ones too; of an array each member
  // The specifications of all jobs that have not left the core, by model::size_of(). Each member of
  // an array counts with all of its specification: members share it only until one of them is
  // changed.
  base::Bytes specifications;

  friend bool operator==(const UserLoad&, const UserLoad&) = default;
};

// Counts for the limits that keep one user from taking what all share. They follow from the jobs in
// the core; the owner reports what happens.
// Ownership: values. Thread: one owner. Cost: O(log users), and size_of() when a specification
// comes, changes or goes, when it is copied or stored anyway.
class Load {
 public:
  // A number of jobs of that specification enters the core; one leaves it.
  void enter(const model::JobSpec& spec, std::uint64_t jobs = 1);
  void leave(const model::JobSpec& spec);

  void begin_waiting(std::uint32_t uid);
  void end_waiting(std::uint32_t uid);

  UserLoad of(std::uint32_t uid) const;
  const UserLoad& in_all() const { return in_all_; }

  friend bool operator==(const Load&, const Load&) = default;

 private:
  void drop_if_empty(std::uint32_t uid);

  std::map<std::uint32_t, UserLoad> users_;  // none empty
  UserLoad in_all_;
};

}  // namespace gpu_platform::controller
