#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/convert/job.h"
#include "api/core_access.h"
#include "bin/users_files.h"
#include "execution/kubernetes/kubernetes_engine.h"
#include "execution/process/kept_output.h"

namespace gpu_platform::bin {

// Output of jobs for readers: what the platform keeps, or the file that the job's user named.
class JobOutputs : public api::OutputSource {
 public:
  // `snapshot` gives the newest, with the names of nodes for patterns and the site's policy.
  // `folder`: the launcher's, where kept output is. `cluster`: gives the engine of the site's
  // cluster, or null.
  using Snapshots = std::function<std::shared_ptr<const controller::Snapshot>()>;
  using Cluster = std::function<execution::KubernetesEngine*()>;
  JobOutputs(std::function<std::string()> folder, Snapshots snapshot, UsersFiles files,
             Cluster cluster)
      : folder_(std::move(folder)),
        snapshot_(std::move(snapshot)),
        files_(std::move(files)),
        cluster_(std::move(cluster)) {}

  std::string path(const model::Job& job, std::uint32_t attempt) const override;
  // A file that the user named is opened as that user: the daemon may read more than the user may,
  // or less, and a name or a link must not become a way to other people's files.
  api::OutputReader reader(const model::Job& job, std::uint32_t attempt) const override;

  std::string container_step(const model::Job& job, std::uint32_t attempt) const override;

 private:
  // The engine of the cluster that runs the attempt; null: it is none.
  execution::KubernetesEngine* cluster_of(const model::Job& job, std::uint32_t attempt) const;

  std::function<std::string()> folder_;
  Snapshots snapshot_;
  UsersFiles files_;
  Cluster cluster_;
};

}  // namespace gpu_platform::bin
