#include "api/call_context.h"

namespace gpu_platform::api {

void CallContext::send(model::Command command, Resume resume, Finish finish) const {
  core.commands.submit(std::move(command), [resume = std::move(resume), finish = std::move(finish)](
                                               base::Result<model::CommandReply> r) mutable {
    // Moved on, so that nothing of the request is left for this thread to destroy.
    resume([finish = std::move(finish), r = std::move(r)]() mutable { finish(std::move(r)); });
  });
}

}  // namespace gpu_platform::api
