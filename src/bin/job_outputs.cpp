#include "bin/job_outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "execution/process/kept_output.h"

namespace gpu_platform::bin {

namespace {

base::Result<api::OutputPiece> read_users_file(const std::string& path, std::uint32_t uid,
                                               std::uint64_t offset, std::size_t most) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT) return api::OutputPiece{offset, {}};
    return std::unexpected(base::system_error("open " + path, errno));
  }
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return api::OutputPiece{offset, {}};  // a terminal, a pipe, /dev/null: nothing was kept
  }
  if (uid != 0 && status.st_uid != uid) {
    close(fd);
    return base::fail(base::ErrorCode::kPermissionDenied,
                      path + " does not belong to the job's user and is not shown");
  }
  api::OutputPiece piece{offset, std::string(most, '\0')};
  const ssize_t n = pread(fd, piece.bytes.data(), most, static_cast<off_t>(offset));
  const int error = errno;
  close(fd);
  if (n < 0) return std::unexpected(base::system_error("read " + path, error));
  piece.bytes.resize(static_cast<std::size_t>(n));
  return piece;
}

}  // namespace

std::string JobOutputs::path(const model::Job& job, std::uint32_t attempt) const {
  const std::string& named = job.spec->output;
  if (named.empty()) return execution::kept_output_path(folder_(), {job.id, attempt});
  return api::users_file(job, attempt, named, nodes_());
}

base::Result<api::OutputPiece> JobOutputs::read(const model::Job& job, std::uint32_t attempt,
                                                std::uint64_t offset, std::size_t most) const {
  const std::string file = path(job, attempt);
  if (!job.spec->output.empty()) return read_users_file(file, job.spec->uid, offset, most);
  TRY_ASSIGN(execution::OutputRange range, execution::read_kept_output(file, offset, most));
  return api::OutputPiece{range.offset, std::move(range.bytes)};
}

}  // namespace gpu_platform::bin
