#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/persistent_map.h"
#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/command.h"
#include "model/job.h"
#include "model/node.h"
#include "model/wait_reason.h"

namespace gpu_platform::api {

using Nodes = base::PersistentMap<model::Node>;  // by NodeId

// Fills the cleared message `out`, with its specification; total. Names and GPUs of its nodes come
// from `nodes`. Wait reason, queue position and output path are not the job's own and are left
// absent.
void to_proto(const model::Job& job, const Nodes& nodes, v1::Job& out);
// The same without the specification, which is most of a job.
void to_proto_without_spec(const model::Job& job, const Nodes& nodes, v1::Job& out);

// "dgx-1"; "node-7" of one that is not known any more.
std::string node_name(const model::Node* node, model::NodeId id);
double in_seconds(base::Duration duration);
// 0.5 for a half.
double in_gpus(base::GpuShare share);
// "afterok:12,afterany:40".
std::string joined(const std::vector<model::Dependency>& dependencies);

// Adds the place of an allocation: its nodes by name, and its GPUs.
void add_place(const model::Allocation& allocation, const Nodes& nodes,
               google::protobuf::RepeatedPtrField<std::string>& names,
               google::protobuf::RepeatedPtrField<v1::GpuUse>& gpus);

// Returns the path that a pattern of the job's `output` or `error` stands for in an attempt, from
// 1; the pattern itself if there was no such attempt.
std::string users_file(const model::Job& job, std::uint32_t attempt, std::string_view pattern,
                       const Nodes& nodes);

void to_proto(const model::WaitReason& reason, v1::WaitReason& out);
// The same with the names of other jobs; one without a name is left out.
void to_proto(const model::WaitReason& reason, const model::NameOfJob& name_of,
              v1::WaitReason& out);

void to_proto(base::Instant at, google::protobuf::Timestamp& out);
base::Instant to_model(const google::protobuf::Timestamp& at);

// A job as people name it.
struct JobRef {
  model::JobId job;                    // or the array's
  std::optional<std::uint32_t> index;  // of a member of the array
};

// "42", or "40_3": the member of array 40 with index 3. Field "id" is named in the error.
base::Result<JobRef> to_job_ref(std::string_view text);

// "42" as a job id; field "id" is named in the error.
base::Result<model::JobId> to_job_id(std::string_view id);

// The owner of a submitted job: the caller, or the account that an administrator names.
struct Account {
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

// Checks the parts of a submission that do not depend on the state: limits, forms, NULs, the size
// of command and environment together, GPU types (known to the catalogue or to a node of `nodes`).
// Errors are kInvalidArgument and name the field.
base::Result<model::SubmitJob> to_model(const v1::JobSpec& request, const Account& account,
                                        const Nodes& nodes);

// Returns the size of command and environment together, each string with its end.
inline constexpr std::size_t kMaxCommandAndEnvironmentBytes = std::size_t{1} << 20;

}  // namespace gpu_platform::api
