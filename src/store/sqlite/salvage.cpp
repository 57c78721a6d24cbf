#include "store/sqlite/salvage.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "model/job_array.h"
#include "store/audit_batch.h"

namespace gpu_platform::store {

void Salvage::note_ids(model::JobId first, std::uint64_t count, std::uint64_t at_event) {
  if (!first.valid() || count == 0) return;
  last_job_id_ = std::max(last_job_id_, first.value + count - 1);
  last_submission_ = std::max(last_submission_, at_event);
  if (at_event > kept_.last) submitted_[first.value] = count;
}

void Salvage::add_batch(const std::vector<model::EventRecord>& events) {
  if (events.empty()) return;
  for (const model::EventRecord& record : events) {
    latest_ = std::max(latest_, record.at);
    if (const auto* repaired = std::get_if<model::StoreRepaired>(&record.event)) {
      last_job_id_ = std::max(last_job_id_, repaired->last_job_id);
    }
    const auto* submitted = std::get_if<model::JobSubmitted>(&record.event);
    if (submitted == nullptr) continue;
    const auto& array = submitted->spec->array;
    note_ids(submitted->job, array ? model::member_count(*array) : 1, record.seq.value);
  }
  const std::uint64_t first = events.front().seq.value;
  if (first <= kept_.last) return;
  intact_.push_back({first, events.back().seq.value});
  if (auto entries = audit_entries_of(events); !entries.empty()) trail_[first] = std::move(entries);
}

void Salvage::add_trail(std::uint64_t first_seq, const std::vector<model::AuditEntry>& entries) {
  oldest_trail_ = std::min(oldest_trail_, first_seq);
  for (const model::AuditEntry& entry : entries) {
    const model::AuditedCall& call = entry.call;
    const bool submitted = call.action == model::AuditAction::kSubmit && !call.refusal;
    if (submitted && !call.jobs.empty()) {
      note_ids(call.jobs.front(), call.job_count, entry.seq.value);
    }
  }
  if (first_seq <= kept_.last || entries.empty()) return;
  trail_[first_seq] = entries;
  latest_ = std::max(latest_, entries.back().at);
}

void Salvage::add_job(const model::Job& job, std::uint64_t archived_seq) {
  last_job_id_ = std::max(last_job_id_, job.id.value);
  if (archived_seq <= kept_.last) return;
  archived_.insert(job.id.value);
  ended_.push_back({job.id, job.state, job.ended_at});
}

bool Salvage::knows_all_ids(std::uint64_t last_event, bool trail_is_whole) const {
  std::vector<EventRange> known = intact_;
  std::ranges::sort(known, {}, &EventRange::first);
  // Ids ascend: what was lost before a submission that is known has given smaller ones.
  std::uint64_t next = std::max(kept_.last, last_submission_) + 1;
  for (const EventRange& batch : known) {
    if (batch.first > next) break;
    next = std::max(next, batch.last + 1);
  }
  if (next > last_event) return true;
  // The oldest part of the trail goes in time; the rest of it is complete.
  return trail_is_whole && oldest_trail_ < next;
}

std::vector<std::vector<model::EventRecord>> Salvage::batches() const {
  std::vector<std::vector<model::EventRecord>> batches;
  std::uint64_t seq = kept_.last;
  base::Instant at;
  for (const auto& [first, entries] : trail_) {
    std::vector<model::EventRecord>& batch = batches.emplace_back();
    for (const model::AuditEntry& entry : entries) {
      at = std::max(at, entry.at);
      batch.push_back({model::EventSeq(++seq), at, model::CallAudited{entry.call}});
    }
  }
  model::StoreRepaired repaired{next_job_id() - 1, ended_};
  std::ranges::sort(repaired.ended, {}, &model::ArchivedEnd::job);
  batches.push_back({{model::EventSeq(seq + 1), std::max(at, latest_), std::move(repaired)}});
  return batches;
}

std::uint64_t Salvage::last_event() const {
  return kept_.last + trail_entries() + 1;
}

std::uint64_t Salvage::trail_entries() const {
  std::uint64_t entries = 0;
  for (const auto& [first, batch] : trail_) entries += batch.size();
  return entries;
}

std::string Salvage::lost_jobs() const {
  std::string text;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const auto flush = [&] {
    if (first == 0) return;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (last > first) text += fmt::format(" to {}", last);
  };
  for (const auto& [begin, count] : submitted_) {
    for (std::uint64_t id = begin; id < begin + count; ++id) {
      if (archived_.contains(id)) continue;
      if (first != 0 && id == last + 1) {
        last = id;
        continue;
      }
      flush();
      first = last = id;
    }
  }
  flush();
  return text;
}

}  // namespace gpu_platform::store
