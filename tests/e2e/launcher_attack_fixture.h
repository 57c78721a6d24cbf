#pragma once

#include <gtest/gtest.h>

#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "node/protocol.h"
#include "node/record.h"
#include "os/packet_socket.h"
#include "service_fixture.h"

namespace gpu_platform::e2e {

inline constexpr uid_t kService = 38;
inline constexpr uid_t kUser = 34;  // of the jobs: an account, as "backup" is on every Debian

inline std::string boot_id() {
  return lines_of(read_file("/proc/sys/kernel/random/boot_id")).at(0);
}

// Returns what `work` answers in a process of that user, without any group.
inline std::string in_process_of(uid_t uid, const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    const bool is_user = setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 &&
                         setresuid(uid, uid, uid) == 0;
    const std::string answer = is_user ? work() : "cannot become the user";
    (void)!write(ends[1], answer.data(), answer.size());
    _exit(0);
  }
  close(ends[1]);
  std::string answer(1 << 16, '\0');
  std::size_t size = 0;
  for (ssize_t got = 0; (got = read(ends[0], answer.data() + size, answer.size() - size)) > 0;) {
    size += static_cast<std::size_t>(got);
  }
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  return answer.substr(0, size);
}

// A connection that a process of that user has made: what is said over it, that process could say.
inline int connect_as(uid_t uid, const std::string& path) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  in_process_of(uid, [&]() -> std::string {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "refused";
    os::send_packet(ends[1], "connected", fd);
    return "";
  });
  close(ends[1]);
  char buffer[64];
  const os::Packet packet = os::receive_packet(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  return packet.fd;
}

struct LauncherJob {
  std::string script;
  std::uint32_t uid = kUser;
  std::vector<node::DeviceNumber> devices;
  std::string output;  // empty: kept by the platform
};

// The service user at the launcher's socket, in the daemon's place.
class AttackOnTheLauncher : public ServiceFixture {
 protected:
  void SetUp() override {
    ServiceFixture::SetUp();
    if (IsSkipped()) return;
    start_launcher(of_one_user());
    greet();
  }
  void TearDown() override {
    if (socket_ >= 0) close(socket_);
    ServiceFixture::TearDown();
  }

  // Options of a launcher for which the host has one user; all others are the system's.
  static std::vector<std::string> of_one_user(std::vector<std::string> further = {}) {
    const std::string uid = std::to_string(kUser);
    further.insert(further.end(), {"--min-uid", uid, "--max-uid", uid});
    return further;
  }

  void greet() {
    if (socket_ >= 0) close(socket_);
    // Its name is there a moment before it listens.
    ASSERT_TRUE(eventually([&] {
      socket_ = connect_as(kService, launcher_socket());
      return socket_ >= 0;
    }));
    const auto welcome = ask(node::Hello{});
    ASSERT_TRUE(welcome && std::holds_alternative<node::Welcome>(*welcome));
    for (const auto& guard : std::get<node::Welcome>(*welcome).guards) {
      if (guard.held) held_.insert(guard.guard);
    }
  }

  void say(const node::Message& message, int fd = -1) const {
    os::send_packet(socket_, node::encode(message), fd);
  }
  std::optional<node::Message> hear() {
    const os::Packet packet = os::receive_packet(socket_, buffer_, sizeof buffer_);
    if (packet.fd >= 0) close(packet.fd);
    return packet.kind == os::Packet::Kind::kMessage ? node::decode(packet.bytes) : std::nullopt;
  }
  std::optional<node::Message> ask(const node::Message& message, int fd = -1) {
    say(message, fd);
    return hear();
  }

  static std::string with_nul(const std::string& text) { return text + '\0'; }
  using Change = std::function<void(node::LaunchRequest&)>;  // of what is asked for

  std::string request_of(const LauncherJob& job, const Change& change = {}) const {
    const std::string script = with_nul(job.script);
    const std::string output = with_nul(job.output);
    const std::string workdir = with_nul(folder_.path() + "/jobs");
    const std::string boot = boot_id();
    node::LaunchRequest request;
    request.boot_id = boot;
    request.user.uid = job.uid;
    request.command = {std::string_view("/bin/sh\0", 8), std::string_view("-c\0", 3), script};
    request.workdir = workdir;
    request.output = output;
    request.output_files = 2;
    request.output_file_bytes = 1 << 20;
    request.devices = job.devices;
    request.private_folders = true;
    if (change) change(request);
    return node::encode_request(request);
  }
  // The launcher's word on the start of attempt N-1: empty when it was started.
  std::string launch(std::uint64_t number, const LauncherJob& job, const Change& change = {}) {
    const std::string request = request_of(job, change);
    const auto answer = ask(node::Launch{{model::JobId(number), 1}, false, request});
    if (!answer) return "no answer";
    if (std::holds_alternative<node::Launched>(*answer)) return {};
    const auto* failed = std::get_if<node::LaunchFailed>(&*answer);
    return failed != nullptr ? failed->why : "another answer";
  }
  std::string record_path(std::uint64_t number) const {
    return node_folder() + "/attempts/" + std::to_string(number) + "-1";
  }
  node::Record record(std::uint64_t number) const {
    return node::decode_record(read_file(record_path(number)));
  }
  std::string output(std::uint64_t number) const {
    return read_file(node::output_path(node_folder(), {model::JobId(number), 1}));
  }
  // Runs it to its end; what it printed.
  std::string run(std::uint64_t number, const LauncherJob& job, const Change& change = {}) {
    EXPECT_EQ(launch(number, job, change), "");
    EXPECT_TRUE(eventually([&] { return record(number).cleaned.has_value(); }));
    return output(number);
  }
  std::string job_file(const std::string& name) const { return folder_.path() + "/jobs/" + name; }

  int socket_ = -1;
  std::set<node::Guard> held_;
  char buffer_[node::kMaxMessage];
};

}  // namespace gpu_platform::e2e
