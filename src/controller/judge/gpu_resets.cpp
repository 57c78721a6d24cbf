#include "controller/judge/gpu_resets.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/engine_kind.h"
#include "model/node_lookup.h"
#include "model/topology.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Taint;
using model::TaintEffect;
using model::TaintSource;

using model::GpuRepair;
using model::TrialCode;

namespace {

const Taint* reset_of(const model::Gpu& gpu) {
  return model::find_taint(gpu.taints, TaintSource::kReset);
}

bool is_being_reset(const model::Gpu& gpu) {
  const Taint* const own = reset_of(gpu);
  return own != nullptr && own->effect == TaintEffect::kOut;
}

bool is_check(const Taint& own) {
  return own.repair != GpuRepair::kReset;
}

// What an operator orders.
GpuRepair repair_of(const model::ChangeGpus& command) {
  if (command.action != model::GpuAction::kCheck) return GpuRepair::kReset;
  return command.deep ? GpuRepair::kDeepCheck : GpuRepair::kQuickCheck;
}

// The GPUs that are taken from work with it. A check concerns no other.
std::vector<std::uint32_t> group_of(const model::Node& node, std::uint32_t gpu, GpuRepair repair) {
  if (repair != GpuRepair::kReset) return {gpu};
  return reset_group(node, gpu);
}

std::string_view what_waits(GpuRepair repair) {
  return repair == GpuRepair::kReset ? "it is reset when no job has it: "
                                     : "it is checked when no job has it: ";
}

std::string_view what_is_done(GpuRepair repair) {
  return repair == GpuRepair::kReset ? "it is being reset: " : "it is being checked: ";
}

std::set<std::uint32_t> with_groups(const model::Node& node, const std::vector<std::uint32_t>& gpus,
                                    GpuRepair repair) {
  std::set<std::uint32_t> all;
  for (const std::uint32_t gpu : gpus) {
    const std::vector<std::uint32_t> group = group_of(node, gpu, repair);
    all.insert(group.begin(), group.end());
  }
  return all;
}

std::unexpected<base::Error> no_repair(const model::Node& node, GpuRepair repair,
                                       std::string_view why) {
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("GPUs of node {} cannot be {}: {}", node.name,
                                repair == GpuRepair::kReset ? "reset" : "checked", why),
                    "action");
}

base::Status check_place(const State& state, const model::Node& node, GpuRepair repair) {
  if (repair == GpuRepair::kReset && state.policy->health_reset == model::HealthReset::kNever) {
    return no_repair(node, repair,
                     "health.reset is never; an administrator sets it to ask or auto");
  }
  if (!model::traits_of(node.engine).is_on_this_machine) {
    return no_repair(node, repair,
                     repair == GpuRepair::kReset ? "its cluster owns them; reset them there"
                                                 : "its cluster owns them; check them there");
  }
  if (!model::is_heard(node)) {
    return no_repair(node, repair, "it does not report; check its launcher and its network");
  }
  return {};
}

std::vector<model::AttemptId> holders_of(const model::Node& node,
                                         const std::set<std::uint32_t>& gpus) {
  std::set<model::AttemptId> holders;
  for (const std::uint32_t gpu : gpus) {
    for (const model::GpuHolder& holder : node.gpus.at(gpu).holders) holders.insert(holder.attempt);
  }
  return {holders.begin(), holders.end()};
}

bool is_empty_group(const model::Node& node, const std::vector<std::uint32_t>& group) {
  return std::ranges::all_of(group, [&](std::uint32_t gpu) {
    return reset_of(node.gpus.at(gpu)) != nullptr && node.gpus[gpu].holders.empty();
  });
}

// A check under way ends first: what is reset with others is reset with all of them. One that waits
// makes room for a reset, and not the other way round.
base::Status check_not_under_way(const model::Node& node, const std::set<std::uint32_t>& gpus,
                                 GpuRepair repair) {
  if (repair != GpuRepair::kReset) return {};
  for (const std::uint32_t index : gpus) {
    const model::Gpu& gpu = node.gpus.at(index);
    if (!is_being_reset(gpu) || !is_check(*reset_of(gpu))) continue;
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("GPU {} of node {} cannot be reset: it is being checked; wait "
                                  "until that has ended",
                                  index, node.name),
                      "action");
  }
  return {};
}

bool has_check(const model::Node& node, const std::vector<std::uint32_t>& group) {
  return std::ranges::any_of(group, [&](std::uint32_t gpu) {
    return is_being_reset(node.gpus.at(gpu)) && is_check(*reset_of(node.gpus[gpu]));
  });
}

