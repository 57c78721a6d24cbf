#pragma once

#include <functional>
#include <string>
#include <utility>

#include "api/convert/job.h"
#include "api/core_access.h"

namespace gpu_platform::bin {

// Output of jobs for readers: what the platform keeps, or the file that the job's user named.
class JobOutputs : public api::OutputSource {
 public:
  // `nodes` gives those of the newest snapshot, for their names in patterns.
  // `folder`: the launcher's, where kept output is.
  JobOutputs(std::function<std::string()> folder, std::function<api::Nodes()> nodes)
      : folder_(std::move(folder)), nodes_(std::move(nodes)) {}

  std::string path(const model::Job& job, std::uint32_t attempt) const override;
  // A file that the user named is read only where it is a regular file of that user: the daemon may
  // read more than the user may, and a name or a link must not become a way to other people's
  // files.
  base::Result<api::OutputPiece> read(const model::Job& job, std::uint32_t attempt,
                                      std::uint64_t offset, std::size_t most) const override;

 private:
  std::function<std::string()> folder_;
  std::function<api::Nodes()> nodes_;
};

}  // namespace gpu_platform::bin
