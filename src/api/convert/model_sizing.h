#pragma once

#include <span>

#include "base/result.h"
#include "gpu_platform/v1/planning.pb.h"
#include "sizing/memory.h"

namespace gpu_platform::api {

// Answers a question about a server of a language model. The `kinds` of GPU are those of a cluster,
// or known ones where there is no cluster to ask. Pure: the command line calls it, too.
base::Result<v1::Needs> size_model_server(const v1::ModelSizingRequest& request,
                                          std::span<const sizing::GpuKind> kinds);

}  // namespace gpu_platform::api
