#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "node/confinement.h"
#include "node/protocol.h"
#include "node/supervisor/job_child.h"
#include "node/supervisor/start_report.h"

namespace gpu_platform::node {

// The process that speaks to a container engine for the job, instead of the job's own: with the
// supervisor's rights and on the host's mounts, outside the job's cgroup. Only the user's output
// files are opened as the user.
struct ContainerStart {
  std::vector<std::string> command;  // empty: the job has no image
  int request_fd = -1;               // becomes descriptor 3
  int report_fd = -1;                // becomes descriptor 4
};

struct JobStartOptions {
  const LaunchRequest* request = nullptr;
  int output_fd =
      -1;  // becomes stdout and stderr; -1: the request's own output file is opened for them
  int input_fd =
      -1;  // becomes stdin; with request->terminal that, and output_fd too; -1: /dev/null
  int cgroup_fd = -1;                     // -1: none
  JobConfinement* confinement = nullptr;  // set up
  // The command to run instead of the request's, its texts ending as those of a request; empty:
  // that command.
  std::vector<std::string_view> command;
  std::vector<std::string> more_environment;  // NAME=VALUE
  // Set for every process but the job's first: it goes into the folders of that one, and empties no
  // file.
  bool is_later = false;
  ContainerStart container;
  const char* oom_score =
      nullptr;  // what the job gets instead of the node part's own; null: inherited
};

// One start of a command: within its confinement, as its user, in its directory, with its umask,
// environment and output, as leader of a session of its own. What it names, directory and output
// files, is opened with the rights of its user, and nothing that it executes gains rights that this
// one has not (no_new_privs). Without a shell.
//
// The start may take for ever: a directory or a program can be on a file system that hangs. No call
// here waits for it: handle() tells when to look.
//
// The child is a process of its own from the first moment: it shares no memory with this one but
// the page in which it reports, because it enters the job's groups, where the kernel kills what
// shares memory with a process that is out of memory. There is one object for each start.
class JobStart {
 public:
  explicit JobStart(const JobStartOptions& options);
  ~JobStart();
  JobStart(const JobStart&) = delete;
  JobStart& operator=(const JobStart&) = delete;

  // Makes the child. False: failed at once, and is over.
  bool begin();
  int handle() const { return socket_; }  // to be polled for input; -1 once it is over
  // Returns whether it is over: the program was executed, or it failed. Takes what the child has
  // sent.
  bool is_over();
  // Returns the present step, for a start that is given up: "open output file /x".
  std::string doing() const;
  // SIGKILL, and no more is heard of it. The process, which may hang on, is the caller's to reap.
  void give_up();

  int pid() const { return pid_; }  // of a child to be waited for; -1: none
  // Returns the mounts of folders that were made private for it, for the caller to close; -1 if
  // there are none yet.
  int take_mounts();

  // These are for a start that is over.
  bool was_executed() const { return was_executed_; }
  // Returns whether the child neither executed the program nor said why not.
  bool was_killed() const;
  int exit_code() const;       // when not executed: see EndKind::kNotStarted
  std::string detail() const;  // when not executed: which step failed and why

 private:
  void finish();
  StartStep step() const;
  bool has_failed() const { return report_.is_there() && report_->has_failed.load(); }

  const JobStartOptions options_;
  const SharedPage<StartReport> report_;
  std::unique_ptr<JobChild> child_;
  int socket_ = -1;
  int pid_ = -1;
  int mounts_ = -1;
  bool was_executed_ = false;
  std::string failure_;  // before there was a child
};

}  // namespace gpu_platform::node
