#include "cli/text/array_fold.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "cli/text/message_text.h"

namespace gpu_platform::cli {

std::optional<Fold> array_fold(const v1::Job& job) {
  const bool waits = job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_PENDING ||
                     job.state() == v1::JOB_STATE_HELD;
  if (!waits || job.array_id().empty()) return std::nullopt;
  const v1::WaitReason& reason = job.wait_reason();
  std::string key = fmt::format("{} {} {} {}", job.array_id(), state_name(job), reason.code(),
                                job.attempts_size());
  const std::map<std::string, std::uint64_t> counts(reason.counts().begin(), reason.counts().end());
  for (const auto& [name, count] : counts) {
    if (name != "jobs_ahead") key += fmt::format(" {}={}", name, count);
  }
  const std::map<std::string, std::uint64_t> short_by(reason.short_by().begin(),
                                                      reason.short_by().end());
  for (const auto& [name, count] : short_by) key += fmt::format(" {}:{}", name, count);
  return Fold{std::move(key), job.array_id(), job.array_index()};
}

}  // namespace gpu_platform::cli
