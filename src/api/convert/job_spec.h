#pragma once

#include "api/convert/job.h"
#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/job.h"
#include "model/spec_patch.h"

// Converts a job's specification between the model and messages, member by member through the
// model's table (model/job_spec_fields.h). The numbers of the table are those of the message's
// fields.

namespace gpu_platform::api {

// Fills the cleared message; total. What is in requests alone (input_only) is left absent.
void to_proto(const model::JobSpec& spec, const Nodes& nodes, v1::JobSpec& out);

// Copies the fields of the message into `out`; the rest of it stays. Each value is checked by
// itself, and dependencies, which name jobs, are left to resolve_dependencies(). Errors are
// kInvalidArgument and name the field.
base::Status to_model(const v1::JobSpec& message, const Nodes& nodes, model::JobSpec& out);

// Returns the fields of the message, without dependencies; a field that no update changes is
// refused.
base::Result<model::SpecPatch> to_patch(const v1::JobSpec& message, const Nodes& nodes);

// Replaces names as people write them by those of the catalogue, each once.
base::Status make_canonical(std::vector<std::string>& gpu_types, const Nodes& nodes);

// Clears the field of that name; a field that cannot be cleared is refused.
base::Status clear_field(std::string_view name, model::SpecPatch& patch);

// Returns "name, priority, begin": the fields that updates may change.
std::string changeable_fields();

}  // namespace gpu_platform::api
