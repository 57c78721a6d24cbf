#include "execution/kubernetes/channel_target.h"

#include <algorithm>

#include <fmt/format.h>

#include "execution/kubernetes/names.h"

namespace gpu_platform::execution {

base::Result<kubernetes::PodStream> channel_target(const model::ChannelOrder& order,
                                                   const std::vector<PodView>& pods) {
  using base::ErrorCode;
  if (order.is_attach()) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      "a job in Kubernetes takes no input and has no terminal; run a command in it "
                      "with `gpu-platform jobs exec`");
  }
  const auto pod = std::ranges::find_if(pods, [](const PodView& each) { return each.rank == 0; });
  const model::JobId job = order.attempt.job;
  if (pod == pods.end() || pod->is_over() || pod->is_being_deleted) {
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
  return stream;
}

}  // namespace gpu_platform::execution
