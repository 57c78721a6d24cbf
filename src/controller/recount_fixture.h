#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "accounting/usage_sum.h"
#include "controller/recount_bills_fixture.h"
#include "controller/state.h"
#include "model/budget.h"
#include "model/event.h"
#include "model/job_spec.h"

// What the books must come to, found by another way: from the events of the journal and from how
// the GPUs are between them, with no line, no clock and no meter. accounting::UsageFigures is a
// place to put sums here; none of them is made by the room.

namespace gpu_platform::controller::testing {

class Recount {
 public:
  using Owner = std::tuple<std::string, std::string, std::string>;  // user, team, GPU type
  using Held = std::map<Owner, accounting::UsageFigures>;

  // The event, before it is applied.
  void take(const State& before, const model::EventRecord& record) {
    const base::Instant at = std::max(before.at, record.at);
    close_rests(at);
    now_ = model::millis_of(at);
    std::visit([&](const auto& event) { on(before, event); }, record.event);
  }

  // The state after it.
  void look(const State& after, const model::Event& event) {
    const bool is_of_no_gpu =
        is_one_of<model::CallAudited, model::JobSubmitted, model::JobEligible,
                  model::AttemptStarted, model::BudgetsCounted, model::UseCounted, model::PriceSet,
                  model::PriceWithdrawn, model::LedgerCorrected>(event);
    if (is_of_no_gpu) return;
    std::set<Place> there;
    after.nodes.for_each([&](std::uint64_t, const model::Node& node) {
      for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
        const Place place(node.name, node.gpus[i].info.uuid);
        there.insert(place);
        gpus_[place] = gpu_of(after, node, i);
      }
    });
    std::erase_if(gpus_, [&](const auto& entry) { return !there.contains(entry.first); });
    reserved_.clear();
    for (const auto& [name, reservation] : after.books->reservations.all()) {
      for (const model::ReservationPart& part : reservation.parts) {
        reserved_.push_back({part.node, part.gpus, model::millis_of(reservation.begin),
                             model::millis_of(reservation.end)});
      }
    }
  }

  // Counts all that goes on as if it ended now. Nothing is to be taken after it.
  void end(const State& state, base::Instant at) {
    close_rests(at);
    now_ = model::millis_of(at);
    while (!running_.empty()) release(state, running_.begin()->first);
  }

  // ---- the sums, after end()
  Held held(accounting::Span span) const {
    Held sums;
    for (const auto& [id, attempt] : released_) {
      for (const RecountPart& part : attempt.parts) {
        const Owner owner(attempt.spec->user, attempt.spec->team, part.type);
        if (RecountBills::common({attempt.requested, attempt.released}, span)) {
          bills_.add(attempt, part, span, sums[owner]);
        }
      }
    }
    for (const auto& [at, correction] : corrections_) {
      if (at < span.from || at >= span.to) continue;
      sums[{correction.user, correction.team, ""}].corrections +=
          RecountBills::money(correction.amount);
    }
    return sums;
  }

  std::map<model::JobId, accounting::ExactCost> bills_of_jobs(accounting::Span span) const {
    std::map<model::JobId, accounting::ExactCost> bills;
    for (const auto& [id, attempt] : released_) bills[id.job] += bills_.bill_of(attempt, span);
    return bills;
  }

  // What counts against the budget, from the begin of its period.
  accounting::ExactCost spent(const model::BudgetState& state,
                              const model::Organisation& organisation) const {
    const accounting::Span span = {model::millis_of(state.period_begin), now_ + 1};
    const model::BudgetKey& key = state.budget.key;
    accounting::ExactCost sum;
    for (const auto& [id, attempt] : released_) {
      const model::JobSpec& spec = *attempt.spec;
      if (counts(organisation, key, spec.user, spec.team, spec.project)) {
        sum += bills_.bill_of(attempt, span);
      }
    }
    for (const auto& [at, correction] : corrections_) {
      if (at < span.from) continue;
      if (counts(organisation, key, correction.user, correction.team, correction.project)) {
        sum += RecountBills::money(correction.amount);
      }
    }
    return sum;
  }

