#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

// The watchdog of the memory of parts of GPUs.

namespace gpu_platform::monitoring {

// Finds attempts whose processes together use more memory of a GPU than the attempt's part has. One
// that is over is warned, and is to stop if it grows further or is over for kPatience altogether,
// however often it falls back meanwhile. The figure of a process has what the driver adds for its
// context. What is not known is never held against an attempt: a process whose memory is withheld
// counts nothing, nor does the time between readings that are far apart.
//
// It also tells which attempts went short of memory that was theirs while another one was over. The
// failure of such an attempt may come of that.
//
// Pure; times are on a clock that never jumps. Thread: one owner. Memory: a few words for each
// attempt on the GPUs that are read.
class MemoryWatch {
 public:
  // So much more than its part is let pass, or a hundredth of the part if that is more: the
  // driver's own bookkeeping moves by some megabytes.
  static constexpr base::Bytes kTolerance{std::int64_t{64} << 20};
  static constexpr std::int64_t kTolerancePart = 100;
  static constexpr base::Duration kPatience = base::seconds(5);
  // Readings further apart do not tell what was between them.
  static constexpr base::Duration kLongestGap = base::seconds(10);
  // An attempt that was not over for so long is warned anew.
  static constexpr base::Duration kForgivenAfter = base::minutes(5);
  // A failure comes of a want of memory if it follows it so soon. Programs need a moment to end.
  static constexpr base::Duration kEndsWithin = base::seconds(30);

  struct Part {
    model::AttemptId attempt;
    base::Bytes memory;
    bool is_watched = true;  // else only what it goes short of is seen
  };
  struct Process {
    std::uint32_t pid = 0;
    std::optional<base::Bytes> memory;        // none: withheld
    std::optional<model::AttemptId> attempt;  // none: of no job
  };
  // One reading of a GPU, with all that hold a part of it.
  struct Reading {
    std::string gpu;  // UUID
    std::vector<Part> parts;
    std::optional<std::vector<Process>> processes;  // none: not told
    std::optional<base::Bytes> used;                // of the whole GPU
    std::optional<base::Bytes> total;
    base::Instant at;
  };
  enum class Step : std::uint8_t { kWarn, kStop };
  struct Excess {
    model::AttemptId attempt;
    Step step = Step::kWarn;
    base::Bytes used;
    base::Bytes part;

    friend bool operator==(const Excess&, const Excess&) = default;
  };

  // Returns what is to be done, in the order of the parts: a warning once, kStop with each reading
  // in which it is over until its part is gone. An attempt without a part any more is forgotten
  // when its failure can be no one's fault any longer. A reading that is not later than the last
  // one of its GPU says nothing.
  std::vector<Excess> take(const Reading& reading);

  // Returns whether a part of the GPU is so full, or was lately, that it should be read often.
  bool is_close(const std::string& gpu) const;

  // Returns how much the attempt used when it was last over, for the reason of its end.
  std::optional<Excess> latest_excess(model::AttemptId attempt) const;
  // Returns the attempt that was over while this one went short, if that was just now.
  std::optional<Excess> cause_of_failure(model::AttemptId attempt, base::Instant now) const;

 private:
  struct Seen {
    base::Instant read_at;
    bool is_over = false;                   // in the latest reading
    std::optional<base::Instant> over_at;   // the latest
    base::Duration over_for;                // since it was warned
    base::Bytes warned_at;                  // what it used then
    Excess latest;                          // of over_at
    std::optional<base::Instant> short_at;  // it went short of what is its
    Excess cause;                           // of short_at
  };
  struct Use {
    std::optional<base::Bytes> of(model::AttemptId attempt) const;
    std::map<model::AttemptId, base::Bytes> by_attempt;
  };

  static Use use_of(const Reading& reading);
  std::optional<Excess> look_at(const Part& part, base::Bytes used, base::Instant at);
  void find_who_goes_short(const Reading& reading, const Use& use);
  void forget(const Reading& reading);

  std::map<model::AttemptId, Seen> attempts_;
  std::map<std::string, base::Instant, std::less<>> read_at_;  // by GPU
  std::map<std::string, bool, std::less<>> is_close_;          // by GPU
};

}  // namespace gpu_platform::monitoring
