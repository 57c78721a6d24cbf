#include "bin/job_outputs.h"

#include <unistd.h>

#include <cerrno>

#include "execution/process/kept_output.h"

namespace gpu_platform::bin {

namespace {

base::Result<api::OutputPiece> read_users_file(const base::Result<os::Descriptor>& file,
                                               const std::string& path, std::uint64_t offset,
                                               std::size_t most) {
  if (!file && file.error().code == base::ErrorCode::kNotFound) {
    return api::OutputPiece{offset, {}};  // not made yet
  }
  if (!file) return std::unexpected(file.error());
  api::OutputPiece piece{offset, std::string(most, '\0')};
  const ssize_t n = pread(file->get(), piece.bytes.data(), most, static_cast<off_t>(offset));
  if (n < 0) return std::unexpected(base::system_error("read " + path, errno));
  piece.bytes.resize(static_cast<std::size_t>(n));
  return piece;
}

}  // namespace

std::string JobOutputs::path(const model::Job& job, std::uint32_t attempt) const {
  const std::string& named = job.spec->output;
  if (named.empty()) return execution::kept_output_path(folder_(), {job.id, attempt});
  return api::users_file(job, attempt, named, nodes_());
}

api::OutputReader JobOutputs::reader(const model::Job& job, std::uint32_t attempt) const {
  const std::string file = path(job, attempt);
  if (!job.spec->output.empty()) {
    return {true,
            [files = files_, uid = job.spec->uid, file](std::uint64_t offset, std::size_t most) {
              return read_users_file(files.open(uid, file), file, offset, most);
            }};
  }
  return {false, [file](std::uint64_t offset, std::size_t most) -> base::Result<api::OutputPiece> {
            TRY_ASSIGN(execution::OutputRange range,
                       execution::read_kept_output(file, offset, most));
            return api::OutputPiece{range.offset, std::move(range.bytes)};
          }};
}

}  // namespace gpu_platform::bin
