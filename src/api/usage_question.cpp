#include "api/usage_question.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/job.h"
#include "api/convert/job_change.h"
#include "base/month.h"
#include "base/suggest.h"
#include "base/utc.h"
#include "model/capacity.h"
#include "model/job_spec.h"
#include "model/team.h"

namespace gpu_platform::api {

namespace {

constexpr base::Duration kMaxUsageWindow = base::hours(24 * 3653);
constexpr base::Duration kAdviceWindow = base::hours(24 * 28);
// Of one answer.
constexpr std::size_t kMaxGroups = 10'000;

// `earliest`: where the window begins unless it is said; unset: with the month in which it ends.
template <class Request>
base::Result<UsageWindow> window_of(const Request& request, base::Instant now,
                                    base::Instant earliest) {
  UsageWindow window;
  window.to = request.has_until() ? std::min(to_model(request.until()), now) : now;
  if (request.has_since()) {
    window.from = to_model(request.since());
    if (window.from >= now) {
      return base::invalid("since",
                           fmt::format("since: {} lies in the future", base::utc(window.from)));
    }
  } else if (earliest.is_set() && earliest < window.to) {
    window.from = earliest;
  } else if (window.to.is_set()) {
    window.from = base::begin_of(base::month_of(window.to + base::nanoseconds(-1)));
  }
  if (model::millis_of(window.from) >= model::millis_of(window.to)) {
    return base::invalid("since", fmt::format("since: {} is not before the end of the window, {}",
                                              base::utc(window.from), base::utc(window.to)));
  }
  if (window.to - window.from > kMaxUsageWindow) {
    return base::invalid("since", "since: the window is longer than ten years");
  }
  return window;
}

base::Result<AskedJobs> jobs_of(const std::string& text, const JobReader& reader,
                                const model::Caller& caller) {
  TRY_ASSIGN(const JobRef ref, to_job_ref(text));
  auto found = reader.find(caller, ref);
  if (found) {
    AskedJobs jobs{found->job->id, found->job->id, {}};
    if (found->whole_array) jobs.last.value += model::member_count(*found->job->spec->array) - 1;
    return jobs;
  }
  found.error().field = "job";
  // A job leaves the history before its lines leave the ledger.
  const bool may_be_gone = found.error().code == base::ErrorCode::kNotFound && !ref.index;
  if (!may_be_gone) return std::unexpected(std::move(found).error());
  return AskedJobs{ref.job, ref.job, std::move(found).error()};
}

// When the job was submitted, if that is known.
base::Instant begin_of(const AskedJobs& jobs, const JobReader& reader,
                       const model::Caller& caller) {
  const auto found = reader.find(caller, jobs.first);
  return found ? found->job->submitted_at : base::Instant();
}

template <class Request>
base::Status put_owners(const Request& request, const LedgerView& view, const model::Caller& caller,
                        accounting::UsageFilter& filter) {
  if (request.mine() && request.has_user()) {
    return base::invalid("user", "user: cannot be given with 'mine'");
  }
  if (request.mine()) filter.users = {caller.user};
  if (request.has_user()) filter.users = {request.user()};
  if (request.has_team()) {
    filter.teams = teams_of(request.team(), view);
  }
  if (request.has_project()) filter.projects = {request.project()};
  return {};
}

template <class Request>
base::Status put_filter(const Request& request, const LedgerView& view, const model::Caller& caller,
                        accounting::UsageFilter& filter) {
  TRY(put_owners(request, view, caller, filter));
  if (request.has_gpu_type()) filter.types = {request.gpu_type()};
  if (request.has_node()) filter.nodes = {request.node()};
  for (const std::string& label : request.label()) {
    TRY_ASSIGN(auto parsed, to_label(label));
    filter.labels.push_back(std::move(parsed));
  }
  if (request.has_capacity()) {
    const auto capacity = model::parse_capacity_class(request.capacity());
    if (!capacity) {
      return base::invalid("capacity", fmt::format("capacity: '{}' is no class: on-demand, spot, "
                                                   "reserved",
                                                   request.capacity()));
    }
    filter.capacities = {*capacity};
  }
  if (request.has_kind() && request.kind() != v1::JOB_KIND_UNSPECIFIED) {
    filter.kinds = {to_model(request.kind())};
  }
  return {};
}

template <class Request>
base::Result<UsageQuestion> question_of(const Request& request, const JobReader& reader,
                                        const LedgerView& view, const model::Caller& caller) {
  UsageQuestion question;
  base::Instant earliest;
  if (request.has_job()) {
    TRY_ASSIGN(question.jobs, jobs_of(request.job(), reader, caller));
    earliest = begin_of(*question.jobs, reader, caller);
  }
  TRY_ASSIGN(question.window, window_of(request, view.now(), earliest));
  question.query.from = model::millis_of(question.window.from);
  question.query.to = model::millis_of(question.window.to);
  question.query.with_rest = view.sees_fleet() && !question.jobs;
  TRY(put_filter(request, view, caller, question.query.filter));
  return question;
}

base::Status put_groups(const v1::GetUsageRequest& request, accounting::UsageQuery& query) {
  for (const std::string& text : request.group_by()) {
    const auto by = accounting::parse_usage_by(text);
    if (!by) {
      return base::invalid("group_by", fmt::format("group_by: '{}' is not one of {}", text,
                                                   accounting::usage_bys()));
    }
    if (std::ranges::find(query.by, *by) != query.by.end()) {
      return base::invalid("group_by", fmt::format("group_by: '{}' is given twice", text));
    }
    query.by.push_back(*by);
  }
  if (request.has_step()) {
    const auto step = accounting::parse_usage_step(request.step());
    if (!step) {
      return base::invalid(
          "step", fmt::format("step: '{}' is not one of hour, day, month, none", request.step()));
    }
    query.step = *step;
  }
  query.max_groups = kMaxGroups;
  return {};
}

}  // namespace

std::vector<std::string> teams_of(const std::string& top, const LedgerView& view) {
  const auto teams = model::with_teams_below(*view.snapshot().policy->organisation, top);
  return {teams.begin(), teams.end()};
}

store::LedgerQuery UsageQuestion::lines() const {
  store::LedgerQuery lines = window.query();
  if (!query.filter.users.empty()) lines.user = query.filter.users.front();
  return lines;
}

bool UsageQuestion::is_of(const model::LedgerLine& line) const {
  if (jobs && (line.kind != model::LedgerKind::kHeld || line.attempt.job < jobs->first ||
               line.attempt.job > jobs->last)) {
    return false;
  }
  if (line.kind == model::LedgerKind::kRest && !query.with_rest) return false;
  return accounting::is_wanted(query.filter, line);
}

base::Result<UsageQuestion> to_question(const v1::GetUsageRequest& request, const JobReader& reader,
                                        const LedgerView& view, const model::Caller& caller) {
  TRY_ASSIGN(UsageQuestion question, question_of(request, reader, view, caller));
  TRY(put_groups(request, question.query));
  return question;
}

base::Result<UsageQuestion> to_question(const v1::ListLedgerRequest& request,
                                        const JobReader& reader, const LedgerView& view,
                                        const model::Caller& caller) {
  return question_of(request, reader, view, caller);
}

base::Result<UsageWindow> to_window(const v1::GetBalanceRequest& request, base::Instant now) {
  return window_of(request, now, {});
}

base::Result<UsageWindow> to_window(const v1::GetSavingsRequest& request, base::Instant now) {
  return window_of(request, now, {});
}

base::Result<UsageWindow> to_window(const v1::GetAdviceRequest& request, base::Instant now) {
  const base::Instant end = request.has_until() ? std::min(to_model(request.until()), now) : now;
  return window_of(request, now, end + kAdviceWindow * -1);
}

}  // namespace gpu_platform::api
