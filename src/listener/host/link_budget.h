#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "listener/upstream.h"

namespace gpu_platform::listener {

// So much at once, and then so much each second. No clock of its own.
struct Rate {
  std::int64_t at_once = 0;
  std::int64_t per_second = 0;
};
class RateMeter {
 public:
  // The time never runs backwards. False: there is none left now.
  bool take(const Rate& rate, std::int64_t now_ms);
  // Returns whether it is as one that was never used.
  bool is_rested(const Rate& rate, std::int64_t now_ms) const;

 private:
  std::int64_t used_at(const Rate& rate, std::int64_t now_ms) const;

  std::int64_t used_milli_ = 0;
  std::int64_t at_ms_ = 0;
};

// What a listener may ask of the daemon in a time. It reads what unknown clients send, and what
// captures it must not fill the daemon's log or keep the daemon from others. One thread.
class LinkBudget {
 public:
  struct Limits {
    Rate notes{48, 1};  // fewer than the log takes of one source, so that it says why it was ended
    Rate links{8'192, 2'000};
    Rate links_of_credential{4'096, 1'000};
    std::size_t credentials = 4'096;  // told apart; all others count together
  };
  LinkBudget() : LinkBudget(Limits{}) {}
  explicit LinkBudget(const Limits& limits) : limits_(limits) {}

  // A listener that has no note left is none of ours any more: it says little.
  bool take_note(std::int64_t now_ms) { return notes_.take(limits_.notes, now_ms); }
  // False: the client is told to try again. Costs O(log credentials).
  bool take_link(const Credential& credential, std::int64_t now_ms);

 private:
  RateMeter& meter_of(const Credential& credential, std::int64_t now_ms);

  Limits limits_;
  RateMeter notes_;
  RateMeter links_;
  std::map<std::uint64_t, RateMeter> by_credential_;  // by a hash of its text
  RateMeter of_others_;
  std::int64_t forgotten_at_ms_ = 0;
};

}  // namespace gpu_platform::listener
