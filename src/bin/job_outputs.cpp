#include "bin/job_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/parse.h"
#include "execution/process/kept_output.h"
#include "model/job_spec.h"
#include "model/states.h"
#include "os/clock.h"

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

// Whether the site's policy has the output of the job removed by now. If there is no file before
// that time, the job has printed nothing.
bool is_kept_no_longer(const model::Job& job, const model::Policy& policy) {
  return policy.output_keep != base::Duration() && model::is_ended(job.state) &&
         job.ended_at + policy.output_keep < os::wall_now();
}

std::unexpected<base::Error> removed_output(model::JobId job, const model::Policy& policy) {
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("the output of job {} was removed after its end: output is kept "
                                "for {} here (store.output_keep)",
                                job.value, base::written(policy.output_keep)),
                    "id");
}

// Whether the job's process has opened the file that its user named. Before, and where it never
// came so far, what is there is no output of the job.
enum class UsersFileIs { kOpened, kStillToBeOpened, kNeverOpened };

UsersFileIs look_at_start(const model::Job& job, std::uint32_t attempt) {
  const auto found = std::ranges::find(job.attempts, attempt, &model::Attempt::number);
  if (found == job.attempts.end()) return UsersFileIs::kNeverOpened;
  if (found->started_at != base::Instant()) return UsersFileIs::kOpened;
  const bool is_to_come = found->ended_at == base::Instant() && model::is_active(job.state);
  return is_to_come ? UsersFileIs::kStillToBeOpened : UsersFileIs::kNeverOpened;
}

base::Result<api::OutputPiece> nothing_printed(const model::JobId job, std::uint32_t attempt,
                                               const std::string& file) {
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("attempt {} of job {} has printed nothing to {}: it ended before "
                                "its program ran",
                                attempt, job.value, file),
                    "id");
}

}  // namespace

std::string JobOutputs::container_step(const model::Job& job, std::uint32_t attempt) const {
  return access_.of(job, attempt).step_of({job.id, attempt});
}

std::string JobOutputs::path(const model::Job& job, std::uint32_t attempt) const {
  const std::string& named = job.spec->output;
  if (named.empty()) return access_.of(job, attempt).output_of({job.id, attempt});
  return api::users_file(job, attempt, named, snapshot_()->nodes);
}

api::OutputReader JobOutputs::reader(const model::Job& job, std::uint32_t attempt) const {
  return job.spec->output.empty() ? reader_of_kept(job, attempt) : reader_of_users(job, attempt);
}

api::OutputReader JobOutputs::reader_of_users(const model::Job& job, std::uint32_t attempt) const {
  const std::string file = path(job, attempt);
  const UsersFileIs opened = look_at_start(job, attempt);
  if (opened != UsersFileIs::kOpened) {
    return {false,
            [opened, id = job.id, attempt, file](std::uint64_t offset,
                                                 std::size_t) -> base::Result<api::OutputPiece> {
              if (opened == UsersFileIs::kNeverOpened) return nothing_printed(id, attempt, file);
              return api::OutputPiece{offset, {}};
            }};
  }
  return {true,
          [files = files_, uid = job.spec->uid, file](std::uint64_t offset, std::size_t most) {
            return read_users_file(files.open(uid, file), file, offset, most);
          }};
}

api::OutputReader JobOutputs::reader_of_kept(const model::Job& job, std::uint32_t attempt) const {
  const model::AttemptId id{job.id, attempt};
  execution::AttemptAccess& engine = access_.of(job, attempt);
  const std::string file = engine.output_of(id);
  if (model::is_active(job.state)) engine.follow_output(id);
  const auto policy = snapshot_()->policy;
  if (is_kept_no_longer(job, *policy) && !execution::has_output_files(file)) {
    return {false,
            [id = job.id, policy](std::uint64_t, std::size_t) -> base::Result<api::OutputPiece> {
              return removed_output(id, *policy);
            }};
  }
  return {false,
          [file, &engine, id](std::uint64_t offset,
                              std::size_t most) -> base::Result<api::OutputPiece> {
            // Asked before the file is read: what comes in between is in it.
            const bool has_more = engine.awaits_output(id);
            TRY_ASSIGN(execution::OutputRange range,
                       execution::read_kept_output(file, offset, most));
            return api::OutputPiece{range.offset, std::move(range.bytes), has_more};
          }};
}

}  // namespace gpu_platform::bin
