#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "controller/state.h"
#include "model/evidence.h"

// The evidence that the core keeps: how a piece is completed before it is, what the platform itself
// adds, and what the latest pieces say without a judgement.

namespace gpu_platform::controller {

// The GPU must exist.
const model::Gpu& gpu_of(const State& state, model::GpuRef place);

// The evidence that is kept of the node's GPU, or of the node itself.
const std::vector<model::Evidence>& kept_evidence(const State& state, model::NodeId node,
                                                  std::optional<std::uint32_t> gpu);

// Names the job in the piece, with what is known of it and the piece does not say already.
void name_job(const model::Job& job, model::Evidence& piece);

// Returns the piece as it is kept. The clocks of probes may be ahead or set back, so its times are
// put in order. What names no job is laid to the one that held the GPU.
model::Evidence completed_evidence(const State& state, model::NodeId node,
                                   std::optional<std::uint32_t> gpu, model::Evidence piece,
                                   base::Instant now);

// What people say and what the platform did is always written at once.
bool may_be_put_off(const model::Evidence& piece);

// Returns that the node was started anew, if that matters to what is known of its health.
std::vector<model::EvidenceRecorded> restart_of(const State& state, model::NodeId node,
                                                base::Instant now);

// Returns whether health keeps the GPU out because its driver does not answer for it any more.
bool does_not_answer(const model::Gpu& gpu);

// An operator brings the GPU online, or the node.
model::Evidence cleared_by(const std::string& user, const std::string& reason, base::Instant now);

}  // namespace gpu_platform::controller
