#include "store/archive_query.h"

#include <algorithm>

#include "model/job_size.h"
#include "model/job_spec.h"

namespace gpu_platform::store {

bool matches(const ArchiveQuery& query, const model::Job& job) {
  const model::JobSpec& spec = *job.spec;
  if (query.user && *query.user != spec.user) return false;
  if (query.team && *query.team != spec.team) return false;
  if (query.name && *query.name != spec.name) return false;
  if (query.before.valid() && job.id >= query.before) return false;
  if (query.ended_since.is_set() && job.ended_at < query.ended_since) return false;
  if (!query.states.empty() && std::ranges::find(query.states, job.state) == query.states.end()) {
    return false;
  }
  return std::ranges::all_of(query.labels, [&](const model::Label& label) {
    return std::ranges::find(spec.labels, label) != spec.labels.end();
  });
}

bool is_enough(const ArchiveQuery& query, const model::Job& job, std::size_t& bytes) {
  if (query.max_bytes == 0) return false;
  bytes += static_cast<std::size_t>(model::size_in_list(job).value());
  return bytes >= query.max_bytes;
}

}  // namespace gpu_platform::store
