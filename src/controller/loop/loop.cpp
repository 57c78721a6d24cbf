#include "controller/loop/loop.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include <pthread.h>

#include "os/clock.h"

namespace gpu_platform::controller {

Loop::Loop(Controller& controller, Clock& clock, std::function<void(const base::Error&)> on_fatal,
           LoopOptions options)
    : controller_(controller),
      clock_(clock),
      on_fatal_(std::move(on_fatal)),
      options_(options),
      meter_(os::wall_now()),
      pacer_({options.pace, options.burst}),
      snapshot_(controller.snapshot()) {
  controller_.add_listener(this);
  controller_.add_listener(&meter_);
  controller_.set_stage_observer(&meter_);
}

Loop::~Loop() {
  stop();
}

void Loop::published(const std::shared_ptr<const Snapshot>& snapshot,
                     std::span<const model::EventRecord>, const DepartedJobs&) {
  const std::lock_guard lock(mutex_);
  snapshot_ = snapshot;
}

void Loop::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "loop");
}

void Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Loop::push(Input input, Haste haste) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    is_news = haste >= listens_for_ && (inbox_.empty() || haste > haste_);
    inbox_.push_back(std::move(input));
    haste_ = std::max(haste_, haste);
  }
  if (is_news) wake_.notify_one();
}

void Loop::command(model::Command command, CommandDone done) {
  std::string_view refusal;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      refusal = "the daemon is stopping; try again when it is back";
    } else if (inbox_.size() >= options_.max_waiting_commands) {
      refusal = "too many commands are waiting for the daemon; try again in a moment";
    } else {
      inbox_.push_back(CommandInput{std::move(command), std::move(done)});
      haste_ = Haste::kNow;
    }
  }
  if (refusal.empty()) {
    wake_.notify_one();
  } else {
    done(base::fail(base::ErrorCode::kUnavailable, std::string(refusal)));
  }
}

void Loop::observe(execution::Observation observation) {
  const bool frees_nothing = std::holds_alternative<execution::Started>(observation) ||
                             std::holds_alternative<execution::Ended>(observation);
  push(std::move(observation), frees_nothing ? Haste::kNone : Haste::kPaced);
}

void Loop::change_policy(model::Policy policy, std::string by, model::Origin origin) {
  push(PolicyChange{std::move(policy), std::move(by), std::move(origin)}, Haste::kNow);
}

void Loop::drop_from_history(std::vector<model::JobId> jobs) {
  push(HistoryDrop{std::move(jobs)}, Haste::kPaced);
}

void Loop::wait_until_published() {
  std::promise<void> published;
  push(Barrier{[&published] { published.set_value(); }}, Haste::kNow);
  published.get_future().wait();
}

std::shared_ptr<const Snapshot> Loop::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

bool Loop::wait_for_work() {
  std::unique_lock lock(mutex_);
  keep_pace(lock);
  if (inbox_.empty() && !stopping_) {
    const auto has_work = [this] { return !inbox_.empty() || stopping_; };
    if (const auto wakeup = controller_.next_wakeup()) {
      // Rounded up: waking a little early would turn the rest into a busy wait.
      const base::Duration left = *wakeup - clock_.now();
      const auto wait =
          std::chrono::milliseconds(std::max<std::int64_t>(0, base::whole_milliseconds(left) + 1));
      if (!wake_.wait_for(lock, wait, has_work)) return true;
    } else {
      wake_.wait(lock, has_work);
    }
  }
  if (inbox_.empty()) return !stopping_;
  if (haste_ == Haste::kNone) {
    wait_for_haste(lock, Haste::kPaced, SteadyClock::now() + options_.batch_delay);
  }
  if (haste_ != Haste::kNow) pacer_.note_step(SteadyClock::now());
  return true;
}

// Sleeps through inputs that are less urgent.
void Loop::wait_for_haste(std::unique_lock<std::mutex>& lock, Haste haste,
                          SteadyClock::time_point end) {
  listens_for_ = haste;
  wake_.wait_until(lock, end, [&] { return haste_ >= haste || stopping_; });
  listens_for_ = Haste::kNone;
}

void Loop::keep_pace(std::unique_lock<std::mutex>& lock) {
  if (pacer_.next() <= SteadyClock::now()) return;
  if (controller_.core().state().held_attempts.size() < options_.min_paced_attempts) return;
  wait_for_haste(lock, Haste::kNow, pacer_.next());
}

void Loop::run() {
  std::vector<Input> inputs;
  while (wait_for_work()) {
    inputs.clear();
    {
      const std::lock_guard lock(mutex_);
      const std::size_t count = std::min(inbox_.size(), options_.max_inputs_per_step);
      const auto end = inbox_.begin() + static_cast<std::ptrdiff_t>(count);
      std::move(inbox_.begin(), end, std::back_inserter(inputs));
      inbox_.erase(inbox_.begin(), end);
      if (inbox_.empty()) haste_ = Haste::kNone;
    }
    const base::Instant now = clock_.now();
    meter_.begin_step(inputs.size());
    controller_.decide(inputs, now);
    meter_.decided();
    if (const base::Status committed = controller_.commit(); !committed) {
      on_fatal_(committed.error());
      return;
    }
    meter_.committed();
    controller_.publish();
    controller_.acknowledge();
    controller_.dispatch();
  }
}

}  // namespace gpu_platform::controller