  // GPUs that no attempt held, by kind.
  const std::vector<accounting::GpuTime>& rests() const { return rests_; }
  __int128 wall() const { return wall_; }

 private:
  using Place = std::pair<std::string, std::string>;  // the node's name, the UUID

  struct RecountGpu {
    RecountPart rest;
    model::NodeId node;
    std::uint32_t index = 0;
    model::RestKind kind = model::RestKind::kIdle;
  };
  struct Reserved {
    model::NodeId node;
    std::uint64_t gpus = 0;
    model::Millis from = 0;
    model::Millis to = 0;
  };

  template <class... Kinds>
  static bool is_one_of(const model::Event& event) {
    return (std::holds_alternative<Kinds>(event) || ...);
  }

  // ---- GPUs

  static bool is_kept(const State& state, model::NodeId node, std::uint32_t index) {
    for (const auto& [job, hold] : state.books->holds.all()) {
      for (const model::NodeAllocation& part : hold.allocation.nodes) {
        for (const model::GpuGrant& grant : part.grants) {
          if (part.node == node && grant.gpu_index == index) return true;
        }
      }
    }
    return false;
  }

  static model::RestKind kind_of(const State& state, const model::Node& node, std::uint32_t i) {
    const model::Gpu& gpu = node.gpus[i];
    const auto is_any = [&](model::NodeState of_node, model::GpuState of_gpu) {
      return node.state == of_node || gpu.state == of_gpu;
    };
    if (node.state == model::NodeState::kLost) return model::RestKind::kOffline;
    if (is_any(model::NodeState::kOffline, model::GpuState::kOffline)) {
      return model::RestKind::kOffline;
    }
    if (gpu.state == model::GpuState::kResetting) return model::RestKind::kResetting;
    if (is_any(model::NodeState::kDraining, model::GpuState::kDraining)) {
      return model::RestKind::kDraining;
    }
    if (gpu.state == model::GpuState::kDegraded) return model::RestKind::kDegraded;
    if (!gpu.taints.empty()) return model::RestKind::kOthers;
    return is_kept(state, node.id, i) ? model::RestKind::kHeld : model::RestKind::kIdle;
  }

  static RecountGpu gpu_of(const State& state, const model::Node& node, std::uint32_t i) {
    RecountGpu gpu;
    gpu.rest.node = node.name;
    gpu.rest.type = node.gpus[i].info.type;
    gpu.rest.capacity = node.capacity;
    gpu.rest.share = 7000;
    for (const model::GpuHolder& holder : node.gpus[i].holders) {
      gpu.rest.share -= holder.share.value();
    }
    gpu.node = node.id;
    gpu.index = i;
    gpu.kind = kind_of(state, node, i);
    return gpu;
  }

  // Of the time since the last event.
  void close_rests(base::Instant at) {
    const accounting::Span span = {now_, model::millis_of(at)};
    for (const auto& [place, gpu] : gpus_) {
      wall_ += static_cast<__int128>(7000) * (span.to - span.from);
      accounting::GpuTime& sum = rests_[static_cast<std::size_t>(gpu.kind)];
      if (gpu.kind != model::RestKind::kIdle) {
        bills_.add_time(gpu.rest, span, sum);
        continue;
      }
      model::Millis from = span.from;
      for (const Reserved& time : reservations_of(gpu)) {
        const auto part = RecountBills::common({time.from, time.to}, {from, span.to});
        if (!part) continue;
        bills_.add_time(gpu.rest, {from, part->from}, sum);
        bills_.add_time(gpu.rest, *part,
                        rests_[static_cast<std::size_t>(model::RestKind::kReserved)]);
        from = part->to;
      }
      bills_.add_time(gpu.rest, {from, span.to}, sum);
    }
  }

  std::vector<Reserved> reservations_of(const RecountGpu& gpu) const {
    std::vector<Reserved> found;
    for (const Reserved& time : reserved_) {
      const bool is_its = time.node == gpu.node && (time.gpus >> gpu.index & 1) != 0;
      if (is_its) found.push_back(time);
    }
    std::ranges::sort(found, {}, &Reserved::from);
    return found;
  }

  // ---- events

