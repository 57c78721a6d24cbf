#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/channel.h"
#include "model/ids.h"
#include "os/descriptor.h"

// What clients ask of the engine that runs, or ran, an attempt, beside the orders of the core: ways
// into it, and what it prints.

namespace gpu_platform::execution {

// Safe from any thread; every call returns at once, or in the time of a local file's.
class AttemptAccess {
 public:
  virtual ~AttemptAccess() = default;

  // Opens a channel into a running attempt: a SOCK_SEQPACKET socket that carries its frames
  // (model/channel.h). Closing it hangs up. `done` is called once, on a thread of the engine, or
  // dropped when the engine ends first.
  using ChannelOpened = std::function<void(base::Result<os::Descriptor>)>;
  virtual void open_channel(model::ChannelOrder order, ChannelOpened done) = 0;

  // Returns what is done for the attempt before its start ("checking its GPUs (quick)") or before
  // its container runs ("pulling the image, 43 %"), or why that does not go on; empty: nothing, or
  // it is not known.
  virtual std::string step_of(model::AttemptId attempt) const = 0;

  // Returns the path of the present file of the output that the platform keeps of the attempt
  // (process/kept_output.h reads it). There may be none yet, or none any more.
  virtual std::string output_of(model::AttemptId attempt) const = 0;
  // A client reads that output: it is brought up to date from now on.
  virtual void follow_output(model::AttemptId attempt) = 0;
  // Returns whether the attempt has ended and its last output is still being fetched.
  virtual bool awaits_output(model::AttemptId attempt) const = 0;
  // Returns whether output of any attempt of the job is kept; true also where that cannot be seen.
  virtual bool has_output(model::JobId job) const = 0;
  // Has the kept output of jobs that have ended removed. The order may be lost on its way.
  virtual void remove_output(std::vector<model::JobId> jobs) = 0;
};

}  // namespace gpu_platform::execution
