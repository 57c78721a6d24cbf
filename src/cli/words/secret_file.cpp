#include "cli/words/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>

namespace gpu_platform::cli {

namespace {

base::Status failed(const std::string& path, std::string_view why) {
  return base::fail(base::ErrorCode::kFailedPrecondition, fmt::format("'{}': {}", path, why));
}

// The program is one thread here, so the plain call will do.
base::Status give_to(int file, const std::string& path, const std::string& owner) {
  if (owner.empty() || geteuid() != 0) return {};
  const passwd* const account = getpwnam(owner.c_str());
  if (account == nullptr) return failed(path, fmt::format("this host has no user '{}'", owner));
  if (fchown(file, account->pw_uid, account->pw_gid) != 0) return failed(path, strerror(errno));
  return {};
}

}  // namespace

SecretFile::SecretFile(std::string path, os::Descriptor file)
    : path_(std::move(path)), file_(std::move(file)) {}

SecretFile::SecretFile(SecretFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)) {}

SecretFile::~SecretFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

base::Result<SecretFile> SecretFile::create(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  os::Descriptor file(open(path.c_str(), kFlags, 0600));
  if (file.is_open()) return SecretFile(path, std::move(file));
  const int error = errno;
  const std::string_view why = error == EEXIST ? "it exists already; name a new file, or remove it"
                                               : std::string_view(strerror(error));
  return std::unexpected(failed(path, why).error());
}

base::Status SecretFile::put(std::string_view secret, const std::string& owner) {
  std::string line(secret);
  line += '\n';
  TRY(give_to(file_.get(), path_, owner));
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t wrote = write(file_.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed(path_, strerror(errno));
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (fsync(file_.get()) != 0) return failed(path_, strerror(errno));
  path_.clear();
  return {};
}

}  // namespace gpu_platform::cli
