#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "controller/core.h"
#include "controller/test_support.h"

namespace gpu_platform::controller::testing {

inline constexpr base::Duration kGrace = base::seconds(30);  // what most of these sites grant

// A cluster of a few nodes of eight GPUs on virtual time: jobs run for as long as they like up to
// their limits, and give everything back at once; those that are told to stop take all of the
// grace.
class VirtualSite {
 public:
  static constexpr std::uint32_t kGpusOfNode = 8;

  VirtualSite(std::uint64_t seed, std::uint64_t max_nodes)
      : random_(seed), nodes_(1 + random_.below(max_nodes)) {}
  virtual ~VirtualSite() = default;

  // Call it before anything else.
  // Its users may ask for any priority.
  void begin(model::Policy policy) {
    policy.highest_user_priority = model::PriorityClass::kCritical;
    grace_ = policy.stop_grace;
    core_.apply_policy(policy, "test", now_);
    for (std::uint64_t i = 0; i < nodes_; ++i) {
      model::NodeInfo info = node_info("n" + std::to_string(i), kGpusOfNode);
      equip(i, info);
      core_.observe(execution::NodeObserved{std::move(info)}, now_);
    }
  }

  base::Prng& random() { return random_; }
  std::uint64_t nodes() const { return nodes_; }
  const State& state() const { return core_.state(); }
  std::shared_ptr<const Snapshot> snapshot() { return core_.snapshot(); }
  base::Instant now() const { return now_; }

  // Refused ones change nothing.
  void command(const model::Command& command) {
    (void)core_.command(command, now_, store::Headroom::kAmple);
    settle();
  }

  model::JobId submit(const model::JobSpec& spec) {
    const auto reply = try_submit(spec);
    EXPECT_TRUE(reply.has_value()) << (reply ? "" : reply.error().message);
    return reply ? reply->job : model::JobId();
  }
  // The same for a job that may be refused, as one that could never run.
  base::Result<model::CommandReply> try_submit(const model::JobSpec& spec) {
    auto reply = core_.command(submission(spec), now_, store::Headroom::kAmple);
    settle();
    return reply;
  }

  // Everything that happens in so long; `each` is called after every step.
  template <class Each>
  void pass(base::Duration time, const Each& each) {
    const base::Instant until = now_ + time;
    while (true) {
      base::Instant next = until;
      if (const auto wakeup = core_.next_wakeup()) next = std::min(next, std::max(*wakeup, now_));
      if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
      now_ = next;
      const bool is_over = next == until;
      if (!ends_.empty() && ends_.begin()->first <= now_) end_first();
      settle();
      each();
      if (is_over) return;
    }
  }

 protected:
  // How long the attempt runs, which is at most its limit.
  virtual base::Duration run_time(const execution::StartOrder& start) {
    const auto most = static_cast<std::uint64_t>(start.time_limit.value() / 1'000'000'000);
    return base::seconds(static_cast<std::int64_t>(1 + random_.below(most)));
  }
  // May give the node other GPUs than H100.
  virtual void equip(std::uint64_t, model::NodeInfo&) {}
  virtual void on_start(const execution::StartOrder&) {}
  virtual void on_stop(const execution::StopOrder&) {}
  virtual void on_event(const model::Event&) {}

 private:
  void end_first() {
    const model::AttemptId id = ends_.begin()->second;
    ends_.erase(ends_.begin());
    core_.observe(ended(id, 0, now_), now_);
    core_.observe(execution::Cleaned{id}, now_);
  }

  // Each news has its cycle, as in the daemon.
  void settle() {
    while (true) {
      core_.advance(now_);
      const Batch batch = core_.take_batch();
      for (const model::EventRecord& record : batch.events) on_event(record.event);
      if (batch.effects.empty()) return;
      for (const Effect& effect : batch.effects) {
        if (const auto* start = std::get_if<execution::StartOrder>(&effect)) run(*start);
        if (const auto* stop = std::get_if<execution::StopOrder>(&effect)) end_after_grace(*stop);
      }
    }
  }

  void run(const execution::StartOrder& start) {
    execution::Started started;
    started.attempt = start.attempt;
    started.at = now_;
    core_.observe(started, now_);
    ends_.emplace(now_ + run_time(start), start.attempt);
    on_start(start);
  }

  void end_after_grace(const execution::StopOrder& stop) {
    std::erase_if(ends_, [&](const auto& entry) { return entry.second == stop.attempt; });
    ends_.emplace(now_ + grace_, stop.attempt);
    on_stop(stop);
  }

  base::Prng random_;
  std::uint64_t nodes_;
  Core core_;
  base::Instant now_ = kNoon;
  base::Duration grace_;
  std::multimap<base::Instant, model::AttemptId> ends_;
};

}  // namespace gpu_platform::controller::testing