model::Event ordered(model::GpuRef gpu, GpuRepair repair, const std::string& text,
                     const std::string& by) {
  return model::TaintChanged{gpu.node,
                             gpu.index,
                             {TaintSource::kReset,
                              TaintEffect::kNoNewWork,
                              fmt::format("{}{}", what_waits(repair), text),
                              by,
                              {},
                              {},
                              repair}};
}

Events order_repairs(const State& state, const std::set<model::GpuRef>& gpus, GpuRepair repair,
                     const std::string& text, const std::string& by) {
  std::set<model::GpuRef> all;
  for (const model::GpuRef gpu : gpus) {
    const model::Node& node = *state.nodes.find(gpu.node.value);
    for (const std::uint32_t index : group_of(node, gpu.index, repair)) {
      all.insert({gpu.node, index});
    }
  }
  Events events;
  for (const model::GpuRef gpu : all) {
    const Taint* const own = reset_of(state.nodes.find(gpu.node.value)->gpus.at(gpu.index));
    const bool makes_room = own != nullptr && is_check(*own) && repair == GpuRepair::kReset &&
                            own->effect == TaintEffect::kNoNewWork;
    if (own == nullptr || makes_room) events.push_back(ordered(gpu, repair, text, by));
  }
  return events;
}

// Whether a check has answered what has degraded it, or too many checks have been.
bool was_checked_enough(const model::Gpu& gpu, base::Instant degraded_at, base::Instant now) {
  if (now < refused_until(gpu, model::EvidenceKind::kCheck)) return true;
  std::size_t checks = 0;
  for (const model::Evidence& piece : *gpu.evidence) {
    if (piece.kind != model::EvidenceKind::kCheck || model::is_refused_trial(piece)) continue;
    if (piece.last >= degraded_at) return true;
    if (now - piece.last <= kResetsWithin) checks += piece.count;
  }
  return checks >= kMaxResets;
}

base::Duration untried_for(std::uint64_t times) {
  base::Duration wait = kUntriedFor;
  for (; times > 1 && wait < kMaxUntriedFor; --times) wait = wait * 2;
  return std::min(wait, kMaxUntriedFor);
}

model::Evidence platform_piece(model::EvidenceKind kind, base::Instant now) {
  model::Evidence piece;
  piece.kind = kind;
  piece.source = model::EvidenceSource::kPlatform;
  piece.at = now;
  piece.last = now;
  return piece;
}

}  // namespace

std::vector<std::uint32_t> reset_group(const model::Node& node, std::uint32_t gpu) {
  constexpr std::uint32_t kHopper = 9;
  std::set<std::uint32_t> group{gpu};
  // One whose generation is not known counts as an old one: more GPUs are kept free then.
  if (node.gpus.at(gpu).info.compute_major.value_or(0) >= kHopper) return {gpu};
  std::vector<std::uint32_t> added{gpu};
  while (!added.empty()) {
    const std::uint32_t from = added.back();
    added.pop_back();
    for (std::uint32_t other = 0; other < node.gpus.size(); ++other) {
      const bool is_with_it = other != from && node.gpus[other].is_reported &&
                              model::link_between(node.topology, node.gpus.size(),
                                                  std::min(from, other), std::max(from, other))
                                      .kind == model::LinkKind::kNvLink;
      if (is_with_it && group.insert(other).second) added.push_back(other);
    }
  }
  return {group.begin(), group.end()};
}

base::Result<Events> judge_reset(const State& state, model::NodeId id,
                                 const std::vector<std::uint32_t>& gpus,
                                 const model::ChangeGpus& command, const std::string& by) {
  const model::Node& node = *state.nodes.find(id.value);
  const GpuRepair repair = repair_of(command);
  TRY(check_place(state, node, repair));
  const std::set<std::uint32_t> all = with_groups(node, gpus, repair);
  TRY(check_not_under_way(node, all, repair));
  const std::vector<model::AttemptId> holders = holders_of(node, all);
  if (!holders.empty() && !command.when_empty && !command.force) {
    const std::string others =
        all.size() > gpus.size() ? ", and the GPUs that are reset with it" : "";
    const std::string_view what = repair == GpuRepair::kReset ? "reset" : "check";
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("GPU {} of node {}{}: a {} would end job {}{}; use --when-empty, which waits "
                    "until no job has it, or --force, which stops its jobs and queues them again",
                    gpus.front(), node.name, others, what, holders.front().job.value,
                    holders.size() > 1 ? fmt::format(" and {} more", holders.size() - 1) : ""),
        "force");
  }
  std::set<model::GpuRef> places;
  for (const std::uint32_t gpu : gpus) places.insert({id, gpu});
  const std::string text = command.reason.empty() ? "an operator asked for it" : command.reason;
  Events events = order_repairs(state, places, repair, text, by);
  if (!command.force) return events;
  for (const model::AttemptId holder : holders) {
    if (is_told_to_stop(state, holder)) continue;
    events.push_back(model::StopRequested{holder, model::EndReason::kGpuOffline, false, by});
  }
  return events;
}

