#include "store/sqlite/salvage.h"

#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "base/utc.h"
#include "model/job_array.h"
#include "store/audit_batch.h"
#include "store/sqlite/mark_check.h"

namespace gpu_platform::store {

namespace {

// "31, 33 to 35"; ascending.
std::string id_list(const std::vector<std::uint64_t>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t end = i + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ids[i]);
    if (end - i > 1) text += fmt::format(" to {}", ids[end - 1]);
    i = end;
  }
  return text;
}

std::string job_list(const std::vector<std::uint64_t>& ids) {
  return fmt::format("{} {}", ids.size() == 1 ? "job" : "jobs", id_list(ids));
}

std::string between(base::Instant from, base::Instant to) {
  if (from.is_set() && to.is_set()) {
    return fmt::format("between {} and {}", base::utc(from), base::utc(to));
  }
  if (from.is_set()) return "after " + base::utc(from);
  return to.is_set() ? "before " + base::utc(to) : std::string("at an unknown time");
}

// The job that something happens to; a submission makes one, and predictions change nothing.
model::JobId touched_job(const model::Event& event) {
  return std::visit(
      [](const auto& e) -> model::JobId {
        using E = std::decay_t<decltype(e)>;
        constexpr bool kIsOfJob =
            std::is_same_v<E, model::JobRequeued> || std::is_same_v<E, model::JobEnded> ||
            std::is_same_v<E, model::JobHoldChanged> || std::is_same_v<E, model::JobChanged>;
        if constexpr (kIsOfJob) {
          return e.job;
        } else if constexpr (requires { e.attempt.job; }) {
          return e.attempt.job;
        } else {
          return {};
        }
      },
      static_cast<const model::AnyEvent&>(event));
}

model::JobState state_after(model::JobTrigger how) {
  switch (how) {
    case model::JobTrigger::kFail:
      return model::JobState::kFailed;
    case model::JobTrigger::kCancel:
      return model::JobState::kCancelled;
    case model::JobTrigger::kTimeOut:
      return model::JobState::kTimedOut;
    default:
      return model::JobState::kCompleted;
  }
}

}  // namespace

void Salvage::note_ids(model::JobId first, std::uint64_t count, const model::EventRecord& record) {
  if (!first.valid() || count == 0) return;
  const std::uint64_t last = first.value + count - 1;
  last_job_id_ = std::max(last_job_id_, last);
  last_submission_ = std::max(last_submission_, record.seq.value);
  ids_[record.seq.value] = {first.value, last};
  if (record.seq.value > kept_.last) {
    submitted_[first.value] = {count, record.at};
  } else {
    kept_job_ = std::max(kept_job_, last);
  }
}

void Salvage::note_later(const model::EventRecord& record, std::uint64_t batch) {
  if (std::holds_alternative<model::JobSubmitted>(record.event)) {
    restored_[record.seq.value] = {batch, record};
  }
  const model::JobId job = touched_job(record.event);
  if (job.valid()) touched_.insert(job.value);
  if (const auto* ended = std::get_if<model::JobEnded>(&record.event)) {
    ended_only_[job.value] = {job, state_after(ended->how), record.at};
  }
}

void Salvage::add_batch(const std::vector<model::EventRecord>& events) {
  if (events.empty()) return;
  const std::uint64_t first = events.front().seq.value;
  const std::uint64_t last = events.back().seq.value;
  for (const model::EventRecord& record : events) {
    latest_ = std::max(latest_, record.at);
    const bool is_kept = record.seq.value <= kept_.last;
    if (record.seq.value == kept_.last) kept_at_ = record.at;
    if (const auto* repaired = std::get_if<model::StoreRepaired>(&record.event)) {
      last_job_id_ = std::max(last_job_id_, repaired->last_job_id);
      if (is_kept) kept_job_ = std::max(kept_job_, repaired->last_job_id);
      ids_[record.seq.value] = {repaired->last_job_id + 1, repaired->last_job_id};
    }
    if (const auto* submitted = std::get_if<model::JobSubmitted>(&record.event)) {
      const model::JobId end = last_job_of(record.event);
      note_ids(submitted->job, end.value - submitted->job.value + 1, record);
    }
    if (!is_kept) note_later(record, first);
  }
  if (first <= kept_.last) return;
  intact_.push_back({first, last});
  began_[first] = events.front().at;
  ended_at_[last] = events.back().at;
  if (auto entries = audit_entries_of(events); !entries.empty()) trail_[first] = std::move(entries);
}

