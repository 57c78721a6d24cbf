#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "api/call_meter.h"
#include "api/core_access.h"
#include "api/cost_meter.h"
#include "api/job_reader.h"
#include "api/resume.h"
#include "base/result.h"
#include "model/command.h"
#include "model/user_range.h"
#include "os/clock.h"

namespace gpu_platform::api {

struct CallOptions {
  std::string version;  // of the program
  // The only user whose jobs can be started here: a daemon that is not root's has no rights to
  // run jobs as another. Unset: every user.
  std::optional<std::uint32_t> only_uid = {};
  model::UserRange users = {};  // that may have jobs and tokens
};

// What the calls of all services work with. Safe from any thread. Outlives them and every request.
struct CallContext {
  CallContext(const CoreAccess& access, CallOptions call_options)
      : core(access), reader(access), options(std::move(call_options)) {}

  using Finish = std::function<void(base::Result<model::CommandReply>)>;
  // Hands the command to the core, and its answer to `finish` through `resume`.
  void send(model::Command command, Resume resume, Finish finish) const;

  const CoreAccess& core;
  JobReader reader;
  CallOptions options;
  mutable CallMeter meter;  // counts the answers; the server tells it of each
  mutable CostMeter costs{model::millis_of(os::wall_now())};  // for the page of metrics
};

}  // namespace gpu_platform::api
