#include "node/launcher/file_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/protocol.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/named_file.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr unsigned kTimeoutSeconds = 60;

void tell(int socket, const OpenedFile& opened, int file = -1) {
  os::send_packet(socket, encode_opened_file(opened), file);
}

// Nothing of ours is open in it but the socket, and it ends by itself where the file system answers
// at all.
[[noreturn]] void open_and_tell(const Identity& user, const std::string& path, int socket) {
  constexpr int kKept = 3;
  if (socket != kKept && dup2(socket, kKept) < 0) _exit(1);
  syscall(SYS_close_range, kKept + 1, ~0U, 0);
  alarm(kTimeoutSeconds);
  const SwitchFailure failure = geteuid() == 0 ? UserSwitch(user).become() : SwitchFailure();
  if (failure.what != nullptr || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    tell(kKept, {failure.what != nullptr ? failure.error : errno,
                 failure.what != nullptr ? failure.what : ""});
    _exit(1);
  }
  const int file = os::open_named_file(path.c_str(), O_RDONLY);
  struct stat about{};
  if (file < 0 || fstat(file, &about) != 0) {
    tell(kKept, {errno, {}});
  } else if (!S_ISREG(about.st_mode)) {
    tell(kKept, {EINVAL, "it is not a regular file"});
  } else if (const char* why = os::error_in_place(file)) {
    tell(kKept, {EINVAL, why});
  } else {
    tell(kKept, {}, file);
  }
  _exit(0);
}

}  // namespace

FileOpener::~FileOpener() {
  for (const Process& process : processes_) close(process.pidfd);
}

// Returns how many openers of that user still work.
std::size_t FileOpener::forget_ended(std::uint32_t uid) {
  std::erase_if(processes_, [](const Process& process) {
    pollfd ended{process.pidfd, POLLIN, 0};
    const bool is_over = poll(&ended, 1, 0) == 1;
    if (is_over) close(process.pidfd);
    return is_over;
  });
  std::size_t count = 0;
  for (const Process& process : processes_) count += process.uid == uid ? 1 : 0;
  return count;
}

void FileOpener::open(const Identity& user, const std::string& path, int socket) {
  if (forget_ended(user.uid) >= kMaxPerUser) {
    return tell(socket, {0, "the file system does not answer"});
  }
  int pidfd = -1;
  const int pid = fork_with_pidfd(&pidfd);
  if (pid == 0) open_and_tell(user, path, socket);
  if (pid < 0) return tell(socket, {errno, {}});
  processes_.push_back({user.uid, pidfd});
}

}  // namespace gpu_platform::node
