#include "node/launcher/children.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "node/confinement.h"
#include "node/syscalls.h"
#include "node/time_slices/slice_keeper.h"

namespace gpu_platform::node {

Child Children::start_supervisor(model::AttemptId attempt, const LaunchRequest& request,
                                 int record) {
  prepare_for(host_.confinement, request);
  Child child;
  child.pid = fork_with_pidfd(&child.pidfd);
  if (child.pid != 0) return child;
  leave_launcher();
  run_supervisor(supervisor_options(attempt, request, record));
}

Child Children::start_lost_epilog(const OwedEpilog& owed, model::AttemptId attempt,
                                  const LaunchRequest& request, int record,
                                  const std::optional<EndRecord>& end) {
  prepare_for(host_.confinement, request);
  owed.mark_begun();
  Child child;
  child.pid = fork_with_pidfd(&child.pidfd);
  if (child.pid < 0) owed.mark_owed();
  if (child.pid != 0) return child;
  leave_launcher();
  run_lost_epilog(supervisor_options(attempt, request, record), end);
}

Child Children::start_relay(model::AttemptId attempt, const Record& record, const Identity& user,
                            const Channel& channel) {
  Child child;
  child.pid = fork_with_pidfd(&child.pidfd);
  if (child.pid == 0) become_relay(attempt, record, user, channel);
  return child;
}

Child Children::start_driver_watch(const DriverWatch& watch) {
  Child child;
  child.pid = fork_with_pidfd(&child.pidfd);
  if (child.pid != 0) return child;
  leave_launcher();
  run_driver_watch(watch);
}

// It ends with its launcher, also where that is killed. Its log is the launcher's: it is gone as
// soon as that is.
Child Children::start_slice_keeper(int socket,
                                   const std::function<int(model::AttemptId)>& open_cgroup) {
  const int launcher = getpid();
  Child child;
  child.pid = fork_with_pidfd(&child.pidfd);
  if (child.pid != 0) return child;
  const int log = o_.error_fd < 0 ? -1 : fcntl(o_.error_fd, F_DUPFD_CLOEXEC, 3);
  leave_launcher();
  prctl(PR_SET_NAME, "gp-keeper");
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launcher) _exit(0);
  run_slice_keeper({socket, open_cgroup, log});
  _exit(0);
}

// It sees by its socket that the launcher has gone. Its log is the launcher's.
Child Children::start_mps_keeper(MpsKeeperOptions options) {
  Child child;
  child.pid = fork_with_pidfd(&child.pidfd);
  if (child.pid != 0) return child;
  if (o_.error_fd >= 0) options.log_fd = fcntl(o_.error_fd, F_DUPFD_CLOEXEC, 3);
  options.oom_score = oom_score();
  leave_launcher();
  prctl(PR_SET_NAME, "gp-mps-keeper");
  run_mps_keeper(options);
  _exit(0);
}

void Children::close_private(int fd) {
  std::erase(private_, fd);
  close(fd);
}

void Children::leave_launcher() const {
  for (const int fd : private_) close(fd);
  close(socket_);  // the daemon must see when the launcher is gone
  close(host_.lock_fd);
  listener_.close_in_child();
  // A reader of the daemon's output must not wait for the end of its jobs.
  if (o_.error_fd >= 0) close(o_.error_fd);
}

const char* Children::oom_score() const {
  return host_.job_oom_score.empty() ? nullptr : host_.job_oom_score.c_str();
}

SupervisorOptions Children::supervisor_options(model::AttemptId attempt,
                                               const LaunchRequest& request, int record) const {
  SupervisorOptions options;
  options.attempt = attempt;
  options.request = &request;
  options.folders = &host_.folders;
  options.cgroup_base = host_.base.path;
  options.base_fd = host_.base_fd;
  options.confinement = &host_.confinement;
  options.record_fd = record;
  options.notice_fd = host_.notice_fd;
  options.oom_score = oom_score();
  options.hooks = &o_.hooks;
  options.containers = {host_.container_client, o_.containers, host_.rootless_cluster(),
                        o_.container_timeout_ms};
  options.title = o_.title;
  return options;
}

void Children::become_relay(model::AttemptId attempt, const Record& record, const Identity& user,
                            const Channel& channel) const {
  RelayOptions options;
  // A channel ends soon after the daemon, so that a reader of the log need not wait for it.
  if (channel.log >= 0) options.log_fd = fcntl(channel.log, F_DUPFD_CLOEXEC, 3);
  leave_launcher();
  options.attempt = attempt;
  options.record = record;
  options.boot_id = host_.boot_id;
  options.user = user;
  options.cgroup_fd = channel.cgroup;
  options.notice_fd = host_.notice_fd;
  options.limits = &host_.confinement.limits;
  options.filters_syscalls = host_.confinement.filters_syscalls;
  if (host_.rootless_cluster().empty()) options.container_client = host_.container_client;
  options.container_rules = o_.containers;
  options.channel = channel.fd;
  options.oom_score = oom_score();
  options.title = o_.title;
  run_relay(options);
}

}  // namespace gpu_platform::node
