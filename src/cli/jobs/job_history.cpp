#include "cli/jobs/job_history.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text/end_advice.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"
#include "client/follow.h"

namespace gpu_platform::cli {

namespace {

// Calls that the job itself does not tell of. Its submission and what ended it are in the job.
std::string_view event_of(v1::AuditAction action) {
  switch (action) {
    case v1::AUDIT_ACTION_CANCEL:
      return "CANCEL ASKED";
    case v1::AUDIT_ACTION_KILL:
      return "KILL ASKED";
    case v1::AUDIT_ACTION_HOLD:
      return "HELD";
    case v1::AUDIT_ACTION_RELEASE:
      return "RELEASED";
    case v1::AUDIT_ACTION_REQUEUE:
    case v1::AUDIT_ACTION_REQUEUE_AND_HOLD:
      return "REQUEUE ASKED";
    case v1::AUDIT_ACTION_UPDATE:
      return "CHANGED";
    case v1::AUDIT_ACTION_TOP:
      return "RAISED";
    case v1::AUDIT_ACTION_SIGNAL:
      return "SIGNALLED";
    case v1::AUDIT_ACTION_EXEC:
      return "ENTERED";
    case v1::AUDIT_ACTION_ATTACH:
      return "ATTACHED";
    case v1::AUDIT_ACTION_PORT_FORWARD:
      return "PORT FORWARDED";
    default:
      return {};
  }
}

std::string detail_of(v1::AuditAction action) {
  switch (action) {
    case v1::AUDIT_ACTION_UPDATE:
      return "the request was changed (jobs update)";
    case v1::AUDIT_ACTION_TOP:
      return "above other waiting jobs of the same user (jobs raise)";
    case v1::AUDIT_ACTION_REQUEUE_AND_HOLD:
      return "and to be held then";
    case v1::AUDIT_ACTION_EXEC:
      return "a command was run in the job (jobs exec)";
    case v1::AUDIT_ACTION_ATTACH:
      return "to its terminal or input (jobs attach)";
    case v1::AUDIT_ACTION_PORT_FORWARD:
      return "a connection to a port of the job";
    default:
      return {};
  }
}

std::string start_detail(const v1::Attempt& attempt) {
  std::string text = "on " + place_of(attempt);
  if (const std::string terms = terms_of_part(attempt); !terms.empty()) text += " (" + terms + ")";
  switch (attempt.why()) {
    case v1::START_REASON_BACKFILL:
      text += attempt.passed().empty() ? "; backfill"
                                       : fmt::format("; backfill, before job {}", attempt.passed());
      break;
    case v1::START_REASON_RESERVED:
      text += "; at its planned time";
      break;
    case v1::START_REASON_PREEMPTED:
      text += fmt::format("; {} made room", joined(texts_of(attempt.preempted_jobs()), " and "));
      break;
    default:
      break;
  }
  return text;
}

std::string end_event(const v1::Attempt& attempt) {
  switch (attempt.reason()) {
    case v1::END_REASON_PREEMPTED:
      return "PREEMPTED";
    case v1::END_REASON_REQUEUED_BY:
      return "REQUEUED";
    default:
      return "ATTEMPT ENDED";
  }
}

class History {
 public:
  History(const v1::Job& job, base::Instant now) : job_(job), now_(now) {}

  void add_job() {
    const bool is_member = !job_.array_id().empty();
    add(job_.submitted_at(), "SUBMITTED", std::nullopt, job_.spec().user(),
        is_member ? "in array " + job_.array_id() : std::string());
    const auto submitted = time_of(job_.submitted_at());
    const auto eligible = time_of(job_.eligible_at());
    const bool has_waited = submitted && eligible && *eligible > *submitted;
    // After a requeue the time is that of the return to the queue.
    if (has_waited && !is_held() && job_.attempt() == 0) {
      add(job_.eligible_at(), "QUEUED", std::nullopt, "", "eligible to start from then on");
    }
    for (const v1::Attempt& attempt : job_.attempts()) add_attempt(attempt);
    if (client::is_ended(job_.state())) {
      add(job_.ended_at(), state_name(job_), std::nullopt, job_.ended_by(), end_of_job());
    }
  }

  void add_audit(const v1::AuditEntry& entry) {
    const std::string_view event = event_of(entry.action());
    if (event.empty() || entry.outcome() != v1::AUDIT_OUTCOME_OK) return;
    add(entry.at(), std::string(event), std::nullopt, entry.user(), detail_of(entry.action()));
  }

  std::vector<HistoryEntry> take() {
    std::ranges::stable_sort(entries_, {}, &HistoryEntry::at);
    join_repeated();
    return std::move(entries_);
  }

 private:
  // A program that enters a job each second would hide everything else.
  void join_repeated() {
    std::vector<HistoryEntry> joined;
    std::uint64_t times = 1;
    const auto end_run = [&] {
      if (times > 1) joined.back().detail += fmt::format(" ({} times)", times);
      times = 1;
    };
    for (HistoryEntry& entry : entries_) {
      const bool repeats = !joined.empty() && !entry.by.empty() &&
                           entry.event == joined.back().event && entry.by == joined.back().by &&
                           !entry.attempt;
      if (repeats) {
        ++times;
        continue;
      }
      end_run();
      joined.push_back(std::move(entry));
    }
    end_run();
    entries_ = std::move(joined);
  }

  std::string end_of_job() const {
    const std::string advice = advice_on_end(job_);
    return advice.empty() ? result_of(job_) : fmt::format("{}; {}", result_of(job_), advice);
  }

  bool is_held() const { return job_.state() == v1::JOB_STATE_HELD; }

  // Of the last attempt of an ended job only the start: the job's end is its end.
  void add_attempt(const v1::Attempt& attempt) {
    if (attempt.has_started_at()) {
      add(attempt.started_at(), "STARTED", attempt.attempt(), "", start_detail(attempt));
    } else {
      add(attempt.requested_at(), "STARTING", attempt.attempt(), "", start_detail(attempt));
    }
    const bool is_jobs_end = client::is_ended(job_.state()) && attempt.attempt() == job_.attempt();
    if (is_jobs_end) return;
    add(attempt.ended_at(), end_event(attempt), attempt.attempt(),
        attempt.reason() == v1::END_REASON_PREEMPTED ? std::string() : attempt.ended_by(),
        result_of(attempt));
  }

  void add(const google::protobuf::Timestamp& at, std::string event,
           std::optional<std::uint32_t> attempt, std::string by, std::string detail) {
    const auto time = time_of(at);
    if (!time || *time > now_) return;
    entries_.push_back({*time, std::move(event), attempt, std::move(by), std::move(detail)});
  }

  const v1::Job& job_;
  const base::Instant now_;
  std::vector<HistoryEntry> entries_;
};

}  // namespace

std::vector<HistoryEntry> history_of(const v1::Job& job, std::span<const v1::AuditEntry> audit,
                                     base::Instant now) {
  History history(job, now);
  history.add_job();
  for (const v1::AuditEntry& entry : audit) history.add_audit(entry);
  return history.take();
}

}  // namespace gpu_platform::cli
