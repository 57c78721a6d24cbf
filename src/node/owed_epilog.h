#pragma once

#include <optional>
#include <string>

#include "model/ids.h"
#include "node/protocol.h"

// The site's epilog that an attempt still owes: a file beside its record, "42-1.epilog". The
// supervisor makes it before it runs any program, marks it when the epilog begins, and removes it
// when all is over. So the launcher can run the epilog of a supervisor that was lost, and runs none
// twice. The file has what the epilog needs: its environment, and what bounds the job.

namespace gpu_platform::node {

// The request that an epilog is run by: its environment is the epilog's own, without the end, and
// its devices and limits are the job's. The texts live as long as the object.
struct EpilogRequest {
  EpilogRequest(model::AttemptId attempt, const LaunchRequest& job);
  std::vector<std::string> texts;
  LaunchRequest request;
};

class OwedEpilog {
 public:
  // `attempts`: the folder of the records, open as long as this is used.
  OwedEpilog(int attempts, model::AttemptId attempt);
  ~OwedEpilog();
  OwedEpilog(const OwedEpilog&) = delete;
  OwedEpilog& operator=(const OwedEpilog&) = delete;

  // Called by the supervisor. False with errno: the file could not be made, and does not exist.
  bool note(const LaunchRequest& job);
  void mark_begun() const;
  void remove() const;

  // Called by the launcher: takes over what a lost supervisor has left. False: nothing is owed, or
  // another process runs the epilog now (see is_run). What is taken stays locked until this object
  // and its copies in forked processes are gone.
  bool take();
  bool has_begun() const { return has_begun_; }
  // Returns the request of one that was taken; nothing if the file is incomplete: no program ran.
  std::optional<LaunchRequest> request() const { return decode_request(bytes_); }
  void mark_owed() const;

  // Returns whether a process that took it over lives.
  static bool is_run(int attempts, model::AttemptId attempt);

 private:
  void mark(char state) const;

  const int attempts_;
  const std::string name_;
  int fd_ = -1;
  bool has_begun_ = false;
  std::string bytes_;
};

}  // namespace gpu_platform::node
