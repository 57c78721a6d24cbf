#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/protocol.h"
#include "node/record.h"
#include "node/supervisor/job_start.h"
#include "node/supervisor/supervisor.h"

namespace gpu_platform::node {

// The supervisor's side of a job with an image. Such a job is the process that speaks to the
// container engine (execution/container), which ends as the container ends; the container's own
// processes are in the attempt's cgroup, where signals and the end reach them. Without root's
// rights they are in none of ours, and the client passes on signals and the end.
//
// The client gets the request in a memory file. What its exit code cannot say it writes to a file
// beside the attempt's record, where the daemon can read what it does now. The file stays if the
// client has left something with the engine: the launcher then has that cleaned up.
class ContainerJob {
 public:
  // Both must outlive this object.
  ContainerJob(const SupervisorOptions& options, const LaunchRequest& request)
      : o_(options), request_(request) {}
  ~ContainerJob();
  ContainerJob(const ContainerJob&) = delete;
  ContainerJob& operator=(const ContainerJob&) = delete;

  bool is_given() const { return request_.container.is_given(); }
  // Returns whether signals and the end reach the container through its client alone.
  bool is_rootless() const { return is_given() && !o_.containers.cluster.empty(); }
  // Makes both files. False: errno says why not. Does nothing for a job without an image.
  bool open();
  ContainerStart start() const;

  // Tells the client that the job is to end (SIGTERM): it does not begin the container, and waits
  // for the end of one that runs. -1: there is no client.
  void stop(int client_pid) const;
  // Tells it that the container was killed (SIGUSR1): it gives the engine a little time to say so.
  // Called again and again until it ends: one that has not ended within the timeout of
  // ContainerClient is killed itself, and what it leaves is cleaned up as after any such death.
  void kill(int client_pid);
  // Has it pass the signal on to the container's processes; for a rootless one.
  void signal(int client_pid, int signal) const;

  // Returns the most memory that the container had, where an older cgroup tree counts it and the
  // attempt's own cgroup does not.
  std::optional<std::uint64_t> peak_memory_bytes() const;
  // Removes what the engine has made in older cgroup trees for an attempt without processes.
  // Waits a moment for the engine's own processes to leave it.
  void remove_groups() const;

  // These are for a client that has ended.
  bool ran_out_of_memory() const { return report() == "oom"; }
  // Returns why there was no container, or why the engine lost it; empty: it ended by itself.
  std::string failure() const;
  // Returns whether the program is not in the image, or cannot be executed. One that itself ends
  // with these codes was.
  bool could_not_execute(EndKind kind, std::uint8_t value) const;

 private:
  std::string cgroup() const;
  bool is_in_cgroup() const { return is_given() && !is_rootless(); }
  int make_report() const;
  std::string report() const;
  bool is_clean() const;

  const SupervisorOptions& o_;
  const LaunchRequest& request_;
  int request_fd_ = -1;
  int report_fd_ = -1;
  std::int64_t killed_by_ms_ = 0;  // when it must have ended, on the boot clock; 0: no kill yet
  bool was_cut_off_ = false;       // it was killed itself
};

}  // namespace gpu_platform::node
