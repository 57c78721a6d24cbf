#include "execution/process/preflights.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "execution/job_variables.h"
#include "node/protocol.h"

namespace gpu_platform::execution {

bool Preflights::is_asked_for(const StartOrder& order) {
  return order.spec->preflight != model::Preflight::kNone &&
         std::ranges::any_of(order.nodes,
                             [](const LaunchNode& node) { return !node.gpus.empty(); });
}

void Preflights::begin(const StartOrder& order, std::int64_t now_ns) {
  Check check;
  check.is_deep = order.spec->preflight == model::Preflight::kDeep;
  check.has_nodes = order.nodes.size() > 1;
  check.began_ns = now_ns;
  for (const LaunchNode& node : order.nodes) {
    const std::vector<std::string> gpus = uuids_of(node.gpus);
    for (std::size_t at = 0; at < gpus.size(); at += node::kMaxDriverGpus) {
      const std::size_t end = std::min(at + node::kMaxDriverGpus, gpus.size());
      checks_.add(CheckBeforeStart{order.attempt,
                                   node.node_name,
                                   {gpus.begin() + static_cast<std::ptrdiff_t>(at),
                                    gpus.begin() + static_cast<std::ptrdiff_t>(end)},
                                   check.is_deep});
      ++check.open;
    }
  }
  under_way_[order.attempt] = std::move(check);
}

void Preflights::give_up(model::AttemptId attempt, std::int64_t now_ns) {
  if (under_way_.contains(attempt)) checks_.give_up(attempt, now_ns);
}

void Preflights::take(const CheckedBeforeStart& checked, Check& check) {
  const auto refuse = [&](const std::string& why) {
    if (!check.refusal.empty()) return;
    check.refusal = check.has_nodes ? fmt::format("on node {}: {}", checked.node, why) : why;
  };
  for (const node::DriverResult& result : checked.answer.gpus) {
    if (result.failure.empty()) continue;
    if (checked.answer.is_refused || checked.answer.is_untried) {
      refuse(result.failure);
    } else {
      check.unfit_gpus.push_back({checked.node, result.gpu, result.failure});
    }
  }
  if (check.detail.empty()) check.detail = checked.answer.detail;
}

std::string Preflights::note_of(const Check& check, std::int64_t now_ns) {
  const std::string_view depth = check.is_deep ? "deep" : "quick";
  if (!check.refusal.empty()) return fmt::format("{}: not done: {}", depth, check.refusal);
  const double seconds =
      static_cast<double>(now_ns - check.began_ns) / static_cast<double>(base::seconds(1).value());
  return fmt::format("{}: passed in {:.1f} s{}", depth, seconds,
                     check.detail.empty() ? "" : fmt::format(" ({})", check.detail));
}

std::vector<PreflightOutcome> Preflights::take_ended(std::int64_t now_ns) {
  std::vector<PreflightOutcome> ended;
  for (auto news = checks_.take_checked(); !news.empty(); news = checks_.take_checked()) {
    for (const CheckedBeforeStart& checked : news) {
      const auto entry = under_way_.find(checked.attempt);
      if (entry == under_way_.end()) continue;
      Check& check = entry->second;
      take(checked, check);
      if (--check.open > 0) {
        // The start is over: the other nodes need not go on.
        if (!check.unfit_gpus.empty()) checks_.give_up(checked.attempt, now_ns);
        continue;
      }
      ended.push_back({checked.attempt, std::move(check.unfit_gpus), note_of(check, now_ns)});
      under_way_.erase(entry);
    }
  }
  return ended;
}

}  // namespace gpu_platform::execution
