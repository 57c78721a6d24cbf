#pragma once

#include <string>
#include <thread>

#include "client/follow.h"
#include "shims/command_call.h"

namespace gpu_platform::shims {

// The end of a job, however it comes. A thread with a connection of its own to the daemon waits for
// it.
class JobEnd {
 public:
  JobEnd(CommandCall& call, const std::string& id);
  JobEnd(const JobEnd&) = delete;
  JobEnd& operator=(const JobEnd&) = delete;
  // Waits for the end.
  ~JobEnd();

  // Readable when the job has ended, or when the daemon is not found any more.
  int fd() const { return ends_[0]; }
  // Waits for the end and returns it.
  const client::Called<std::optional<client::EndedJob>>& wait();

 private:
  int ends_[2] = {-1, -1};
  client::Called<std::optional<client::EndedJob>> ended_ = std::unexpected(client::Failure{});
  std::thread thread_;
};

}  // namespace gpu_platform::shims
