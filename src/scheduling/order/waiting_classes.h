#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>  // layers allow unordered: looked up only, by_first_ has the order
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/resource_request.h"
#include "scheduling/order/rank.h"
#include "scheduling/preemption/stop_record.h"

namespace gpu_platform::scheduling {

// Classes of waiting jobs with the same request and time limit, the same possible victims and the
// same limits. If one job of a class does not fit now, none does, unless its expected time is
// shorter. A queue of many thousand jobs mostly has a few classes, so a cycle tries classes instead
// of jobs.
//
// Owner and thread: the queue's. Cost: add and remove O(log jobs).
class WaitingClasses {
 public:
  void add(const Rank& rank, const model::JobSpec& spec, const StopRecord& record);
  void remove(const Rank& rank, const model::JobSpec& spec, const StopRecord& record);  // as added
  void clear();
  // Sets whether jobs of different owners are in different classes. Only while there are no jobs.
  void split_by_owner(bool split);
  std::size_t size() const { return classes_.size(); }
  // Returns the first of all jobs; null if there is none.
  const Rank* first() const { return by_first_.empty() ? nullptr : &by_first_.begin()->first; }

  // Calls visit(first job's rank, number of jobs) for each class. Cost: the classes.
  template <class Visit>
  void for_each_class(Visit&& visit) const {
    for (const auto& [first, jobs] : by_first_) visit(first, jobs->size());
  }

  // Returns true for the same jobs in the same classes, with any numbers of their places.
  friend bool is_alike(const WaitingClasses& a, const WaitingClasses& b);

  // Visits the jobs of all classes in the order of their ranks and leaves out the classes that the
  // caller has dropped. The classes must not change meanwhile. Cost: O(1) to begin; a step O(log
  // classes met).
  class Walk {
   public:
    explicit Walk(const WaitingClasses& classes);
    // Returns null after the last job.
    const Rank* next();
    // Drops the class of the job that next() returned last.
    void drop_class() { has_current_ = false; }

   private:
    using Jobs = std::set<Rank>;
    struct Place {
      const Jobs* jobs = nullptr;
      Jobs::const_iterator at;
    };
    static bool is_later(const Place& a, const Place& b) { return *b.at < *a.at; }

    std::map<Rank, const Jobs*>::const_iterator unmet_;  // classes not met yet, by first job
    std::map<Rank, const Jobs*>::const_iterator end_;
    std::vector<Place> met_;  // heap, earliest first
    Place current_;
    bool has_current_ = false;
  };

 private:
  struct Key {
    model::ResourceRequest request;
    base::Duration time_limit;
    base::Duration expected_time;  // as its user stated; zero: nothing
    std::uint8_t preemption = 0;   // whether it may be stopped for others
    std::string team;              // these only where owners are told apart
    std::string user;
    std::string project;
    StopRecord record;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  Key key_of(const model::JobSpec& spec, const StopRecord& record) const;

  // layers allow unordered: looked up only, by_first_ has the order
  std::unordered_map<Key, std::set<Rank>, Hash> classes_;  // none empty
  std::map<Rank, const std::set<Rank>*> by_first_;
  bool splits_by_owner_ = false;
};

}  // namespace gpu_platform::scheduling
