#include "bin/alert_facts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "health/rule_table.h"
#include "model/job.h"
#include "views/budgets.h"

namespace gpu_platform::bin {

namespace {

using alerts::Fact;
using alerts::Signal;
using model::GpuReading;

// An XID that is not the program's fault, or that no table knows.
bool is_critical(std::uint64_t xid) {
  const auto rows = health::xid_rows();
  const auto row = std::ranges::find(rows, static_cast<std::uint32_t>(xid), &health::Rule::code);
  return row == rows.end() || row->fault != health::FaultClass::kApplication;
}

std::optional<std::int64_t> critical_xids(const GpuReading& reading) {
  std::int64_t count = 0;
  for (const auto& [xid, times] : reading.xid_counts) {
    if (is_critical(xid)) count += static_cast<std::int64_t>(times);
  }
  return count;
}

std::string latest_critical(const GpuReading& reading) {
  const auto xid = std::ranges::find_if(
      reading.xids, [](const model::SeenXid& seen) { return is_critical(seen.xid); });
  return xid == reading.xids.end() ? std::string() : fmt::format("the latest is XID {}", xid->xid);
}

template <class Value>
std::optional<std::int64_t> number(const std::optional<Value>& value) {
  return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::optional<std::int64_t> has_one_of(std::optional<std::uint64_t> reasons, std::uint64_t bits) {
  return reasons ? std::optional<std::int64_t>((*reasons & bits) != 0 ? 1 : 0) : std::nullopt;
}

std::optional<std::int64_t> memory_percent(const GpuReading& reading) {
  if (!reading.memory_used || !reading.memory_total || reading.memory_total->value() <= 0) {
    return std::nullopt;
  }
  return (*reading.memory_used * 100).value() / reading.memory_total->value();
}

// A person who takes a GPU out of service knows it.
const model::Taint* unwanted_taint(const model::Gpu& gpu) {
  if (model::find_taint(gpu.taints, model::TaintSource::kOperator) != nullptr) return nullptr;
  const auto taint = std::ranges::find_if(gpu.taints, [](const model::Taint& each) {
    const bool is_of_gpu =
        each.source == model::TaintSource::kDriver || each.source == model::TaintSource::kHealth ||
        each.source == model::TaintSource::kHooks || each.source == model::TaintSource::kReset;
    return is_of_gpu && each.effect != model::TaintEffect::kAvoided;
  });
  return taint == gpu.taints.end() ? nullptr : &*taint;
}

}  // namespace

std::shared_ptr<const GpuReading> current(std::shared_ptr<const GpuReading> reading,
                                          base::Instant now, base::Duration oldest) {
  if (reading == nullptr || !reading->problem.empty()) return nullptr;
  if (now > reading->at && now - reading->at > oldest) return nullptr;
  return reading;
}

std::shared_ptr<const alerts::Subject> NodeFacts::subject_of(const model::Node& node,
                                                             std::size_t index) {
  const model::GpuInfo& info = node.gpus[index].info;
  alerts::Labels labels = {{"node", node.name},
                           {"gpu", info.uuid},
                           {"gpu_index", std::to_string(index)},
                           {"type", info.type}};
  if (!node.network.rack.empty()) labels["rack"] = node.network.rack;
  auto& known = subjects_[info.uuid];
  if (known == nullptr || known->labels != labels) {
    known = std::make_shared<const alerts::Subject>(alerts::Subject{info.uuid, std::move(labels)});
  }
  return known;
}

void NodeFacts::add_readings(const model::Node& node, std::size_t index, base::Instant now,
                             std::vector<Fact>& out) {
  const auto subject = subject_of(node, index);
  const auto latest = reading_of_(node.gpus[index].info.uuid);
  const auto reading = current(latest, now, oldest_);
  const auto add = [&](Signal signal, std::optional<std::int64_t> value) -> Fact& {
    return out.emplace_back(Fact{.signal = signal, .subject = subject, .value = value});
  };
  static const GpuReading kNothing;
  const GpuReading& read = reading == nullptr ? kNothing : *reading;
  add(Signal::kGpuTemperature, number(read.temperature_c));
  add(Signal::kGpuMemoryHeat, number(read.memory_temperature_c));
  add(Signal::kGpuMemory, memory_percent(read));
  add(Signal::kGpuUtilization, number(read.utilization_percent));
  add(Signal::kGpuHeatSlowdown,
      has_one_of(read.throttle_reasons,
                 model::kThrottleHeatHardware | model::kThrottleHeatSoftware));
  add(Signal::kGpuThrottled,
      has_one_of(read.throttle_reasons, model::kThrottleHardware | model::kThrottlePowerBrake));
  add(Signal::kGpuEcc, number(read.ecc_uncorrected));
  // Events are counted also while the GPU does not answer.
  Fact& xids = add(Signal::kGpuXid, latest == nullptr ? std::nullopt : critical_xids(*latest));
  xids.counts_from_zero = true;
  if (xids.value && *xids.value > 0) xids.detail = latest_critical(*latest);
}

std::vector<Fact> NodeFacts::of(const model::Node& node, base::Instant now) {
  std::vector<Fact> out;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const model::Gpu& gpu = node.gpus[i];
    add_readings(node, i, now, out);
    const auto subject = subject_of(node, i);
    const model::Taint* const taint = unwanted_taint(gpu);
    out.push_back({.signal = Signal::kGpuOutOfService,
                   .subject = subject,
                   .value = taint == nullptr ? 0 : 1,
                   .detail = taint == nullptr ? std::string() : taint->text});
    const bool is_unmanaged = !gpu.unmanaged_processes.empty();
    out.push_back({.signal = Signal::kGpuUnmanaged,
                   .subject = subject,
                   .value = is_unmanaged ? 1 : 0,
                   .detail = gpu.unmanaged_processes});
  }
  alerts::Labels labels = {{"node", node.name}};
  if (!node.network.rack.empty()) labels["rack"] = node.network.rack;
  out.push_back({.signal = Signal::kNodeLost,
                 .subject = std::make_shared<const alerts::Subject>(
                     alerts::Subject{"node", std::move(labels)}),
                 .value = node.state == model::NodeState::kLost ? 1 : 0,
                 .detail = node.state == model::NodeState::kLost ? node.cause : std::string()});
  return out;
}

base::Duration longest_wait(const controller::Snapshot& snapshot, base::Instant now) {
  base::Duration longest;
  if (snapshot.counts.queued == 0) return longest;
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.state != model::JobState::kQueued || !job.eligible_at.is_set()) return;
    if (now > job.eligible_at) longest = std::max(longest, now - job.eligible_at);
  });
  return longest;
}

std::vector<Fact> budget_facts(const controller::Snapshot& snapshot, base::Instant now) {
  constexpr std::int64_t kMost = 1'000;  // of what is shown
  std::vector<Fact> out;
  for (const views::BudgetFigures& figures : views::budget_figures(snapshot, now)) {
    const model::Budget& budget = figures.state->budget;
    const __int128 percent =
        static_cast<__int128>(figures.spent.floor().value()) * 100 / budget.amount.value();
    const std::string holder(to_string(budget.key.holder));
    out.push_back(
        {.signal = Signal::kBudget,
         .subject = std::make_shared<const alerts::Subject>(alerts::Subject{
             fmt::format("budget of {} {}", holder, budget.key.name), {{holder, budget.key.name}}}),
         .value = static_cast<std::int64_t>(std::clamp<__int128>(percent, 0, kMost))});
  }
  return out;
}

}  // namespace gpu_platform::bin
