#pragma once

#include <string>
#include <vector>

#include "node/protocol.h"
#include "node/record.h"

namespace gpu_platform::node {

// The commands that an attempt runs as its user, one after the other: the user's prolog and epilog
// around the command, each only where there is one.
enum class JobStep : std::uint8_t { kProlog, kCommand, kEpilog };

class JobSteps {
 public:
  explicit JobSteps(const LaunchRequest& request) : request_(request) {}

  JobStep first() const { return has(JobStep::kProlog) ? JobStep::kProlog : JobStep::kCommand; }
  bool is_last(JobStep step) const {
    return step == JobStep::kEpilog || (step == JobStep::kCommand && !has(JobStep::kEpilog));
  }

  // As JobStartOptions wants them.
  std::vector<std::string_view> command_of(JobStep step) const;
  // Returns what the epilog is told about the command's end; nothing for the other steps.
  static std::vector<std::string> environment_of(JobStep step, const EndRecord& end);
  // The detail of an end that is not the command's: "its prolog: exit code 3".
  static std::string told(JobStep step, const std::string& what);

 private:
  bool has(JobStep step) const {
    return (step == JobStep::kProlog ? request_.prolog : request_.epilog).size() > 1;
  }

  const LaunchRequest& request_;
};

}  // namespace gpu_platform::node
