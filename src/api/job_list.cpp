#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/convert/job_step.h"
#include "api/convert/json_writer.h"
#include "api/job_cost.h"
#include "api/job_names.h"
#include "api/job_reader.h"
#include "model/job_selection.h"
#include "model/job_size.h"
#include "model/job_spec.h"

// Lists of jobs: those of the snapshot and ended ones of the archive, merged by id.

namespace gpu_platform::api {

namespace {

// The number of ended jobs that are fetched at once: about as many as one piece of an answer holds.
constexpr std::size_t kBatch = 500;
constexpr std::size_t kBatchBytes = 256 * 1024;
// The number of ended jobs that one page passes over because the caller does not see them.
constexpr std::size_t kMaxPassedOver = 50'000;

}  // namespace

JobListWriter::JobListWriter(const JobReader& reader, model::Caller caller, ListFilter filter)
    : reader_(reader),
      caller_(std::move(caller)),
      view_(reader.view_of(caller_)),
      filter_(std::move(filter)),
      has_spec_(is_asked_for("spec")),
      has_steps_(filter_.with_steps && is_asked_for("steps")),
      has_gpu_use_(filter_.with_gpu_use && is_asked_for("gpu_use")),
      has_cost_(filter_.with_cost && is_asked_for("cost")),
      has_reason_(is_asked_for("wait_reason")) {}

bool JobListWriter::is_asked_for(std::string_view field) const {
  return filter_.fields == nullptr || filter_.fields->find(field) != nullptr;
}

bool JobListWriter::matches(const model::Job& job) const {
  const model::JobSpec& spec = *job.spec;
  if (!view_.sees(model::Sight::kJobs, spec)) return false;
  if (!filter_.with_ended && model::is_ended(job.state)) return false;
  if (filter_.user && spec.user != *filter_.user) return false;
  if (filter_.team && spec.team != *filter_.team) return false;
  if (filter_.name && spec.name != *filter_.name) return false;
  const auto& states = filter_.states;
  if (!states.empty() && std::ranges::find(states, job.state) == states.end()) return false;
  if (filter_.since.is_set() && job.ended_at.is_set() && job.ended_at < filter_.since) return false;
  if (filter_.until.is_set() && job.submitted_at >= filter_.until) return false;
  if (filter_.name_pattern && !model::matches_pattern(*filter_.name_pattern, spec.name)) {
    return false;
  }
  if (filter_.node && !was_on_node(job)) return false;
  return std::ranges::all_of(filter_.labels, [&](const model::Label& label) {
    return std::ranges::find(spec.labels, label) != spec.labels.end();
  });
}

bool JobListWriter::was_on_node(const model::Job& job) const {
  return std::ranges::any_of(job.attempts, [&](const model::Attempt& attempt) {
    return std::ranges::any_of(attempt.allocation.nodes, [&](const auto& part) {
      return node_name(snapshot_->nodes.find(part.node.value), part.node) == *filter_.node;
    });
  });
}

base::Status JobListWriter::begin() {
  snapshot_ = reader_.core().snapshots.snapshot();
  if (has_reason_) explainer_ = reader_.explainer(snapshot_);
  // One more than the page, to know whether there is a next one.
  const std::size_t most = filter_.limit + 1 - written_;
  snapshot_->jobs.for_each_descending_while([&](std::uint64_t id, const model::Job& job) {
    if (filter_.before.valid() && id >= filter_.before.value) return true;
    if (matches(job)) active_.push_back(&job);
    return active_.size() < most;
  });
  archived_before_ = filter_.before;
  is_archive_done_ = !filter_.with_ended;
  return fetch_archived();
}

void JobListWriter::rest() {
  if (last_.valid()) filter_.before = last_;
  active_.clear();
  archived_.clear();
  next_active_ = next_archived_ = 0;
  explainer_.reset();
  snapshot_.reset();
}

base::Status JobListWriter::fetch_archived() {
  if (is_archive_done_ || next_archived_ < archived_.size()) return {};
  store::ArchiveQuery query;
  query.user = filter_.user;
  if (!view_.sees_jobs_of_others()) {
    // Only the caller's jobs can be shown, so only these are fetched.
    if (filter_.user && *filter_.user != caller_.user) {
      is_archive_done_ = true;
      return {};
    }
    query.user = caller_.user;
  }
  query.team = filter_.team;
  query.name = filter_.name;
  std::ranges::copy_if(filter_.states, std::back_inserter(query.states), model::is_ended);
  if (!filter_.states.empty() && query.states.empty()) {
    is_archive_done_ = true;
    return {};
  }
  query.labels = filter_.labels;
  query.ended_since = filter_.since;
  query.before = archived_before_;
  query.limit = std::min(filter_.limit + 1 - written_, kBatch);
  query.max_bytes = kBatchBytes;
  TRY_ASSIGN(archived_, reader_.core().archive.list(query));
  next_archived_ = 0;
  std::size_t bytes = 0;
  for (const model::Job& job : archived_) {
    bytes += static_cast<std::size_t>(model::size_in_list(job).value());
  }
  is_archive_done_ = archived_.size() < query.limit && bytes < kBatchBytes;
  if (!archived_.empty()) archived_before_ = archived_.back().id;
  return {};
}

base::Result<const model::Job*> JobListWriter::take_next() {
  for (;;) {
    TRY(fetch_archived());
    const model::Job* active = next_active_ < active_.size() ? active_[next_active_] : nullptr;
    const model::Job* archived =
        next_archived_ < archived_.size() ? &archived_[next_archived_] : nullptr;
    if (archived == nullptr && active == nullptr) return nullptr;
    if (archived == nullptr || (active != nullptr && active->id >= archived->id)) {
      ++next_active_;
      // The snapshot is older than the archive: a job may have moved in between and be in both.
      if (archived != nullptr && active->id == archived->id) ++next_archived_;
      return active;
    }
    ++next_archived_;
    if (matches(*archived)) return archived;
    last_ = archived->id;
    if (++passed_over_ == kMaxPassedOver) return nullptr;
  }
}

bool JobListWriter::is_page_full() const {
  if (written_ == filter_.limit) return true;
  return written_ > 0 && filter_.max_bytes != 0 && written_bytes_ >= filter_.max_bytes;
}

void JobListWriter::append_job(std::string& out, const model::Job& job) {
  auto& message = *google::protobuf::Arena::CreateMessage<v1::Job>(&arena_);
  const Nodes& nodes = snapshot_->nodes;
  has_spec_ ? reader_.describe(view_, job, nodes, message)
            : reader_.describe_without_spec(view_, job, nodes, message);
  if (has_steps_) add_steps(job, nodes, message);
  if (has_gpu_use_) reader_.add_gpu_use(job, message);
  if (has_cost_) add_cost(reader_.core(), *snapshot_, job, message);
  if (has_reason_ && is_explained(job.state)) {
    to_proto(explainer_->explain(job), JobNames(snapshot_, view_), *message.mutable_wait_reason());
  }
  filter_.fields == nullptr ? append_json(out, message)
                            : append_json(out, message, *filter_.fields);
  arena_.Reset();
}

base::Result<bool> JobListWriter::append(std::string& out, std::size_t enough) {
  if (snapshot_ == nullptr) TRY(begin());
  if (!std::exchange(is_begun_, true)) out += R"({"jobs":[)";
  const std::size_t target = out.size() + enough;
  while (out.size() < target) {
    TRY_ASSIGN(const model::Job* job, take_next());
    if (job == nullptr && passed_over_ < kMaxPassedOver) {
      out += R"(],"next_page":null})";
      return false;
    }
    if (job == nullptr || is_page_full()) {
      out += fmt::format(R"(],"next_page":"{}"}})", last_.value);
      return false;
    }
    if (written_++ > 0) out.push_back(',');
    last_ = job->id;
    const std::size_t before = out.size();
    append_job(out, *job);
    written_bytes_ += out.size() - before;
  }
  return true;
}

}  // namespace gpu_platform::api
