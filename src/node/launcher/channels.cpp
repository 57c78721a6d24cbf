#include "node/launcher/channels.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "node/channel_refusal.h"
#include "node/supervisor/session_socket.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

std::optional<Record> Channels::find_running(model::AttemptId attempt, int channel) const {
  OpenRecord found = attempts_.look_at(attempt);
  const bool is_running = found.holder == Holder::kSupervisor && found.record.beginning &&
                          found.record.started && !found.record.end;
  if (is_running) return std::move(found.record);
  refuse_channel(channel, "the job has just ended");
  return std::nullopt;
}

void Channels::start_relay(model::AttemptId attempt, const Record& record, const Identity& user,
                           int channel) {
  const int log = log_for_channel_of(user.uid);
  const bool has_cgroup = !record.beginning->cgroup.empty();
  const int cgroup = has_cgroup ? attempts_.open_cgroup(attempt, record) : -1;
  if (has_cgroup && cgroup < 0) return refuse_channel(channel, "the job has just ended");
  const Child child = children_.start_relay(attempt, record, user, {cgroup, channel, log});
  if (child.pid < 0) refuse_channel(channel, std::string("start a relay: ") + strerror(errno));
  if (child.pidfd >= 0) close(child.pidfd);
  if (cgroup >= 0) close(cgroup);
}

void Channels::hand_to_supervisor(model::AttemptId attempt, int channel) const {
  const int session = connect_to_session(host_.folders.run, attempt);
  const bool is_handed = session >= 0 && os::send_packet(session, "attach", channel);
  if (!is_handed) refuse_channel(channel, "the job has just ended, or takes no input");
  if (session >= 0) close(session);
}

// A user that opens very many channels must not fill the log.
int Channels::log_for_channel_of(std::uint32_t uid) {
  if (o_.error_fd < 0) return -1;
  const std::string dropped = lines_.close_if_over(os::boot_ms());
  [[maybe_unused]] const ssize_t wrote = write(o_.error_fd, dropped.data(), dropped.size());
  return lines_.take(uid, os::boot_ms()) ? o_.error_fd : -1;
}

}  // namespace gpu_platform::node
