#pragma once

#include <string_view>

#include "base/result.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "model/command.h"

// Reads which GPUs a request means. The core decides whether they exist.

namespace gpu_platform::api {

// "NODE:INDEX". Errors name the field "gpu".
base::Result<model::GpuSelector> parse_gpu_place(std::string_view text);

// Exactly one of gpu_id and gpu must be given.
base::Result<model::GpuSelector> to_model(const v1::GetGpuHealthRequest& request);

// Exactly one of gpu_id, gpu and node must be given; force with kTakeOffline alone.
base::Result<model::ChangeGpus> to_model(const v1::ChangeGpusRequest& request,
                                         model::GpuAction action);

}  // namespace gpu_platform::api
