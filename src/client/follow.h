#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/units.h"
#include "client/client.h"
#include "client/session.h"
#include "gpu_platform/v1/jobs.pb.h"

// Staying with a job: its output as it comes, and its end. Both outlast a restart of the daemon.

namespace gpu_platform::client {

bool is_ended(v1::JobState state);

// The exit code that `run` gives for an ended job: the program's, 128 + signal, or 250.
int exit_code_of_job(const v1::Job& job);

// What Ctrl-C does while a job is followed. Default: nothing is watched and it ends the program.
class Interrupts {
 public:
  Interrupts() = default;
  // The first one cancels the job, the second kills it, the third leaves it alone and gives up.
  Interrupts(Console& console, Client& client, std::string id);

  int fd() const { return fd_; }
  // Reads what came and acts. False: leave.
  bool handle();

 private:
  Console* console_ = nullptr;
  Client* client_ = nullptr;
  std::string id_;
  int fd_ = -1;
  int count_ = 0;
};

// The place in a job's output to begin at.
struct OutputPlace {
  static constexpr std::int64_t kLatest = -1;  // whichever attempt is the latest one
  static constexpr std::int64_t kNone = 0;     // nothing was read: from the first attempt on

  std::int64_t attempt = kLatest;  // from 1, or one of the above
  std::int64_t offset = 0;         // in that attempt's output
  bool is_only_attempt = false;    // do not go on to later ones
  bool daemon_was_there = false;   // a daemon that is away now is waited for from the start
};

// Writes the job's output to stdout, byte for byte, until the job has ended. Nothing on success.
std::optional<Failure> follow_output(Console& console, Client& client, const std::string& id,
                                     OutputPlace place, Interrupts& interrupts);

// Writes what there is, and moves `place` behind it.
std::optional<Failure> copy_output(Console& console, Client& client, const std::string& id,
                                   OutputPlace& place);

// The job once it has ended, with the text it came as; nothing when `at_most` has passed.
struct EndedJob {
  v1::Job job;
  std::string document;
};
// `tell`, where there is one, sees the job each second until then.
using TellOfJob = std::function<void(const v1::Job& job)>;
Called<std::optional<EndedJob>> wait_for_end(Console& console, Client& client,
                                             const std::string& id,
                                             std::optional<base::Duration> at_most,
                                             Interrupts& interrupts, const TellOfJob& tell = {});

// Returns true, and prints a note, if the output of the job cannot be shown (the daemon may not
// open its file, or it is not a file): the caller still waits for its end. False for other
// failures.
bool tell_of_unshown_output(Console& console, const Failure& failure);

}  // namespace gpu_platform::client
