#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/convert/job.h"
#include "base/result.h"
#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/command.h"

// Actions on existing jobs, and the forms of values that submissions share with them. Errors are
// kInvalidArgument and name the field.

namespace gpu_platform::api {

// Converts without the job, which `id` names, and without dependencies: both need a look at the
// jobs.
base::Result<model::UpdateJob> to_model(const v1::UpdateJobRequest& request, const Nodes& nodes);

struct DependencyRef {
  model::DependencyKind kind = model::DependencyKind::kAfterOk;
  JobRef on;
};
// "afterok:12:14,afterany:40_3"; the error names "dependency". Empty text is none.
base::Result<std::vector<DependencyRef>> to_dependencies(std::string_view text);

// `user` of the selection is the caller if the request names no user and does not say `all`.
base::Result<model::ActOnJobs> to_model(const v1::ActOnJobsRequest& request,
                                        const model::Caller& caller);

model::JobAction requeue_action(const v1::RequeueJobRequest& request);

// "HIGH" in upper or lower case, or "0" to "9".
base::Result<model::Priority> to_priority(std::string_view text);

// "USR1", "sigusr1", "10": one that may be sent to a running job; the error names "signal".
base::Result<std::uint8_t> to_job_signal(std::string_view text);

// "key=value"; the error names "label".
base::Result<model::Label> to_label(std::string_view text);

base::Duration to_duration(double seconds);

// "USR1@120", "USR1", "10@120": a signal, and how long before the time limit; "B:USR1@120": for the
// job's first process alone.
base::Result<model::LimitSignal> to_limit_signal(std::string_view text);
std::string limit_signal_text(const model::LimitSignal& signal);  // "USR1@120"

}  // namespace gpu_platform::api
