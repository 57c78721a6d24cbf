#include "host/slow_calls.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace gpu_platform::host {

namespace {

using Clock = std::chrono::steady_clock;

struct Call {
  std::uint32_t user = 0;
  std::function<void()> work;
  SlowCalls::End end;
  Clock::time_point deadline;
  bool is_answered = false;
};

}  // namespace

class SlowCalls::State : public std::enable_shared_from_this<State> {
 public:
  State(std::string what, Limits limits) : what_(std::move(what)), limits_(limits) {}

  void run(std::uint32_t user, std::function<void()> work, End end) {
    auto call = std::make_shared<Call>();
    call->user = user;
    call->work = std::move(work);
    call->end = std::move(end);
    call->deadline = Clock::now() + limits_.deadline;
    std::unique_lock lock(mutex_);
    if (is_stopping_) return;
    const bool is_full =
        waiting_.size() >= limits_.waiting || of_user_[user].waiting >= limits_.waiting_of_user;
    if (is_full) {
      forget_idle(user);
      lock.unlock();
      return call->end(base::fail(
          base::ErrorCode::kResourceExhausted,
          fmt::format("too many calls wait for {} already; try again in a moment", what_)));
    }
    waiting_.push_back(call);
    ++of_user_[user].waiting;
    by_deadline_.push_back(std::move(call));
    if (by_deadline_.size() == 1) late_.notify_one();
    // An idle thread that was woken for an earlier call still counts as idle.
    if (waiting_.size() > idle_ && threads_ < limits_.threads) begin_thread();
    if (!std::exchange(has_timer_, true)) begin_timer();
    work_.notify_one();
  }

  // Threads that are not in a call end; answers that are being given are waited for.
  void stop() {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    waiting_.clear();
    by_deadline_.clear();
    work_.notify_all();
    late_.notify_all();
    gone_.wait(lock, [this] { return threads_ == working_ && !has_timer_ && answering_ == 0; });
  }

 private:
  struct OfUser {
    std::size_t working = 0;
    std::size_t waiting = 0;
  };

  // Each thread holds the state: one that hangs may outlive its owner.
  void begin_thread() {
    ++threads_;
    std::thread([self = shared_from_this()] { self->work(); }).detach();
  }
  void begin_timer() {
    std::thread([self = shared_from_this()] { self->watch_deadlines(); }).detach();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
      const auto call = take();
      if (call == nullptr) {
        ++idle_;
        work_.wait(lock);
        --idle_;
        continue;
      }
      ++working_;
      lock.unlock();
      call->work();
      call->work = nullptr;
      lock.lock();
      --working_;
      --of_user_[call->user].working;
      forget_idle(call->user);
      answer(*call, {}, lock);
      // Another call of this user may have waited for its turn.
      if (!waiting_.empty()) work_.notify_one();
    }
    --threads_;
    gone_.notify_all();
  }

  // Returns the first call of a user with a thread left; null if there is none.
  std::shared_ptr<Call> take() {
    const auto found = std::ranges::find_if(waiting_, [this](const auto& call) {
      return of_user_[call->user].working < limits_.of_user;
    });
    if (found == waiting_.end()) return nullptr;
    const auto call = *found;
    waiting_.erase(found);
    OfUser& user = of_user_[call->user];
    --user.waiting;
    ++user.working;
    return call;
  }

  // Deadlines come in the order of the questions.
  void watch_deadlines() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
      while (!by_deadline_.empty() && by_deadline_.front()->is_answered) by_deadline_.pop_front();
      if (by_deadline_.empty()) {
        late_.wait(lock);
        continue;
      }
      const auto call = by_deadline_.front();
      if (Clock::now() < call->deadline) {
        late_.wait_until(lock, call->deadline);
        continue;
      }
      by_deadline_.pop_front();
      if (std::erase(waiting_, call) != 0) {
        --of_user_[call->user].waiting;
        forget_idle(call->user);
      }
      answer(*call,
             base::fail(base::ErrorCode::kUnavailable,
                        fmt::format("{} does not answer; try again in a moment", what_)),
             lock);
    }
    has_timer_ = false;
    gone_.notify_all();
  }

  void answer(Call& call, base::Status status, std::unique_lock<std::mutex>& lock) {
    if (is_stopping_ || std::exchange(call.is_answered, true)) return;
    ++answering_;
    lock.unlock();
    call.end(std::move(status));
    call.end = nullptr;
    lock.lock();
    --answering_;
    if (is_stopping_) gone_.notify_all();
  }

  void forget_idle(std::uint32_t user) {
    const auto found = of_user_.find(user);
    if (found == of_user_.end()) return;
    if (found->second.working == 0 && found->second.waiting == 0) of_user_.erase(found);
  }

  const std::string what_;
  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable late_;
  std::condition_variable gone_;
  std::deque<std::shared_ptr<Call>> waiting_;
  std::deque<std::shared_ptr<Call>> by_deadline_;  // answered ones too, until their turn comes
  std::map<std::uint32_t, OfUser> of_user_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  std::size_t working_ = 0;    // in a call, which may hang
  std::size_t answering_ = 0;  // in an answer, which does not
  bool has_timer_ = false;
  bool is_stopping_ = false;
};

SlowCalls::SlowCalls(std::string what, Limits limits)
    : state_(std::make_shared<State>(std::move(what), limits)) {}

SlowCalls::~SlowCalls() {
  state_->stop();
}

void SlowCalls::run(std::uint32_t user, std::function<void()> work, End end) {
  state_->run(user, std::move(work), std::move(end));
}

}  // namespace gpu_platform::host
