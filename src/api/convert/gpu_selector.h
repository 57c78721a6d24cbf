#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/convert/job.h"
#include "base/result.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "model/command.h"

// Reads which GPUs a request means. The core decides whether they exist.

namespace gpu_platform::api {

// "NODE:INDEX". Errors name the field "gpu".
base::Result<model::GpuSelector> parse_gpu_place(std::string_view text);

// Returns the UUIDs of the GPUs that a field of a job names, ascending and none twice. Each text is
// a list of UUIDs and "NODE:INDEX". Errors name the field.
base::Result<std::vector<std::string>> to_gpu_uuids(const std::vector<std::string>& lists,
                                                    const std::string& field, const Nodes& nodes);

// Exactly one of gpu_id and gpu must be given.
base::Result<model::GpuSelector> to_model(const v1::GetGpuHealthRequest& request);

// At most one of gpu_id, gpu and node may be given.
base::Result<model::GpuSelector> to_model(const v1::ListEvidenceRequest& request);

// Exactly one of gpu_id, gpu and node must be given; force with kTakeOffline, kReset and
// kCheck alone, when_empty with kReset and kCheck, deep with kCheck.
base::Result<model::ChangeGpus> to_model(const v1::ChangeGpusRequest& request,
                                         model::GpuAction action);

}  // namespace gpu_platform::api
