#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/convert/job.h"
#include "api/core_access.h"
#include "bin/users_files.h"
#include "execution/access_router.h"

namespace gpu_platform::bin {

// Output of jobs for readers: what the platform keeps, or the file that the job's user named.
class JobOutputs : public api::OutputSource {
 public:
  // `snapshot` gives the newest, with the names of nodes for patterns and the site's policy.
  // `access`, which outlives this, finds the engine that keeps an attempt's output.
  using Snapshots = std::function<std::shared_ptr<const controller::Snapshot>()>;
  JobOutputs(const execution::AccessRouter& access, Snapshots snapshot, UsersFiles files)
      : access_(access), snapshot_(std::move(snapshot)), files_(std::move(files)) {}

  std::string path(const model::Job& job, std::uint32_t attempt) const override;
  // A file that the user named is opened as that user: the daemon may read more than the user may,
  // or less, and a name or a link must not become a way to other people's files.
  api::OutputReader reader(const model::Job& job, std::uint32_t attempt) const override;

  std::string container_step(const model::Job& job, std::uint32_t attempt) const override;

 private:
  // Readers of output that the platform keeps, and of a file that the user set.
  api::OutputReader reader_of_kept(const model::Job& job, std::uint32_t attempt) const;
  api::OutputReader reader_of_users(const model::Job& job, std::uint32_t attempt) const;

  const execution::AccessRouter& access_;
  const Snapshots snapshot_;
  const UsersFiles files_;
};

}  // namespace gpu_platform::bin
