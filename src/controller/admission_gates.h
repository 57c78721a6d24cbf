#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/units.h"
#include "model/dependency.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

// The conditions that keep waiting jobs out of the queue, as indices: jobs that wait for a time,
// for another job, or for a member of their array, and jobs that must start by a time. Each
// question costs the size of its answer, so a waiting job costs something when its condition is met
// and in no cycle before.
//
// Derived data: enter() and leave() with every job, and the limit of every limited array, make it
// again.
class AdmissionGates {
 public:
  using Times = std::set<std::pair<base::Instant, model::JobId>>;

  // Call it before any job of the array enters; 0: the array has no limit.
  void set_limit(model::JobId array, std::uint32_t limit);
  void erase_array(model::JobId array) { arrays_.erase(array); }

  // The job as it is now, and before it changes in any way.
  void enter(const model::Job& job);
  void leave(const model::Job& job);

  // PENDING and PREEMPTED jobs that wait for a time alone, or for nothing any more. Of an array
  // with a limit the first of those that have run before and the first of the others, and only
  // while fewer members than the limit take a place.
  const Times& becoming_eligible() const { return becoming_eligible_; }
  // Returns whether a member that has run before may enter the queue by now: it goes before its
  // sisters that have not. False for a job that is no such sister, or in no limited array.
  bool goes_after_sister(const model::Job& job, base::Instant now) const;
  // Jobs that wait or are held, and not for ever, by the last moment at which they may start.
  const Times& last_starts() const { return last_starts_; }
  // Jobs that wait or are held for something that can never be.
  const std::set<model::JobId>& hopeless() const { return hopeless_; }
  // Jobs that wait or are held and ask for a reservation, by its name.
  const std::map<std::string, std::set<model::JobId>>& of_reservations() const {
    return of_reservations_;
  }
  // Jobs of a user of one name.
  using NameKey = std::pair<std::uint32_t, std::string>;
  static NameKey name_of(const model::JobSpec& spec) { return {spec.uid, spec.name}; }
  // Jobs of that name that have not ended; null: there are none.
  const std::set<model::JobId>* open_of(const NameKey& name) const;
  // Jobs that have not met their dependency on the target.
  std::set<model::JobId> dependents(const model::DependencyTarget& target) const;

  friend bool operator==(const AdmissionGates&, const AdmissionGates&) = default;

 private:
  struct ArrayGate {
    std::uint32_t limit = 0;
    std::uint64_t open = 0;  // members that take a place
    Times ready;             // members that could be, but for the limit, and have not run
    Times ready_again;       // the same, of members that have run before

    friend bool operator==(const ArrayGate&, const ArrayGate&) = default;
  };
  ArrayGate* gate_of(const model::Job& job);
  Times& times_of(ArrayGate* gate, const model::Job& job);
  void offer(const ArrayGate& gate);
  void withdraw(const ArrayGate& gate);

  Times becoming_eligible_;
  Times last_starts_;
  std::set<model::JobId> hopeless_;
  std::map<std::string, std::set<model::JobId>> of_reservations_;
  std::map<model::DependencyTarget, std::set<model::JobId>> dependents_;
  std::map<NameKey, std::set<model::JobId>> open_by_name_;
  std::map<model::JobId, ArrayGate> arrays_;  // those with a limit
};

// Returns whether the job waits for a time alone, or for nothing any more.
bool waits_for_time(const model::Job& job);

// Returns whether an attempt of the job still holds resources of a node that is there. Such a job
// does not enter the queue yet, and a member of an array keeps its place in the array's limit.
bool has_leftovers(const model::Job& job);

}  // namespace gpu_platform::controller
