#include "execution/kubernetes/pods/channel_target.h"

#include <algorithm>

#include <fmt/format.h>

#include "execution/kubernetes/names.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

// The job decides whether there is a terminal; the client does not.
void set_own_process(kubernetes::PodStream& stream, const model::ChannelOrder& order,
                     const model::JobSpec& spec) {
  stream.without_output = order.without_output;
  stream.is_usual_size = !order.terminal;
  if (!spec.terminal) {
    stream.terminal.reset();
  } else if (!stream.terminal) {
    stream.terminal = spec.terminal;
  }
}

}  // namespace

base::Result<kubernetes::PodStream> channel_target(const model::ChannelOrder& order,
                                                   const std::vector<PodView>& pods,
                                                   const model::JobSpec* spec) {
  using base::ErrorCode;
  const auto pod = std::ranges::find_if(pods, [](const PodView& each) { return each.rank == 0; });
  const model::JobId job = order.attempt.job;
  if (pod == pods.end() || pod->is_over() || pod->is_being_deleted || spec == nullptr) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("job {} has no pod that runs", job.value));
  }
  if (!pod->started_at.is_set()) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("the pod of job {} has not started yet{}{}", job.value,
                                  pod->waiting.empty() ? "" : ": ", pod->waiting));
  }
  kubernetes::PodStream stream;
  stream.namespace_name = pod->namespace_name;
  stream.pod = pod->name;
  stream.container = kMainContainer;
  stream.command = order.command;
  stream.terminal = order.terminal;
  stream.port = order.port;
  if (order.is_attach()) set_own_process(stream, order, *spec);
  return stream;
}

}  // namespace gpu_platform::execution
