#include "execution/process/attempt_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "node/protocol.h"

namespace gpu_platform::execution {

AttemptFiles read_attempt(const std::string& folder, model::AttemptId attempt) {
  AttemptFiles files;
  const int fd =
      open(node::record_path(folder, attempt).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  files.exists = fd >= 0 || errno != ENOENT;
  if (fd < 0) return files;
  files.supervised = flock(fd, LOCK_SH | LOCK_NB) != 0;
  std::string bytes(node::kRecordSize, '\0');
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
  close(fd);
  files.readable = got >= 0;
  files.begun = got == static_cast<ssize_t>(bytes.size());
  if (files.begun) files.record = node::decode_record(bytes);
  return files;
}

std::vector<model::AttemptId> list_attempts(const std::string& folder) {
  std::vector<model::AttemptId> attempts;
  DIR* const records = opendir(node::attempts_dir(folder).c_str());
  if (records == nullptr) return attempts;
  while (const dirent* entry = readdir(records)) {
    if (const auto attempt = node::parse_attempt_name(entry->d_name)) attempts.push_back(*attempt);
  }
  closedir(records);
  std::sort(attempts.begin(), attempts.end());
  return attempts;
}

}  // namespace gpu_platform::execution
