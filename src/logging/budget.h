#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace gpu_platform::logging {

// The source of lines. Each source has a budget of its own, so that a flood from one takes nothing
// from another.
struct Source {
  std::string name;  // "uid 1000"; as it stands in the line that tells what was dropped
  bool is_user = false;

  friend auto operator<=>(const Source&, const Source&) = default;
};

// The source of lines that a user causes. Lines that root causes are the platform's own.
Source of_user(std::uint32_t uid);
// A part of the platform: "probe of n1".
Source of_platform(std::string name);

// Limits the lines of each source. It has no clock: the time of each call is an argument, and never
// runs backwards. One thread.
class Budget {
 public:
  struct Limits {
    base::Duration window = base::seconds(60);
    std::uint64_t of_source = 60;
    std::uint64_t of_all_users = 600;  // the limit for a user with many user ids
    std::size_t sources = 4096;        // told apart; what comes from others is counted together
  };
  struct Dropped {
    std::string source;
    std::uint64_t lines = 0;
    friend bool operator==(const Dropped&, const Dropped&) = default;
  };

  explicit Budget(Limits limits) : limits_(limits) {}

  // Returns whether a line of this source may be written; if not, it is counted. Call close_if_over
  // first.
  bool take(const Source& source, base::Instant now);

  // Returns the dropped lines of a window that is over at `now`, largest count first; the next
  // window begins with the next line. Nothing while the window lasts.
  std::vector<Dropped> close_if_over(base::Instant now);
  // The same for a window that is not over.
  std::vector<Dropped> close();

  // Returns when the window is over, if there is something to report; unset: there is not.
  base::Instant due() const;

  const Limits& limits() const { return limits_; }

 private:
  struct Count {
    std::uint64_t written = 0;
    std::uint64_t dropped = 0;
  };

  Limits limits_;
  base::Instant end_;  // of the window; unset: none has begun
  std::map<Source, Count> counts_;
  std::uint64_t of_users_ = 0;
  bool has_dropped_ = false;
};

}  // namespace gpu_platform::logging
