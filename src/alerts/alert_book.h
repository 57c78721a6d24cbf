#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "alerts/evaluator.h"
#include "alerts/grouping.h"
#include "alerts/routing.h"
#include "alerts/rule_table.h"
#include "alerts/silence.h"
#include "base/result.h"

namespace gpu_platform::alerts {

// All alerts of the platform: what facts make of them, which people silence and acknowledge, and
// what channels are to be told. Each channel is told once that an alert fires, and once that it is
// over, also if the daemon is killed between.
//
// What must outlive the daemon leaves as changes of notes. One thread at a time.
class AlertBook {
 public:
  struct Settings {
    std::vector<Rule> rules;
    std::vector<Route> routes;
    std::vector<std::string> channels;  // their names, ascending
    Grouping::Limits limits;
    Grouping::Manners manners;
  };
  static constexpr std::size_t kMaxRecent = 1'000;
  static constexpr base::Duration kRecent = base::hours(24 * 7);

  explicit AlertBook(Settings settings);

  struct Note {
    std::string name;                  // "alert/…", "silence/…"
    std::optional<std::string> bytes;  // none: remove it
  };
  // Takes up what was kept. Returns how many notes could not be read.
  std::size_t restore(std::span<const Note> notes, Moment now);
  // The changes of notes since the last call.
  std::vector<Note> take_changes();

  void set(Settings settings, Moment now);
  void take(const std::string& source, std::span<const Fact> facts, Moment now);
  // Sources that tell no more are forgotten.
  void forget(const std::string& source, Moment now);
  std::vector<std::string> sources() const { return evaluator_.sources(); }

  // What is to be sent now. What it returns counts as told. What channels of kAtOnce were told is
  // among it again, at the first call and then each kRepeatEvery.
  std::vector<Notification> due(Moment now);
  // When due() has news at the earliest, on the steady clock; none: nothing waits.
  std::optional<base::Instant> next() const;
  bool has_pending() const { return evaluator_.has_pending(); }

  // Firing, then pending, then those that were resolved lately, newest first.
  std::vector<Alert> alerts(base::Instant now) const;
  std::optional<Alert> find(const std::string& fingerprint, base::Instant now) const;
  const std::vector<Rule>& rules() const { return evaluator_.rules(); }

  // Those that are not over.
  std::vector<Silence> silences(base::Instant now) const;
  // Its id is chosen here. kInvalidArgument, kResourceExhausted.
  base::Result<Silence> add(Silence silence, Moment now);
  base::Result<Silence> end_silence(std::uint64_t id, Moment now);
  // kNotFound; kFailedPrecondition: it is over.
  base::Result<Alert> acknowledge(const std::string& fingerprint, std::string by,
                                  std::string comment, base::Instant now);

 private:
  void handle(Evaluator::Transitions transitions, Moment now);
  void remember(Alert alert, Moment now);
  void drop_oldest();
  void tell_firing(const Alert& alert, Moment now);
  void look_for_untold(Moment now);
  // The channels that there are and that are told of the alert, ascending.
  std::vector<std::string> channels_of(const Alert& alert) const;
  void repeat(Moment now, std::vector<Notification>& out);
  void note(const Tracked& tracked);
  void note(const Alert& resolved);
  std::uint64_t silence_of(const Alert& alert, base::Instant now) const;
  Alert shown(const Alert& alert, base::Instant now) const;
  void mark_told(const std::string& channel, const Alert& alert);

  Settings settings_;
  Evaluator evaluator_;
  Grouping grouping_;
  std::deque<Alert> recent_;  // the newest first
  std::map<std::uint64_t, Silence> silences_;
  std::uint64_t next_silence_ = 1;
  std::optional<base::Instant> repeated_;  // on the steady clock
  std::map<std::string, Note> changes_;    // by name
};

}  // namespace gpu_platform::alerts
