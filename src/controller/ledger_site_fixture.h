#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "controller/core.h"
#include "controller/ledger_draws_fixture.h"
#include "controller/recount_fixture.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller::testing {

inline std::string text_of(const model::LedgerLine& line) {
  return fmt::format("{} {} {} {} x{} price {} {} {} {} {} {} job {}/{} segment {} {}/{} {} -{}",
                     static_cast<int>(line.kind), line.node, line.gpu_uuid, line.gpu_type,
                     line.share.value(), line.price, line.from, line.started, line.ended, line.to,
                     to_string(line.rest), line.attempt.job.value, line.attempt.attempt,
                     line.segment, line.user, line.team, to_string(line.not_billed), line.discount);
}

// Where the lines differ first; empty: nowhere.
inline std::string first_difference(const std::vector<model::LedgerLine>& is,
                                    const std::vector<model::LedgerLine>& should_be) {
  const auto [a, b] = std::ranges::mismatch(is, should_be);
  if (a == is.end() && b == should_be.end()) return {};
  return fmt::format("line {}:\n  {}\nshould be\n  {}", a - is.begin(),
                     a == is.end() ? "missing" : text_of(*a),
                     b == should_be.end() ? "missing" : text_of(*b));
}

// A small site to which everything happens that changes what is owed: jobs of all kinds,
// an engine that starts and ends them in all ways and tells of it late, nodes that are lost, GPUs
// that come, go and are taken out, reservations, prices, discounts, budgets, corrections, and
// restarts. `lines` are those that the core has added; a state beside it, made of the events alone,
// must make the same.
class LedgerSite : private LedgerDraws {
 public:
  explicit LedgerSite(std::uint64_t seed) : LedgerDraws(seed) {
    // Shortly before a month, a year or a leap day ends, and at any time.
    constexpr std::int64_t kBegins[] = {1'700'000'000, 1'793'491'200, 1'798'761'600, 1'835'481'600};
    now_ = base::Instant(kBegins[below(std::size(kBegins))] * 1'000'000'000);
    now_ = now_ + base::seconds(-1 - static_cast<std::int64_t>(below(7200)));
    begin_ = now_;
    policy_ = drawn_policy(now_);
    core_->apply_policy(policy_, "test", now_);
    infos_ = drawn_nodes();
    for (const model::NodeInfo& info : infos_) see(execution::NodeObserved{info});
    settle();
  }

  void run() {
    for (std::uint64_t steps = 4 + below(6); steps > 0 && difference.empty(); --steps) {
      pass_time();
      act();
      if (chance(1, 2)) act();
      for (std::uint64_t news = below(4); news > 0; --news) tell();
      settle();
      if (difference.empty() && chance(1, 16)) restart();
    }
    recount_.end(replayed_, now_);
  }

  const State& state() const { return core_->state(); }
  const Recount& recount() const { return recount_; }
  base::Instant begin() const { return begin_; }
  base::Instant now() const { return now_; }

  std::vector<model::LedgerLine> lines;
  std::string difference;  // between the core's lines and those of the events; empty: none

 private:
  // ---- what people do

  void act() {
    switch (below(20)) {
      default:
        return submit();
      case 0:
        return operate();
      case 1:
        return reserve();
      case 2:
        return change_node();
      case 3:
        return command(model::SetPrice{drawn_price(now_)});
      case 4:
        return withdraw();
      case 5:
        return change_policy();
      case 6:
        return correct();
      case 7:
        return stop();
      case 8:
        return bring_processes();
    }
  }

  // Refused ones change nothing.
  template <class Body>
  void command(Body body) {
    (void)core_->command({kAdministrator, std::move(body)}, now_, store::Headroom::kAmple);
  }

  void submit() {
    const model::JobSpec spec = drawn_spec();
    (void)core_->command(submission(spec), now_, store::Headroom::kAmple);
  }

  void stop() {
    if (state().last_job_id == 0) return;
    const model::JobId job(1 + below(state().last_job_id));
    const model::JobAction action = one_of<model::JobAction>(
        {model::JobAction::kCancel, model::JobAction::kKill, model::JobAction::kRequeue});
    command(model::ActOnJob{job, action});
  }

  void operate() {
    const model::NodeInfo& node = infos_[below(infos_.size())];
    model::GpuSelector which{.node = node.name};
    if (!node.gpus.empty() && chance(2, 3)) which.index = number_below(node.gpus.size());
    const model::GpuAction action =
        one_of<model::GpuAction>({model::GpuAction::kDrain, model::GpuAction::kTakeOffline,
                                  model::GpuAction::kBringOnline, model::GpuAction::kBringOnline});
    command(model::ChangeGpus{std::move(which), action, "by an operator", chance(1, 2)});
  }

  void reserve() {
    const std::string name = "r" + std::to_string(below(2));
    if (chance(1, 3)) return command(model::CancelReservation{name});
    if (chance(1, 3)) {
      model::ChangeReservation change;
      change.name = name;
      change.force = change.ignore_running = true;
      if (chance(1, 2)) change.begin = now_ + drawn_seconds(3600);
      if (chance(1, 2)) change.duration = drawn_seconds(3600);
      return command(std::move(change));
    }
    model::MakeReservation made;
    made.name = name;
    made.begin = now_ + drawn_seconds(3600);
    made.duration = drawn_seconds(7200);
    made.maintenance = chance(1, 2);
    if (!made.maintenance) made.users = {"ann"};
    made.ignore_running = made.force = true;
    made.nodes = {infos_[below(infos_.size())].name};
    if (chance(1, 2)) made.gpus_per_node = 1;
    command(std::move(made));
  }

  // Of those that were set at run time and count now.
  void withdraw() {
    std::vector<std::uint32_t> ids;
    for (const model::PriceEntry& entry : state().prices->entries) {
      const bool is_set = !entry.by.empty() && entry.derived_from == 0;
      if (is_set && !model::has_ended(entry, now_)) ids.push_back(entry.id);
    }
    if (!ids.empty()) command(model::WithdrawPrice{ids[below(ids.size())]});
  }

  void change_policy() {
    policy_.billing = drawn_billing(now_);
    if (chance(1, 2)) policy_.budgets = drawn_budgets();
    core_->apply_policy(policy_, "test", now_);
  }

  void correct() {
    model::CorrectLedger correction;
    correction.team = one_of<std::string>({"a", "b", "c"});
    if (chance(1, 2)) correction.user = "ann";
    if (chance(1, 2)) correction.project = "p";
    correction.amount = base::MicroUsd(1 + static_cast<std::int64_t>(below(9'000'000)));
    if (chance(1, 2)) correction.amount = correction.amount * -1;
    correction.text = "the switch was down";
    command(std::move(correction));
  }

  // ---- what happens to nodes

  void change_node() {
    model::NodeInfo& info = infos_[below(infos_.size())];
    switch (below(6)) {
      case 0:
        return see(execution::NodeUnreachable{info.name, "no news"});
      case 1:
        info.boot_id += "x";
        break;
      case 2:
        info.capacity = static_cast<model::CapacityClass>(below(model::kCapacityClasses));
        break;
      case 3:
        if (info.gpus.size() > 1) info.gpus.erase(info.gpus.begin());
        break;
      case 4:
        if (info.gpus.size() == 1) info.gpus.push_back(drawn_gpu(info.gpus.front().type));
        break;
      default:
        break;  // it only tells again
    }
    see(execution::NodeObserved{info});
  }

  void bring_processes() {
    const model::NodeInfo& info = infos_[below(infos_.size())];
    if (info.gpus.empty()) return;
    const std::string& uuid = info.gpus[below(info.gpus.size())].uuid;
    see(execution::UnmanagedProcessesObserved{info.name, uuid, chance(2, 3) ? "pid 7 of eve" : ""});
  }

  // ---- the engine

  void see(execution::Observation observation) { core_->observe(observation, now_); }

  // The next that becomes of an attempt.
  void tell() {
    if (runs_.empty()) return;
    const auto chosen = std::next(runs_.begin(), static_cast<std::ptrdiff_t>(below(runs_.size())));
    const model::AttemptId id = chosen->first;
    EngineRun& run = chosen->second;
    if (run.has_ended) {
      see(execution::Cleaned{id});
      runs_.erase(chosen);
      return;
    }
    if (!run.has_started && !run.stop && chance(5, 6)) {
      run.has_started = true;
      return see(execution::Started{id, 5, drawn_past(now_)});
    }
    execution::Ended ended = drawn_end(run, now_);
    ended.attempt = id;
    see(std::move(ended));
    run.has_ended = true;
  }

  // ---- time

  void pass_time() {
    constexpr std::uint64_t kMost[] = {1, 1'000, 60'000, 3'600'000, 36'000'000};
    const std::uint64_t ms = below(one_of(kMost) + 1);
    now_ = now_ + base::milliseconds(static_cast<std::int64_t>(ms));
    now_ = base::Instant(now_.unix_ns() + static_cast<std::int64_t>(below(1'000'000)));
  }

  void settle() {
    core_->advance(now_);
    const Batch batch = core_->take_batch();
    OwnOutbox made;
    for (const model::EventRecord& record : batch.events) {
      recount_.take(replayed_, record);
      apply(replayed_, record, made);
      recount_.look(replayed_, record.event);
    }
    difference = first_difference(batch.ledger, made.ledger);
    events_.insert(events_.end(), batch.events.begin(), batch.events.end());
    lines.insert(lines.end(), batch.ledger.begin(), batch.ledger.end());
    for (const Effect& effect : batch.effects) {
      if (const auto* start = std::get_if<execution::StartOrder>(&effect)) {
        runs_.try_emplace(start->attempt);
      } else if (const auto* stop = std::get_if<execution::StopOrder>(&effect)) {
        const auto run = runs_.find(stop->attempt);
        if (run != runs_.end()) run->second.stop = stop->reason;
      }
    }
  }

  // The next process begins with the events, or with a snapshot.
  void restart() {
    std::vector<model::LedgerLine> again;
    if (chance(1, 2)) {
      auto decoded = decode_state(encode_state(core_->state()));
      ASSERT_TRUE(decoded) << decoded.error().message;
      core_.emplace(*std::move(decoded));
      return;
    }
    core_.emplace();
    for (const model::EventRecord& record : events_) {
      const std::vector<model::LedgerLine> made = core_->replay(record);
      again.insert(again.end(), made.begin(), made.end());
    }
    difference = first_difference(again, lines);
    const bool is_same = encode_state(core_->state()) == encode_state(replayed_);
    if (difference.empty() && !is_same) difference = "the events make another state";
  }

  base::Instant begin_;
  base::Instant now_;
  model::Policy policy_;
  std::vector<model::NodeInfo> infos_;
  std::optional<Core> core_ = Core();
  State replayed_;
  Recount recount_;
  std::vector<model::EventRecord> events_;
  std::map<model::AttemptId, EngineRun> runs_;  // that the engine has not cleaned up
};

}  // namespace gpu_platform::controller::testing