Events order_resets(const State& state, const std::set<model::GpuRef>& gpus,
                    const std::string& text, const std::string& by) {
  return order_repairs(state, gpus, GpuRepair::kReset, text, by);
}

Events order_first_checks(const State& state, const std::set<model::GpuRef>& gpus) {
  std::set<model::GpuRef> free;
  for (const model::GpuRef place : gpus) {
    const model::Node& node = *state.nodes.find(place.node.value);
    const model::Gpu& gpu = node.gpus.at(place.index);
    // What another party keeps from work is not free; a check would also clear what degrades it.
    const bool is_free = gpu.is_reported && gpu.holders.empty() && gpu.taints.empty();
    const bool can_be =
        node.taints.empty() && check_place(state, node, GpuRepair::kQuickCheck).has_value();
    if (is_free && can_be) free.insert(place);
  }
  return order_repairs(state, free, GpuRepair::kQuickCheck, "it gets no work before that",
                       "health");
}

base::Instant refused_until(const model::Gpu& gpu, model::EvidenceKind kind) {
  base::Instant until;
  base::Instant began_at;    // the latest that could begin
  base::Instant untried_at;  // the latest that could not
  for (const model::Evidence& piece : *gpu.evidence) {
    if (piece.kind != kind) continue;
    if (model::is_untried_trial(piece)) {
      untried_at = std::max(untried_at, piece.last);
    } else if (model::is_refused_trial(piece)) {
      until = std::max(until, piece.last + kRefusedFor);
    } else {
      began_at = std::max(began_at, piece.last);
    }
  }
  std::uint64_t times = 0;
  for (const model::Evidence& piece : *gpu.evidence) {
    const bool counts = piece.kind == kind && model::is_untried_trial(piece);
    if (counts && piece.last > began_at) times += piece.count;
  }
  return times == 0 ? until : std::max(until, untried_at + untried_for(times));
}

bool may_reset_by_itself(const State& state, model::GpuRef place, base::Instant now) {
  if (state.policy->health_reset != model::HealthReset::kAuto) return false;
  const model::Node& node = *state.nodes.find(place.node.value);
  const model::Gpu& gpu = node.gpus.at(place.index);
  const bool may_be = !has_check(node, reset_group(node, place.index));
  if (!check_place(state, node, GpuRepair::kReset) || reset_of(gpu) != nullptr || !may_be) {
    return false;
  }
  if (now < refused_until(gpu, model::EvidenceKind::kReset)) return false;
  const auto resets = std::ranges::count_if(*gpu.evidence, [&](const model::Evidence& piece) {
    return piece.kind == model::EvidenceKind::kReset && !model::is_refused_trial(piece) &&
           now - piece.last <= kResetsWithin;
  });
  return static_cast<std::size_t>(resets) < kMaxResets;
}

std::optional<model::Event> next_check_of_degraded(const State& state, base::Instant now) {
  if (state.policy->health_reset != model::HealthReset::kAuto) return std::nullopt;
  for (const model::GpuRef place : state.health.degraded()) {
    const model::Node& node = *state.nodes.find(place.node.value);
    const model::Gpu& gpu = node.gpus.at(place.index);
    // What another party keeps from work may be in use, or in repair.
    const bool is_healths_alone = gpu.taints.size() == 1 && node.taints.empty();
    if (!is_healths_alone || !gpu.holders.empty() ||
        !check_place(state, node, GpuRepair::kDeepCheck))
      continue;
    const Taint* const own = model::find_taint(gpu.taints, TaintSource::kHealth);
    if (was_checked_enough(gpu, own->at, now)) continue;
    return ordered(place, GpuRepair::kDeepCheck, own->text, "health");
  }
  return std::nullopt;
}

