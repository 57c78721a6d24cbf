#pragma once

#include <functional>
#include <string>
#include <utility>

#include "api/convert/job.h"
#include "api/core_access.h"
#include "bin/users_files.h"

namespace gpu_platform::bin {

// Output of jobs for readers: what the platform keeps, or the file that the job's user named.
class JobOutputs : public api::OutputSource {
 public:
  // `nodes` gives those of the newest snapshot, for their names in patterns.
  // `folder`: the launcher's, where kept output is.
  JobOutputs(std::function<std::string()> folder, std::function<api::Nodes()> nodes,
             UsersFiles files)
      : folder_(std::move(folder)), nodes_(std::move(nodes)), files_(std::move(files)) {}

  std::string path(const model::Job& job, std::uint32_t attempt) const override;
  // A file that the user named is opened as that user: the daemon may read more than the user may,
  // or less, and a name or a link must not become a way to other people's files.
  api::OutputReader reader(const model::Job& job, std::uint32_t attempt) const override;

 private:
  std::function<std::string()> folder_;
  std::function<api::Nodes()> nodes_;
  UsersFiles files_;
};

}  // namespace gpu_platform::bin
