#include "shims/steps/job_end.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

namespace gpu_platform::shims {

JobEnd::JobEnd(CommandCall& call, const std::string& id) {
  if (::pipe2(ends_, O_CLOEXEC) != 0) return;
  thread_ = std::thread([this, &call, id] {
    // The daemon has just taken the job: if it is away now, it restarts.
    client::BackOff back_off(call.console(), client::kRetryTimeout);
    auto client = call.client();
    while (client) {
      client::Interrupts none;
      ended_ = client::wait_for_end(call.console(), *client, id, std::nullopt, none);
      if (ended_ || !ended_.error().is_passing() || !back_off.wait(ended_.error(), -1)) break;
    }
    [[maybe_unused]] const ssize_t written = ::write(ends_[1], "e", 1);
  });
}

JobEnd::~JobEnd() {
  if (thread_.joinable()) thread_.join();
  for (const int fd : ends_)
    if (fd >= 0) ::close(fd);
}

const client::Called<std::optional<client::EndedJob>>& JobEnd::wait() {
  if (thread_.joinable()) thread_.join();
  return ended_;
}

}  // namespace gpu_platform::shims