std::optional<model::Event> next_due_reset(const State& state) {
  for (const model::GpuRef place : state.health.resets()) {
    const model::Node& node = *state.nodes.find(place.node.value);
    const model::Gpu& gpu = node.gpus.at(place.index);
    if (is_being_reset(gpu) || !model::is_heard(node)) continue;
    const GpuRepair repair = reset_of(gpu)->repair;
    if (!is_empty_group(node, group_of(node, place.index, repair))) continue;
    Taint taint = *reset_of(gpu);
    taint.effect = TaintEffect::kOut;
    taint.at = {};
    const std::string_view waits = what_waits(repair);
    if (taint.text.starts_with(waits)) {
      taint.text = std::string(what_is_done(repair)) + taint.text.substr(waits.size());
    }
    return model::TaintChanged{place.node, place.index, std::move(taint)};
  }
  return std::nullopt;
}

std::optional<execution::ResetOrder> reset_order_of(const State& state, model::GpuRef place) {
  const model::Node& node = *state.nodes.find(place.node.value);
  execution::ResetOrder order{node.id, node.name, {}};
  const Taint* const asked = reset_of(node.gpus.at(place.index));
  const GpuRepair repair = asked == nullptr ? GpuRepair::kReset : asked->repair;
  order.without_reset = repair != GpuRepair::kReset;
  order.is_deep = repair == GpuRepair::kDeepCheck;
  for (const std::uint32_t index : group_of(node, place.index, repair)) {
    const model::Gpu& gpu = node.gpus.at(index);
    const Taint* const own = reset_of(gpu);
    if (own != nullptr && own->repair != repair) continue;  // none is reset while one is checked
    if (own != nullptr && own->effect != TaintEffect::kOut) return std::nullopt;
    if (own != nullptr) order.gpu_uuids.push_back(gpu.info.uuid);
  }
  if (order.gpu_uuids.empty()) return std::nullopt;
  return order;
}

std::vector<execution::ResetOrder> reset_orders(const State& state,
                                                std::optional<model::NodeId> node) {
  std::vector<execution::ResetOrder> orders;
  std::set<std::string> named;
  for (const model::GpuRef place : state.health.resets()) {
    if (node && place.node != *node) continue;
    auto order = reset_order_of(state, place);
    if (!order || named.contains(order->gpu_uuids.front())) continue;
    named.insert(order->gpu_uuids.begin(), order->gpu_uuids.end());
    orders.push_back(*std::move(order));
  }
  return orders;
}

std::optional<ResetEnd> judge_reset_end(const State& state, const execution::ResetEnded& seen,
                                        base::Instant now) {
  const auto known = state.node_ids.find(seen.node_name);
  if (known == state.node_ids.end()) return std::nullopt;
  const model::Node& node = *state.nodes.find(known->second.value);
  const auto index = model::index_of_gpu(node, seen.gpu_uuid);
  if (!index || !is_being_reset(node.gpus.at(*index))) return std::nullopt;
  // An answer to an earlier order of another kind says nothing.
  if (is_check(*reset_of(node.gpus.at(*index))) != seen.without_reset) return std::nullopt;
  ResetEnd end{
      {node.id, *index},
      {},
      model::TaintChanged{node.id, *index, {TaintSource::kReset, {}, {}, "health", {}}, true}};
  const auto add = [&](model::EvidenceKind kind, TrialCode code) {
    model::Evidence piece = platform_piece(kind, now);
    piece.code = static_cast<std::uint32_t>(code);
    if (code != TrialCode::kPassed) piece.text = seen.failure;
    end.evidence.push_back({node.id, *index, std::move(piece)});
  };
  const auto kind = seen.without_reset ? model::EvidenceKind::kCheck : model::EvidenceKind::kReset;
  const TrialCode undone = seen.is_untried ? TrialCode::kUntried : TrialCode::kRefused;
  if (seen.refused == execution::RefusedPart::kAll) {
    add(kind, undone);
  } else if (seen.refused == execution::RefusedPart::kCheckAfterReset) {
    add(model::EvidenceKind::kReset, TrialCode::kPassed);
    add(model::EvidenceKind::kCheck, undone);
  } else {
    add(kind, seen.failure.empty() ? TrialCode::kPassed : TrialCode::kFailed);
    if (seen.failure.empty() && !seen.without_reset) {
      add(model::EvidenceKind::kCheck, TrialCode::kPassed);
    }
  }
  return end;
}

}  // namespace gpu_platform::controller
