#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "model/command.h"

// Resets and checks of GPUs. One that is to be reset or checked has the taint of kReset, which says
// what is done: first kNoNewWork, while something holds it or a GPU that is reset with it, then
// kOut, with which the order leaves.

namespace gpu_platform::controller {

// Returns the indices, ascending, of the GPUs that are reset with this one. From Hopper on each is
// reset alone; before, all that NVLinks join, directly or through others, are reset together. The
// program that resets them proves the same (node/driver/reset_group.h).
std::vector<std::uint32_t> reset_group(const model::Node& node, std::uint32_t gpu);

// Returns the events of an operator's order to reset or check these GPUs of a node; none if all of
// them are to be already.
base::Result<Events> judge_reset(const State& state, model::NodeId node,
                                 const std::vector<std::uint32_t>& gpus,
                                 const model::ChangeGpus& command, const std::string& by);

// Has the GPUs reset, with all that are reset with them, as soon as nothing holds them.
Events order_resets(const State& state, const std::set<model::GpuRef>& gpus,
                    const std::string& text, const std::string& by);
// Has the GPUs checked quickly, before they get work: those that are empty, that no party keeps
// from work, and that can be checked.
Events order_first_checks(const State& state, const std::set<model::GpuRef>& gpus);
// Returns until when the platform itself orders no further reset (kReset) or check (kCheck) of the
// GPU: for kRefusedFor if the rules of its machine did not allow one, which change seldom. If one
// could not begin, for kUntriedFor, and for twice as long after each further one, up to
// kMaxUntriedFor. Unset: none was refused.
inline constexpr base::Duration kRefusedFor = base::hours(24);
inline constexpr base::Duration kUntriedFor = base::seconds(30);
inline constexpr base::Duration kMaxUntriedFor = base::minutes(10);
base::Instant refused_until(const model::Gpu& gpu, model::EvidenceKind kind);
// Returns whether the platform may order it itself: the policy says so, the GPU is not to be reset
// already, none was refused lately, and it has not been reset kMaxResets times within
// kResetsWithin.
inline constexpr std::size_t kMaxResets = 5;
inline constexpr base::Duration kResetsWithin = base::hours(24 * 7);
bool may_reset_by_itself(const State& state, model::GpuRef gpu, base::Instant now);

// Returns the next check that the platform orders itself: the policy says so, health alone keeps
// the GPU from work and has degraded it, it is empty, no check has answered that verdict yet, none
// was refused lately, and it has not been checked kMaxResets times within kResetsWithin.
std::optional<model::Event> next_check_of_degraded(const State& state, base::Instant now);

// Returns the next reset or check that is due: nothing holds the GPU any more.
std::optional<model::Event> next_due_reset(const State& state);
// Returns the orders of resets and checks that are under way on the node, or on all nodes.
std::vector<execution::ResetOrder> reset_orders(const State& state,
                                                std::optional<model::NodeId> node = {});
// The same of the group of this GPU; nothing while one of the group is not ready.
std::optional<execution::ResetOrder> reset_order_of(const State& state, model::GpuRef gpu);

// The end of a reset or of a check.
struct ResetEnd {
  model::GpuRef gpu;
  std::vector<model::EvidenceRecorded> evidence;
  model::Event lifted;  // after the evidence has been judged
};
// Returns nothing if none of that kind is under way on the GPU.
std::optional<ResetEnd> judge_reset_end(const State& state, const execution::ResetEnded& seen,
                                        base::Instant now);

}  // namespace gpu_platform::controller
