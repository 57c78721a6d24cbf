#include "api/refusal_book.h"

#include <limits>
#include <utility>

#include "os/clock.h"

namespace gpu_platform::api {

namespace {

// Stands for the users past those with a count of their own; no user has it.
constexpr std::uint32_t kOthers = std::numeric_limits<std::uint32_t>::max();

}  // namespace

base::Instant RefusalBook::present() {
  return os::wall_now();
}

bool RefusalBook::is_over(base::Instant now) const {
  return now < window_began_ || now - window_began_ >= limits_.window;
}

bool RefusalBook::has_capacity(std::uint32_t uid) const {
  const auto own = written_.find(uid);
  if (own != written_.end() && own->second >= limits_.max_per_user) return false;
  return uid == 0 || written_in_all_ < limits_.max_in_all;
}

bool RefusalBook::note(model::AuditedCall call, std::function<void()> written) {
  std::vector<model::AuditedCall> calls;
  {
    const std::lock_guard lock(mutex_);
    const base::Instant now = clock_();
    if (is_over(now)) {
      calls = take_counts();
      window_began_ = now;
    }
    const std::uint32_t uid = call.by.uid;
    if (!has_capacity(uid)) {
      count(std::move(call), now);
      return false;
    }
    ++written_[uid];
    if (uid != 0) ++written_in_all_;
    calls.push_back(std::move(call));
  }
  write(std::move(calls), std::move(written));
  return true;
}

void RefusalBook::count(model::AuditedCall call, base::Instant now) {
  const bool has_own = counts_.contains(call.by.uid) || counts_.size() < limits_.max_counted_users;
  if (!has_own) call.by = {call.by.door, "others", kOthers, 0};
  Count& count = counts_[call.by.uid];
  if (count.calls++ == 0) count.since = now;
  count.last = std::move(call);
}

std::vector<model::AuditedCall> RefusalBook::take_counts() {
  std::vector<model::AuditedCall> calls;
  for (auto& [uid, count] : counts_) {
    count.last.calls = count.calls;
    count.last.since = count.since;
    calls.push_back(std::move(count.last));
  }
  counts_.clear();
  written_.clear();
  written_in_all_ = 0;
  return calls;
}

void RefusalBook::tick() {
  std::vector<model::AuditedCall> calls;
  {
    const std::lock_guard lock(mutex_);
    const base::Instant now = clock_();
    if (!is_over(now)) return;
    calls = take_counts();
    window_began_ = now;
  }
  write(std::move(calls), {});
}

void RefusalBook::finish() {
  std::vector<model::AuditedCall> calls;
  {
    const std::lock_guard lock(mutex_);
    calls = take_counts();
  }
  write(std::move(calls), {});
}

void RefusalBook::write(std::vector<model::AuditedCall> calls, std::function<void()> written) {
  if (calls.empty()) return;
  sink_.submit({{}, model::RecordCalls{std::move(calls)}},
               [written = std::move(written)](const base::Result<model::CommandReply>&) {
                 if (written) written();
               });
}

}  // namespace gpu_platform::api
