#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gpu_platform/v1/audit.pb.h"
#include "model/audit.h"
#include "model/caller.h"
#include "model/job_array.h"

namespace gpu_platform::api {

class JobReader;

// Finds what the jobs in one page of the audit trail are called: "15_5" for a member of an array.
// Made for one answer. Members of an array are looked up once for all of them, and a page does at
// most kMaxLookUps: jobs after that keep their ids.
class AuditNames {
 public:
  static constexpr std::size_t kMaxLookUps = 1'000;

  // Both outlive it.
  AuditNames(const JobReader& reader, const model::Caller& caller)
      : reader_(reader), caller_(caller) {}

  // Adds the names of the jobs of `entry` that the caller may see to `out`.
  void add(const model::AuditedCall& entry, v1::AuditEntry& out);

 private:
  // Empty: its name is its id, or it is not known.
  std::string name_of(model::JobId id);
  std::optional<std::string> name_in_known_array(model::JobId id) const;

  const JobReader& reader_;
  const model::Caller& caller_;
  std::map<std::uint64_t, model::ArraySpec> arrays_;  // by the id of the first member
  std::map<std::uint64_t, std::string> names_;        // of jobs that were looked up
  std::size_t look_ups_ = 0;
};

}  // namespace gpu_platform::api