void Salvage::add_trail(std::uint64_t first_seq, const std::vector<model::AuditEntry>& entries) {
  oldest_trail_ = std::min(oldest_trail_, first_seq);
  for (const model::AuditEntry& entry : entries) {
    const model::AuditedCall& call = entry.call;
    const bool submitted = call.action == model::AuditAction::kSubmit && !call.refusal;
    if (submitted && !call.jobs.empty()) {
      note_ids(call.jobs.front(), call.job_count, {entry.seq, entry.at, {}});
    }
  }
  if (first_seq <= kept_.last || entries.empty()) return;
  trail_[first_seq] = entries;
  latest_ = std::max(latest_, entries.back().at);
}

void Salvage::add_job(const model::Job& job, std::uint64_t archived_seq) {
  last_job_id_ = std::max(last_job_id_, job.id.value);
  archived_.insert(job.id.value);
  if (archived_seq > kept_.last) ended_.push_back({job.id, job.state, job.ended_at});
}

// A job of which everything is known waits as it did. Of another one it is not known whether it was
// started, changed or cancelled: it is held, for its user to decide.
void Salvage::finish(std::uint64_t last_event, std::uint64_t trail_until) {
  stored_ = last_event;
  trail_until_ = trail_until;
  std::ranges::sort(intact_, {}, &EventRange::first);
  for (const std::uint64_t id : archived_) ended_only_.erase(id);
  for (auto it = restored_.begin(); it != restored_.end();) {
    auto& event = std::get<model::JobSubmitted>(it->second.record.event);
    const std::uint64_t end = last_job_of(it->second.record.event).value;
    bool is_over = true;
    for (std::uint64_t id = event.job.value; id <= end; ++id) {
      is_over = is_over && (archived_.contains(id) || ended_only_.contains(id));
    }
    if (is_over) {
      it = restored_.erase(it);
      continue;
    }
    if (!is_certain(it->second) || !event.waits_for.empty() || !event.dependency_failure.empty()) {
      event.waits_for.clear();
      event.dependency_failure.clear();
      event.hold = model::Hold::kByPlatform;
      for (std::uint64_t id = event.job.value; id <= end; ++id) held_.insert(id);
    }
    ++it;
  }
}

bool Salvage::is_certain(const Restored& restored) const {
  const std::uint64_t first = std::get<model::JobSubmitted>(restored.record.event).job.value;
  const std::uint64_t end = last_job_of(restored.record.event).value;
  const auto touched = touched_.lower_bound(first);
  if (touched != touched_.end() && *touched <= end) return false;
  std::uint64_t next = restored.record.seq.value;
  for (const EventRange& batch : intact_) {
    if (batch.first <= next) next = std::max(next, batch.last + 1);
  }
  return next > stored_;
}

bool Salvage::knows_all_ids(std::uint64_t last_event, bool trail_is_whole) const {
  // Ids ascend: what was lost before a submission that is known has given smaller ones.
  std::uint64_t next = std::max(kept_.last, last_submission_) + 1;
  for (const EventRange& batch : intact_) {
    if (batch.first > next) break;
    next = std::max(next, batch.last + 1);
  }
  if (next > last_event) return true;
  // The oldest part of the trail goes in time; the rest of it is complete.
  return trail_is_whole && oldest_trail_ < next;
}

// By batch and event, as they were.
std::map<std::uint64_t, std::map<std::uint64_t, model::EventRecord>> Salvage::records() const {
  std::map<std::uint64_t, std::map<std::uint64_t, model::EventRecord>> records;
  for (const auto& [first, entries] : trail_) {
    for (const model::AuditEntry& entry : entries) {
      records[first][entry.seq.value] = {entry.seq, entry.at, model::CallAudited{entry.call}};
    }
  }
  // A submission makes its own entry in the trail.
  for (const auto& [seq, restored] : restored_) records[restored.batch][seq] = restored.record;
  return records;
}

std::vector<std::vector<model::EventRecord>> Salvage::batches() const {
  std::vector<std::vector<model::EventRecord>> batches;
  std::uint64_t seq = kept_.last;
  base::Instant at = kept_at_;
  for (auto& [first, former] : records()) {
    std::vector<model::EventRecord>& batch = batches.emplace_back();
    for (auto& [number, record] : former) {
      at = std::max(at, record.at);
      batch.push_back({model::EventSeq(++seq), at, std::move(record.event)});
    }
  }
  model::StoreRepaired repaired{next_job_id() - 1, ended_};
  for (const auto& [id, end] : ended_only_) repaired.ended.push_back(end);
  std::ranges::sort(repaired.ended, {}, &model::ArchivedEnd::job);
  batches.push_back({{model::EventSeq(seq + 1), std::max(at, latest_), std::move(repaired)}});
  return batches;
}

