#include "outbound/worker.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "os/clock.h"

namespace gpu_platform::outbound {

Worker::Worker(Channel channel, Queue& queue, Options options, Tally tally)
    : channel_(std::move(channel)),
      queue_(queue),
      options_(std::move(options)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sender_(channel_, stop_.get()),
      tally_(std::move(tally)) {
  CHECK(stop_.is_open());
  thread_ = std::thread([this] { work(); });
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
  CHECK(eventfd_write(stop_.get(), 1) == 0);
  thread_.join();
}

void Worker::note_put(std::uint64_t dropped) {
  {
    const std::lock_guard lock(mutex_);
    tally_.dropped += dropped;
    has_work_ = true;
  }
  wake_.notify_all();
}

Worker::Tally Worker::tally() const {
  const std::lock_guard lock(mutex_);
  return tally_;
}

void Worker::work() {
  while (wait_for_turn()) deliver_next();
}

// Returns false at the end.
bool Worker::wait_for_turn() {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, next_try_, [this] { return is_ending_; });
  wake_.wait(lock, [this] { return is_ending_ || has_work_; });
  return !is_ending_;
}

void Worker::deliver_next() {
  {
    // Before the look: what is put after it sets it again.
    const std::lock_guard lock(mutex_);
    has_work_ = false;
  }
  const base::Result<std::optional<Queue::Message>> message = queue_.front(channel_.name);
  if (!message) return fail(message.error().message, {});
  if (!message->has_value()) return;
  if (unmarked_ == (*message)->id) return end(**message);
  take(**message, sender_.send((*message)->delivery));
}

void Worker::take(const Queue::Message& message, const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::Kind::kStopped:
      return;
    case Outcome::Kind::kFailed:
      return fail(outcome.problem, outcome.retry_after);
    case Outcome::Kind::kRefused: {
      warn(fmt::format("outbound channel={} message={} refused for good: {}", channel_.name,
                       message.delivery.key, outcome.problem));
      const std::lock_guard lock(mutex_);
      ++tally_.refused;
      tally_.problem = outcome.problem;
      break;
    }
    case Outcome::Kind::kSent: {
      const std::lock_guard lock(mutex_);
      ++tally_.sent;
      tally_.last_sent = os::wall_now();
      tally_.problem.clear();
      break;
    }
  }
  end(message);
}

// A message that is done and cannot be marked (a full disk) is not sent again by this process.
void Worker::end(const Queue::Message& message) {
  unmarked_ = message.id;
  if (const base::Status status = queue_.done(message); !status) {
    return fail(status.error().message, {});
  }
  unmarked_.reset();
  const std::lock_guard lock(mutex_);
  wait_ = {};
  has_work_ = true;
}

void Worker::fail(const std::string& problem, base::Duration retry_after) {
  const bool is_first = wait_ == base::Duration();
  wait_ = is_first ? options_.first_wait : wait_ * 2;
  wait_ = std::min(wait_, options_.longest_wait);
  const base::Duration rest = std::max(wait_, std::min(retry_after, options_.longest_wait));
  if (is_first) {
    warn(fmt::format("outbound channel={} failed and is tried again: {}", channel_.name, problem));
  }
  const std::lock_guard lock(mutex_);
  tally_.problem = problem;
  has_work_ = true;
  next_try_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(rest.value());
}

void Worker::warn(const std::string& line) const {
  if (options_.warn) options_.warn(line);
}

}  // namespace gpu_platform::outbound
