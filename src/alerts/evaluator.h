#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alerts/alert.h"
#include "alerts/rule_table.h"
#include "base/units.h"

// Facts in, changes of alerts out.

namespace gpu_platform::alerts {

// Now, on two clocks: the wall clock is shown, and may be set; time spans are measured on the other
// one, which only goes forward, until a restart of the machine.
struct Moment {
  base::Instant at;
  base::Instant steady;
};

// What facts are about.
struct Subject {
  std::string key;  // unique beside those of the same source and signal: a UUID, a job
  Labels labels;
};

struct Fact {
  Signal signal = Signal::kGpuTemperature;
  std::shared_ptr<const Subject> subject;  // never null
  std::optional<std::int64_t> value;       // none: it is not known now
  std::string detail = {};                 // words behind the summary: "XID 79"
  // Of a counter: it counts from the daemon's start, so that its first value is growth.
  bool counts_from_zero = false;
};

// An alert with what the evaluator needs to go on with it after a restart.
struct Tracked {
  Alert alert;
  Signal signal = Signal::kGpuTemperature;
  std::string source;
  std::string subject;
  // How long the condition has held while it was known; of a counter, how long it did not grow.
  base::Duration held;
  std::optional<base::Instant> seen;  // on the steady clock, if the last fact had a value
  std::uint64_t round = 0;            // of the source, when it was told last
};

enum class Turn : std::uint8_t {
  kPending,
  kFired,
  kGrew,  // the counter of an alert that fires has grown
  kResolved,
  kDropped,  // it did not hold for long enough
};
struct Transition {
  Turn turn = Turn::kFired;
  Alert alert;
};

// Judges facts by the rules. Of one rule and subject, each firing is followed by one resolution
// before the next firing. What is not known neither fires nor resolves, and its time does not
// count. The order of facts does not matter.
//
// A source tells all of its facts at a time: subjects that it leaves out are gone, and their alerts
// are resolved. Facts that no rule holds for, and that nothing is tracked of, cost no allocation.
class Evaluator {
 public:
  using Transitions = std::vector<Transition>;

  explicit Evaluator(std::vector<Rule> rules);

  // Alerts of rules that are gone or off are resolved; the others stay.
  Transitions set_rules(std::vector<Rule> rules, Moment now);
  const std::vector<Rule>& rules() const { return rules_; }

  Transitions take(const std::string& source, std::span<const Fact> facts, Moment now);
  // The source tells no more.
  Transitions forget(const std::string& source, Moment now);
  // Those that have told facts, or had alerts before a restart, and were not forgotten; ascending.
  std::vector<std::string> sources() const;

  // Takes up an alert from before a restart. Its source tells of it later.
  void restore(Tracked tracked);

  const Tracked* find(const std::string& fingerprint) const;
  Tracked* find(const std::string& fingerprint);
  // Calls visit(tracked) with each alert that is pending or fires, in a fixed order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [name, source] : sources_) {
      for (const auto& [key, tracked] : source.tracked) visit(tracked);
    }
  }
  // Whether an alert waits for time to pass.
  bool has_pending() const;

 private:
  using Key = std::pair<std::string, std::string>;  // rule and subject
  struct Source {
    std::map<Key, Tracked> tracked;
    std::map<std::pair<Signal, std::string>, std::int64_t> counts;
    std::uint64_t round = 0;
  };

  Tracked* track(Source& source, const Rule& rule, const Fact& fact, const std::string& name,
                 Moment now);
  void judge_level(Source& source, const Rule& rule, const Fact& fact, const std::string& name,
                   Moment now, Transitions& out);
  void judge_counter(Source& source, const Rule& rule, const Fact& fact, const std::string& name,
                     std::int64_t growth, Moment now, Transitions& out);
  void fire(const Rule& rule, Tracked& tracked, const Fact& fact, Moment now, Transitions& out);
  void end(Source& source, std::map<Key, Tracked>::iterator which, Moment now, Transitions& out);

  std::vector<Rule> rules_;
  std::vector<std::vector<std::size_t>> by_signal_;  // those that are enabled
  std::map<std::string, Source> sources_;
  std::map<std::string, std::pair<std::string, Key>> by_fingerprint_;
};

// The fingerprint of the alert of this rule about this subject.
std::string fingerprint_of(const std::string& rule, const std::string& source,
                           const std::string& subject);

}  // namespace gpu_platform::alerts
