#include "controller/load.h"

#include "base/check.h"
#include "model/job_size.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

void Load::enter(const model::JobSpec& spec, std::uint64_t jobs) {
  if (jobs == 0) return;
  const base::Bytes size = model::size_of(spec) * static_cast<std::int64_t>(jobs);
  users_[spec.uid].specifications += size;
  in_all_.specifications += size;
}

void Load::leave(const model::JobSpec& spec) {
  const base::Bytes size = model::size_of(spec);
  UserLoad& user = users_[spec.uid];
  CHECK(user.specifications >= size);
  user.specifications -= size;
  in_all_.specifications -= size;
  drop_if_empty(spec.uid);
}

void Load::begin_waiting(std::uint32_t uid) {
  ++users_[uid].waiting_jobs;
  ++in_all_.waiting_jobs;
}

void Load::end_waiting(std::uint32_t uid) {
  UserLoad& user = users_[uid];
  CHECK(user.waiting_jobs > 0);
  --user.waiting_jobs;
  --in_all_.waiting_jobs;
  drop_if_empty(uid);
}

UserLoad Load::of(std::uint32_t uid) const {
  const auto found = users_.find(uid);
  return found == users_.end() ? UserLoad() : found->second;
}

void Load::drop_if_empty(std::uint32_t uid) {
  const auto found = users_.find(uid);
  if (found != users_.end() && found->second == UserLoad()) users_.erase(found);
}

}  // namespace gpu_platform::controller