  template <class Event>
  void on(const State&, const Event&) {}  // of no account

  void on(const State&, const model::PolicyApplied& event) {
    bills_.follow(*event.policy.billing, now_);
  }
  void on(const State&, const model::PriceSet& event) { bills_.prices.set(event.price, now_); }
  void on(const State& before, const model::PriceWithdrawn& event) {
    bills_.prices.withdraw(*before.prices->find(event.id), now_);
  }
  void on(const State&, const model::LedgerCorrected& event) {
    corrections_.emplace_back(now_, event);
  }
  void on(const State& before, const model::StartRequested& event) {
    RecountAttempt& attempt = running_[event.attempt];
    attempt.allocation = event.allocation;
    attempt.requested = now_;
    for (const model::NodeAllocation& part : event.allocation.nodes) {
      if (part.grants.empty()) continue;
      const model::Node& node = *before.nodes.find(part.node.value);
      attempt.type = node.gpus.at(part.grants.front().gpu_index).info.type;
    }
  }
  void on(const State&, const model::AttemptStarted& event) {
    running_[event.attempt].started = model::millis_of(event.started_at);
  }
  void on(const State& before, const model::StopRequested& event) {
    RecountAttempt& attempt = running_[event.attempt];
    const model::PreemptionHold* const hold = before.books->holds.find(event.stopped_for);
    attempt.stop_reason = event.reason;
    attempt.is_reclaimed = hold != nullptr && hold->rule == model::PreemptionRule::kReclaim &&
                           std::ranges::find(hold->victims, event.attempt) != hold->victims.end();
  }
  void on(const State&, const model::AttemptEnded& event) {
    RecountAttempt& attempt = running_[event.attempt];
    attempt.ended = model::millis_of(event.ended_at);
    attempt.exit = event.exit;
    attempt.reason = event.reason;
  }
  void on(const State& before, const model::AttemptReleased& event) {
    release(before, event.attempt);
  }

  void release(const State& state, model::AttemptId id) {
    RecountAttempt attempt = std::move(running_.at(id));
    running_.erase(id);
    attempt.released = now_;
    attempt.spec = state.jobs.find(id.job.value)->spec;
    attempt.discount = bills_.discount_of_team(*state.policy->organisation, attempt.spec->team);
    attempt.cpu = bills_.cpu();
    for (const model::NodeAllocation& given : attempt.allocation.nodes) {
      const model::Node& node = *state.nodes.find(given.node.value);
      RecountPart part;
      part.node = node.name;
      part.capacity = node.capacity;
      part.not_billed = bills_.why_not_billed(attempt, part.capacity);
      if (given.grants.empty()) {
        part.cpus = given.cpus;
        part.memory_mib = (given.memory.value() + (1 << 20) - 1) / (1 << 20);
        attempt.parts.push_back(part);
        continue;
      }
      part.type = attempt.type;
      for (const model::GpuGrant& grant : given.grants) {
        part.share = grant.share.value();
        attempt.parts.push_back(part);
      }
    }
    released_.emplace(id, std::move(attempt));
  }

  static bool counts(const model::Organisation& organisation, const model::BudgetKey& key,
                     const std::string& user, std::string team, const std::string& project) {
    if (key.holder == model::QuotaHolder::kUser) return key.name == user;
    if (key.holder == model::QuotaHolder::kProject) return key.name == project;
    while (!team.empty() && team != key.name) {
      const model::Team* const known = model::find_team(organisation, team);
      team = known == nullptr ? std::string() : known->parent;
    }
    return !team.empty();
  }

  model::Millis now_ = 0;  // of the last event
  RecountBills bills_;
  std::map<Place, RecountGpu> gpus_;
  std::vector<Reserved> reserved_;
  std::map<model::AttemptId, RecountAttempt> running_;  // until they are released
  std::map<model::AttemptId, RecountAttempt> released_;
  std::vector<std::pair<model::Millis, model::LedgerCorrected>> corrections_;
  std::vector<accounting::GpuTime> rests_ = std::vector<accounting::GpuTime>(model::kRestKinds);
  __int128 wall_ = 0;
};

}  // namespace gpu_platform::controller::testing
