#include "bin/job_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/parse.h"
#include "execution/process/kept_output.h"
#include "model/states.h"

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

// Whether the attempt ran, so that its output was kept, and is over.
bool had_output(const model::Job& job, std::uint32_t attempt) {
  const auto found = std::ranges::find(job.attempts, attempt, &model::Attempt::number);
  return model::is_ended(job.state) && found != job.attempts.end() && found->started_at.is_set();
}

std::unexpected<base::Error> removed_output(model::JobId job, const model::Policy& policy) {
  const base::Duration keep = policy.output_keep;
  return base::fail(
      base::ErrorCode::kNotFound,
      fmt::format("the output of job {} was removed after its end{}", job.value,
                  keep == base::Duration()
                      ? std::string()
                      : fmt::format(": output is kept for {} here (store.output_keep)",
                                    base::written(keep))),
      "id");
}

}  // namespace

std::string JobOutputs::path(const model::Job& job, std::uint32_t attempt) const {
  const std::string& named = job.spec->output;
  if (named.empty()) return execution::kept_output_path(folder_(), {job.id, attempt});
  return api::users_file(job, attempt, named, snapshot_()->nodes);
}

api::OutputReader JobOutputs::reader(const model::Job& job, std::uint32_t attempt) const {
  const std::string file = path(job, attempt);
  if (!job.spec->output.empty()) {
    return {true,
            [files = files_, uid = job.spec->uid, file](std::uint64_t offset, std::size_t most) {
              return read_users_file(files.open(uid, file), file, offset, most);
            }};
  }
  if (had_output(job, attempt) && !execution::has_output_files(file)) {
    return {false,
            [id = job.id, policy = snapshot_()->policy](std::uint64_t, std::size_t)
                -> base::Result<api::OutputPiece> { return removed_output(id, *policy); }};
  }
  return {false, [file](std::uint64_t offset, std::size_t most) -> base::Result<api::OutputPiece> {
            TRY_ASSIGN(execution::OutputRange range,
                       execution::read_kept_output(file, offset, most));
            return api::OutputPiece{range.offset, std::move(range.bytes)};
          }};
}

}  // namespace gpu_platform::bin
