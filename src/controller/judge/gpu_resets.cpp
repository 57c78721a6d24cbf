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

namespace {

const Taint* reset_of(const model::Gpu& gpu) {
  return model::find_taint(gpu.taints, TaintSource::kReset);
}

bool is_being_reset(const model::Gpu& gpu) {
  const Taint* const own = reset_of(gpu);
  return own != nullptr && own->effect == TaintEffect::kOut;
}

std::set<std::uint32_t> with_groups(const model::Node& node,
                                    const std::vector<std::uint32_t>& gpus) {
  std::set<std::uint32_t> all;
  for (const std::uint32_t gpu : gpus) {
    const std::vector<std::uint32_t> group = reset_group(node, gpu);
    all.insert(group.begin(), group.end());
  }
  return all;
}

std::unexpected<base::Error> no_reset(const model::Node& node, std::string_view why) {
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("GPUs of node {} cannot be reset: {}", node.name, why), "action");
}

base::Status check_place(const State& state, const model::Node& node) {
  if (state.policy->health_reset == model::HealthReset::kNever) {
    return no_reset(node, "health.reset is never; an administrator sets it to ask or auto");
  }
  if (!model::traits_of(node.engine).is_on_this_machine) {
    return no_reset(node, "its cluster owns them; reset them there");
  }
  if (!model::is_heard(node)) {
    return no_reset(node, "it does not report; check its launcher and its network");
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
  std::vector<std::uint32_t> group;
  const bool is_linked = node.gpus.at(gpu).info.type.starts_with("A100");
  for (std::uint32_t other = 0; other < node.gpus.size(); ++other) {
    const bool is_with_it = is_linked && other != gpu && node.gpus[other].is_reported &&
                            model::link_between(node.topology, node.gpus.size(),
                                                std::min(gpu, other), std::max(gpu, other))
                                    .kind == model::LinkKind::kNvLink;
    if (other == gpu || is_with_it) group.push_back(other);
  }
  return group;
}

base::Result<Events> judge_reset(const State& state, model::NodeId id,
                                 const std::vector<std::uint32_t>& gpus,
                                 const model::ChangeGpus& command, const std::string& by) {
  const model::Node& node = *state.nodes.find(id.value);
  TRY(check_place(state, node));
  const std::set<std::uint32_t> all = with_groups(node, gpus);
  const std::vector<model::AttemptId> holders = holders_of(node, all);
  if (!holders.empty() && !command.when_empty && !command.force) {
    const std::string others =
        all.size() > gpus.size() ? ", and the GPUs that are reset with it" : "";
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format(
            "GPU {} of node {}{}: a reset would end job {}{}; use --when-empty, which waits "
            "until no job has it, or --force, which stops its jobs and queues them again",
            gpus.front(), node.name, others, holders.front().job.value,
            holders.size() > 1 ? fmt::format(" and {} more", holders.size() - 1) : ""),
        "force");
  }
  std::set<model::GpuRef> places;
  for (const std::uint32_t gpu : gpus) places.insert({id, gpu});
  const std::string text = command.reason.empty() ? "an operator asked for it" : command.reason;
  Events events = order_resets(state, places, text, by);
  if (!command.force) return events;
  for (const model::AttemptId holder : holders) {
    if (is_told_to_stop(state, holder)) continue;
    events.push_back(model::StopRequested{holder, model::EndReason::kGpuOffline, false, by});
  }
  return events;
}

Events order_resets(const State& state, const std::set<model::GpuRef>& gpus,
                    const std::string& text, const std::string& by) {
  std::set<model::GpuRef> all;
  for (const model::GpuRef gpu : gpus) {
    for (const std::uint32_t index : reset_group(*state.nodes.find(gpu.node.value), gpu.index)) {
      all.insert({gpu.node, index});
    }
  }
  Events events;
  for (const model::GpuRef gpu : all) {
    if (reset_of(state.nodes.find(gpu.node.value)->gpus.at(gpu.index)) != nullptr) continue;
    events.push_back(model::TaintChanged{gpu.node,
                                         gpu.index,
                                         {TaintSource::kReset,
                                          TaintEffect::kNoNewWork,
                                          fmt::format("it is reset when no job has it: {}", text),
                                          by,
                                          {}}});
  }
  return events;
}

bool may_reset_by_itself(const State& state, model::GpuRef place, base::Instant now) {
  if (state.policy->health_reset != model::HealthReset::kAuto) return false;
  const model::Node& node = *state.nodes.find(place.node.value);
  const model::Gpu& gpu = node.gpus.at(place.index);
  if (!check_place(state, node) || reset_of(gpu) != nullptr) return false;
  const auto resets = std::ranges::count_if(*gpu.evidence, [&](const model::Evidence& piece) {
    return piece.kind == model::EvidenceKind::kReset && now - piece.last <= kResetsWithin;
  });
  return static_cast<std::size_t>(resets) < kMaxResets;
}

std::optional<model::Event> next_due_reset(const State& state) {
  for (const model::GpuRef place : state.health.resets()) {
    const model::Node& node = *state.nodes.find(place.node.value);
    const model::Gpu& gpu = node.gpus.at(place.index);
    if (is_being_reset(gpu) || !model::is_heard(node)) continue;
    if (!is_empty_group(node, reset_group(node, place.index))) continue;
    Taint taint = *reset_of(gpu);
    taint.effect = TaintEffect::kOut;
    taint.at = {};
    constexpr std::string_view kWaits = "it is reset when no job has it: ";
    if (taint.text.starts_with(kWaits)) {
      taint.text = "it is being reset: " + taint.text.substr(kWaits.size());
    }
    return model::TaintChanged{place.node, place.index, std::move(taint)};
  }
  return std::nullopt;
}

std::optional<execution::ResetOrder> reset_order_of(const State& state, model::GpuRef place) {
  const model::Node& node = *state.nodes.find(place.node.value);
  execution::ResetOrder order{node.id, node.name, {}};
  for (const std::uint32_t index : reset_group(node, place.index)) {
    const model::Gpu& gpu = node.gpus.at(index);
    const Taint* const own = reset_of(gpu);
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
  ResetEnd end{
      {node.id, *index},
      {},
      model::TaintChanged{node.id, *index, {TaintSource::kReset, {}, {}, "health", {}}, true}};
  model::Evidence reset = platform_piece(model::EvidenceKind::kReset, now);
  reset.code = seen.failure.empty() ? 0 : 1;
  reset.text = seen.failure;
  end.evidence.push_back({node.id, *index, std::move(reset)});
  if (seen.failure.empty()) {
    end.evidence.push_back({node.id, *index, platform_piece(model::EvidenceKind::kCheck, now)});
  }
  return end;
}

}  // namespace gpu_platform::controller
