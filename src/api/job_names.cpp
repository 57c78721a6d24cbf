#include "api/job_names.h"

#include "api/convert/job.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

bool JobNames::is_hidden(model::JobId id) const {
  const model::Job* job = snapshot_->jobs.find(id.value);
  return job != nullptr && !view_.sees(model::Sight::kJobs, *job->spec);
}

std::string JobNames::operator()(model::JobId id) const {
  const model::Job* job = snapshot_->jobs.find(id.value);
  if (job == nullptr) return std::to_string(id.value);
  return view_.sees(model::Sight::kJobs, *job->spec) ? model::name_of(*job) : std::string();
}

std::uint64_t JobNames::add(const std::vector<model::JobId>& jobs,
                            google::protobuf::RepeatedPtrField<std::string>& out,
                            google::protobuf::Map<std::string, std::string>& names) const {
  std::uint64_t hidden = 0;
  for (const model::JobId id : jobs) {
    if (is_hidden(id)) {
      ++hidden;
      continue;
    }
    *out.Add() = std::to_string(id.value);
    add_name(out[out.size() - 1], names);
  }
  return hidden;
}

void JobNames::add_name(std::string_view id,
                        google::protobuf::Map<std::string, std::string>& names) const {
  const auto job = to_job_id(id);
  if (!job) return;
  const std::string name = (*this)(*job);
  if (!name.empty() && name != id) names[std::string(id)] = name;
}

void JobNames::add_names(const google::protobuf::RepeatedPtrField<std::string>& ids,
                         google::protobuf::Map<std::string, std::string>& names) const {
  for (const std::string& id : ids) add_name(id, names);
}

}  // namespace gpu_platform::api
