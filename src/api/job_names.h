#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include "controller/snapshot.h"
#include "model/access_rules.h"
#include "model/ids.h"

namespace gpu_platform::api {

// What other jobs are called where an answer about one job names them: "42", "40_3" for a member of
// an array, and nothing for a job that the caller may not see. A job that has left the snapshot is
// called by its number. Safe from any thread; keeps the snapshot alive.
class JobNames {
 public:
  JobNames(std::shared_ptr<const controller::Snapshot> snapshot, model::View view)
      : snapshot_(std::move(snapshot)), view_(std::move(view)) {}

  const std::shared_ptr<const controller::Snapshot>& snapshot() const { return snapshot_; }

  std::string operator()(model::JobId id) const;
  bool is_hidden(model::JobId id) const;

  // Adds the ids of the jobs that are not hidden to `out`, and to `names` what those are called
  // that have another name than their id. Returns the number of the hidden ones.
  std::uint64_t add(const std::vector<model::JobId>& jobs,
                    google::protobuf::RepeatedPtrField<std::string>& out,
                    google::protobuf::Map<std::string, std::string>& names) const;
  // Adds to `names` what the jobs are called whose ids an answer has already.
  void add_names(const google::protobuf::RepeatedPtrField<std::string>& ids,
                 google::protobuf::Map<std::string, std::string>& names) const;
  void add_name(std::string_view id, google::protobuf::Map<std::string, std::string>& names) const;

 private:
  std::shared_ptr<const controller::Snapshot> snapshot_;
  model::View view_;
};

}  // namespace gpu_platform::api
