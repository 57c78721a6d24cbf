#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "api/core_access.h"
#include "base/units.h"
#include "model/audit.h"

namespace gpu_platform::api {

// Limits the refused calls that the audit trail records in each window of time. Calls beyond the
// limit are counted and written as one entry with the count when the window is over, so that no
// flood of them fills a disk or hides what others did.
struct RefusalLimits {
  base::Duration window = base::minutes(1);
  std::size_t max_per_user = 10;
  std::size_t max_in_all = 60;         // without those of root
  std::size_t max_counted_users = 16;  // with a count of their own; the others share one
};

// Refused calls on their way into the audit trail. Safe from any thread.
class RefusalBook {
 public:
  using Clock = std::function<base::Instant()>;
  static base::Instant present();

  explicit RefusalBook(CommandSink& sink, RefusalLimits limits = {}, Clock clock = present)
      : sink_(sink), limits_(limits), clock_(std::move(clock)) {}

  // `call` has its refusal. True: it is being written, and `written` is called once, on any
  // thread, when it is durable or cannot be. False: it is only counted.
  bool note(model::AuditedCall call, std::function<void()> written);
  // Writes the counts of a window that is over. Call it now and then.
  void tick();
  // Writes the counts that there are, at the end.
  void finish();

 private:
  struct Count {
    model::AuditedCall last;
    std::uint64_t calls = 0;
    base::Instant since;
  };
  std::vector<model::AuditedCall> take_counts();
  bool is_over(base::Instant now) const;
  bool has_capacity(std::uint32_t uid) const;
  void count(model::AuditedCall call, base::Instant now);
  void write(std::vector<model::AuditedCall> calls, std::function<void()> written);

  CommandSink& sink_;
  const RefusalLimits limits_;
  const Clock clock_;
  std::mutex mutex_;
  base::Instant window_began_;                    // guarded by mutex_, as all below
  std::map<std::uint32_t, std::size_t> written_;  // by uid
  std::size_t written_in_all_ = 0;                // without root's
  std::map<std::uint32_t, Count> counts_;         // by uid
};

}  // namespace gpu_platform::api
