#include "api/dependencies.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/convert/job_change.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

namespace {

// Returns the outcome of an array that has no member in the core any more.
base::Result<model::TargetOutcome> outcome_of_archived(const JobReader& reader,
                                                       const model::Job& first) {
  constexpr std::size_t kPage = 1'000;
  const std::uint64_t size = member_count(*first.spec->array);
  model::TargetOutcome outcome;
  store::ArchiveQuery query;
  query.before = model::JobId(first.id.value + size);
  query.limit = kPage;
  while (true) {
    TRY_ASSIGN(const std::vector<model::Job> page, reader.core().archive.list(query));
    for (const model::Job& job : page) {
      if (job.array_id == first.id) model::count_end(job, outcome);
    }
    if (page.size() < kPage || page.back().id <= first.id) return outcome;
    query.before = page.back().id;
  }
}

// The members of the array that have left the core: its record says of them only whether all did
// well.
base::Status add_departed(const JobReader& reader, const model::Job& first,
                          ResolvedDependencies& resolved) {
  constexpr std::size_t kPage = 1'000;
  store::ArchiveQuery query;
  query.before = model::JobId(first.id.value + member_count(*first.spec->array));
  query.limit = kPage;
  while (true) {
    TRY_ASSIGN(const std::vector<model::Job> page, reader.core().archive.list(query));
    for (const model::Job& job : page) {
      if (job.array_id != first.id) continue;
      model::EndedTarget ended{{job.id, false}, {}};
      model::count_end(job, ended.outcome);
      resolved.ended.push_back(ended);
    }
    if (page.size() < kPage || page.back().id <= first.id) return {};
    query.before = page.back().id;
  }
}

base::Status resolve(const JobReader& reader, const FoundJob& found, model::DependencyKind kind,
                     ResolvedDependencies& resolved) {
  const model::Job& job = *found.job;
  const model::DependencyTarget target{job.id, found.whole_array};
  const model::Dependency dependency{kind, target};
  const auto& asked = resolved.asked;
  if (std::ranges::find(asked, dependency) != asked.end()) return {};
  resolved.asked.push_back(dependency);
  const auto* live = target.whole_array ? found.snapshot->arrays.find(job.id.value) : nullptr;
  const bool needs_members =
      kind == model::DependencyKind::kAfterCorr && live != nullptr && live->outcome.failed.valid();
  if (needs_members) return add_departed(reader, job, resolved);
  if (live != nullptr) return {};
  if (!target.whole_array && found.archived == nullptr) return {};
  model::EndedTarget ended{target, {}};
  if (target.whole_array) {
    TRY_ASSIGN(ended.outcome, outcome_of_archived(reader, job));
  } else {
    model::count_end(job, ended.outcome);
  }
  resolved.ended.push_back(ended);
  return {};
}

}  // namespace

base::Result<ResolvedDependencies> resolve_dependencies(const JobReader& reader,
                                                        const model::Caller& caller,
                                                        std::string_view text) {
  TRY_ASSIGN(const std::vector<DependencyRef> refs, to_dependencies(text));
  ResolvedDependencies resolved;
  for (const DependencyRef& ref : refs) {
    if (ref.kind == model::DependencyKind::kSingleton) {
      resolved.asked.push_back({ref.kind, {}});
      continue;
    }
    const auto found = reader.find(caller, ref.on);
    if (!found) {
      return base::fail(found.error().code, "dependency: " + found.error().message, "dependency");
    }
    TRY(resolve(reader, *found, ref.kind, resolved));
  }
  return resolved;
}

void send_with_dependencies(const CallContext& context, DependentCommand dependent, Resume resume,
                            CallContext::Finish finish) {
  auto resolved = resolve_dependencies(context.reader, dependent.caller, dependent.dependency);
  if (!resolved) return finish(std::unexpected(std::move(resolved).error()));
  model::Command command = dependent.make(*std::move(resolved));
  auto answered = [&context, dependent = std::move(dependent), resume,
                   finish = std::move(finish)](base::Result<model::CommandReply> reply) mutable {
    const bool has_left = !reply && reply.error().code == base::ErrorCode::kNotFound &&
                          reply.error().field == "dependency";
    if (!has_left || --dependent.looks == 0) return finish(std::move(reply));
    send_with_dependencies(context, std::move(dependent), std::move(resume), std::move(finish));
  };
  context.send(std::move(command), std::move(resume), std::move(answered));
}

}  // namespace gpu_platform::api