std::uint64_t Salvage::last_event() const {
  std::uint64_t count = 0;
  for (const auto& [first, batch] : records()) count += batch.size();
  return kept_.last + count + 1;
}

std::vector<EventRange> Salvage::missing_events() const {
  std::vector<EventRange> missing;
  std::uint64_t next = kept_.last + 1;
  for (const EventRange& batch : intact_) {
    if (batch.first > next) missing.push_back({next, batch.first - 1});
    next = std::max(next, batch.last + 1);
  }
  if (next <= stored_) missing.push_back({next, stored_});
  return missing;
}

std::vector<std::string> Salvage::lost_events(base::Instant until) const {
  std::vector<std::string> lost;
  for (const EventRange& range : missing_events()) {
    const auto before = ended_at_.find(range.first - 1);
    const auto after = began_.find(range.last + 1);
    const std::string which = range.first == range.last
                                  ? fmt::format("event {}", range.first)
                                  : fmt::format("events {} to {}", range.first, range.last);
    lost.push_back(fmt::format("{}, stored {}", which,
                               between(before == ended_at_.end() ? kept_at_ : before->second,
                                       after == began_.end() ? until : after->second)));
  }
  return lost;
}

// The ids that missing events may have given: those between the ids that the events around them
// gave. Nothing is known of these jobs.
std::set<std::uint64_t> Salvage::unknown_jobs() const {
  std::set<std::uint64_t> unknown;
  constexpr std::uint64_t kMaxNamed = 1'000'000;
  // Without an event of before it is not known which jobs the state has.
  if (kept_job_ == 0 && kept_.last != 0) return unknown;
  for (const EventRange& range : missing_events()) {
    if (range.last <= trail_until_ && oldest_trail_ < range.first) continue;
    std::uint64_t low = kept_job_;
    std::uint64_t high = last_job_id_;
    for (const auto& [seq, ids] : ids_) {
      if (seq < range.first) low = std::max(low, ids.last);
      if (seq > range.last) high = std::min(high, ids.first - 1);
    }
    for (std::uint64_t id = low + 1; id <= high && unknown.size() < kMaxNamed; ++id) {
      unknown.insert(id);
    }
  }
  return unknown;
}

std::string Salvage::lost_jobs(base::Instant until) const {
  const auto is_known = [&](std::uint64_t id) {
    return archived_.contains(id) || ended_only_.contains(id);
  };
  std::set<std::uint64_t> here;
  for (const auto& [seq, restored] : restored_) {
    const std::uint64_t first = std::get<model::JobSubmitted>(restored.record.event).job.value;
    const std::uint64_t end = last_job_of(restored.record.event).value;
    for (std::uint64_t id = first; id <= end; ++id) here.insert(id);
  }
  std::set<std::uint64_t> lost;
  base::Instant from;
  base::Instant to;
  for (const auto& [first, submission] : submitted_) {
    for (std::uint64_t id = first; id < first + submission.count; ++id) {
      if (is_known(id) || here.contains(id)) continue;
      lost.insert(id);
      from = from.is_set() ? std::min(from, submission.at) : submission.at;
      to = std::max(to, submission.at);
    }
  }
  const std::uint64_t named = lost.size();
  for (const std::uint64_t id : unknown_jobs()) {
    if (!is_known(id) && !here.contains(id)) lost.insert(id);
  }
  if (lost.empty()) return {};
  if (lost.size() > named) {
    from = kept_at_;
    to = until;
  }
  return fmt::format("{}, submitted {}: {} not known to have ended, and must be submitted again",
                     job_list({lost.begin(), lost.end()}), between(from, to),
                     lost.size() == 1 ? "it is" : "they are");
}

std::vector<std::string> Salvage::losses(base::Instant until) const {
  std::vector<std::string> lost = lost_events(until);
  if (!intact_.empty()) {
    lost.push_back(
        fmt::format("the state is that after event {}: of the intact events after the lost ones, "
                    "submissions, ended jobs and the audit trail are kept",
                    kept_.last));
  }
  if (std::string jobs = lost_jobs(until); !jobs.empty()) lost.push_back(std::move(jobs));
  if (!held_.empty()) {
    lost.push_back(fmt::format("what happened to {}: {} held, and may have run",
                               job_list({held_.begin(), held_.end()}),
                               held_.size() == 1 ? "it is" : "they are"));
  }
  std::vector<std::uint64_t> records;
  for (const auto& [id, end] : ended_only_) records.push_back(id);
  if (!records.empty()) lost.push_back("the records of the ended " + job_list(records));
  return lost;
}

}  // namespace gpu_platform::store
