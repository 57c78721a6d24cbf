#include "api/audit_names.h"

#include <iterator>

#include <fmt/format.h>

#include "api/job_reader.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

void AuditNames::add(const model::AuditedCall& entry, v1::AuditEntry& out) {
  // A submitted array is named by its first member, which has the id of the array.
  if (entry.action == model::AuditAction::kSubmit) return;
  for (const model::JobId id : entry.jobs) {
    const std::string name = name_of(id);
    if (!name.empty()) (*out.mutable_names())[std::to_string(id.value)] = name;
  }
}

std::optional<std::string> AuditNames::name_in_known_array(model::JobId id) const {
  const auto after = arrays_.upper_bound(id.value);
  if (after == arrays_.begin()) return std::nullopt;
  const auto& [first, array] = *std::prev(after);
  const std::uint64_t position = id.value - first;
  if (position >= model::member_count(array)) return std::nullopt;
  return fmt::format("{}_{}", first, model::index_at(array, position));
}

std::string AuditNames::name_of(model::JobId id) {
  if (auto known = name_in_known_array(id)) return *std::move(known);
  if (const auto known = names_.find(id.value); known != names_.end()) return known->second;
  if (look_ups_ == kMaxLookUps) return {};
  ++look_ups_;
  std::string& name = names_[id.value];
  const auto found = reader_.find(caller_, id);
  if (!found || !found->job->is_member()) return {};
  const model::Job& job = *found->job;
  if (job.spec->array) arrays_.emplace(job.array_id.value, *job.spec->array);
  return name = model::name_of(job);
}

}  // namespace gpu_platform::api
