#pragma once

#include <cstdint>
#include <string>

#include "gpu_platform/v1/health.pb.h"
#include "model/evidence.h"
#include "model/taint.h"

// What was seen of GPUs and nodes, and what keeps them from work, in messages.

namespace gpu_platform::api {

// Fills the cleared message, but for its node and GPU; total.
void to_proto(const model::Evidence& piece, v1::Evidence& out);
void to_proto(const model::Taint& taint, v1::GpuTaint& out);

// Takes away what tells of the job of a user that the reader may not see.
void hide_user(v1::Evidence& out);

}  // namespace gpu_platform::api
