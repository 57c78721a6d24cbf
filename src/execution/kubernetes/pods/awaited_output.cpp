#include "execution/kubernetes/pods/awaited_output.h"

#include "base/units.h"

namespace gpu_platform::execution {

namespace {

constexpr base::Duration kOutputTimeout = base::seconds(30);

}  // namespace

void AwaitedOutput::attempt_ended(model::AttemptId attempt, std::int64_t now_ns) {
  if (!attempts_.awaits_output(attempt)) return;
  const std::lock_guard lock(mutex_);
  until_ns_[attempt] = now_ns + kOutputTimeout.value();
}

void AwaitedOutput::drop_complete() {
  std::erase_if(forgotten_, [this](model::AttemptId attempt) {
    if (attempts_.awaits_output(attempt)) return false;
    forget_(attempt);
    return true;
  });
  const std::lock_guard lock(mutex_);
  std::erase_if(until_ns_,
                [this](const auto& each) { return !attempts_.awaits_output(each.first); });
}

bool AwaitedOutput::is_awaited(model::AttemptId attempt, std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  const auto found = until_ns_.find(attempt);
  return found != until_ns_.end() && now_ns < found->second;
}

}  // namespace gpu_platform::execution
