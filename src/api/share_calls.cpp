#include "api/share_calls.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/list_page.h"
#include "os/clock.h"
#include "views/shares.h"

namespace gpu_platform::api {

namespace {

double of_whole(std::uint64_t part) {
  return static_cast<double>(part) / static_cast<double>(std::uint64_t{1} << 32);
}

void to_proto(const scheduling::ShareRow& row, const views::RunningUse& running, v1::Share& out) {
  out.set_team(row.team);
  out.set_user(row.user);
  out.set_parent(row.parent);
  out.set_depth(row.depth);
  out.set_shares(row.shares);
  out.set_normalized_shares(of_whole(row.normal_shares));
  out.set_use(of_whole(row.use));
  out.set_effective_use(of_whole(row.effective_use));
  out.set_fair_share(static_cast<double>(row.factor) / scheduling::kMaxFactor);
  out.set_place(row.place);
  const auto own = running.find({row.team, row.user});
  if (own == running.end()) return;
  for (const auto& [type, gpu_time] : own->second) {
    v1::GpuTypeSeconds& entry = *out.add_running();
    entry.set_gpu_type(type);
    entry.set_gpu_seconds(views::in_gpu_seconds(gpu_time));
  }
}

void set_hours(const std::optional<std::uint32_t>& limit, const scheduling::QuotaUse& use,
               v1::Quota& out) {
  if (!limit) return;
  out.set_gpu_hours_committed(views::in_gpu_seconds(use.used + use.committed) / 3600);
  out.set_gpu_hours(*limit);
}

void set_limits(const model::Quota& quota, const scheduling::QuotaUse& use, v1::Quota& out) {
  if (quota.max_gpus) out.set_max_gpus(*quota.max_gpus);
  if (quota.guaranteed_gpus) out.set_guaranteed_gpus(*quota.guaranteed_gpus);
  if (quota.borrow_limit) out.set_borrow_limit(*quota.borrow_limit);
  if (quota.lend_limit) out.set_lend_limit(*quota.lend_limit);
  out.set_running_jobs(static_cast<std::uint32_t>(use.running_jobs));
  if (quota.max_running_jobs) out.set_max_running_jobs(*quota.max_running_jobs);
  out.set_queued_jobs(static_cast<std::uint32_t>(use.waiting_jobs));
  if (quota.max_queued_jobs) out.set_max_queued_jobs(*quota.max_queued_jobs);
  set_hours(quota.gpu_hours, use, out);
}

void to_proto(const views::QuotaRow& row, v1::Quota& out) {
  out.set_holder(std::string(to_string(row.subject.holder)));
  out.set_name(row.subject.name);
  out.set_gpus(static_cast<double>(row.use.gpus.value()) / base::kWholeGpu.value());
  if (!row.of_type) return set_limits(row.quota, row.use, out);
  out.set_gpu_type(row.of_type->type);
  if (row.of_type->max_gpus) out.set_max_gpus(*row.of_type->max_gpus);
  if (row.of_type->guaranteed_gpus) out.set_guaranteed_gpus(*row.of_type->guaranteed_gpus);
  if (row.of_type->borrow_limit) out.set_borrow_limit(*row.of_type->borrow_limit);
  if (row.of_type->lend_limit) out.set_lend_limit(*row.of_type->lend_limit);
  set_hours(row.of_type->gpu_hours, row.use, out);
}

double in_gpus(base::GpuShare share) {
  return static_cast<double>(share.value()) / static_cast<double>(base::kWholeGpu.value());
}

void to_proto(const views::SurplusRow& row, v1::SurplusShare& out) {
  const bool is_team = row.holder.holder == model::QuotaHolder::kTeam;
  (is_team ? out.mutable_team() : out.mutable_user())->assign(row.holder.name);
  out.set_gpu_type(row.pool);
  out.set_weight(row.part.weight);
  out.set_guaranteed_gpus(in_gpus(row.guaranteed));
  out.set_held_gpus(in_gpus(row.part.held));
  out.set_wanted_gpus(in_gpus(row.part.wanted));
  out.set_share_gpus(in_gpus(row.part.share));
}

// Whether the answer is about it; `teams` and `users` are those of its shares.
bool is_asked_for(const v1::ListSharesRequest& request, const scheduling::QuotaSubject& subject,
                  const std::set<std::string>& teams, const std::set<std::string>& users) {
  if (request.team().empty() && request.user().empty()) return true;
  switch (subject.holder) {
    case model::QuotaHolder::kTeam:
      return request.user().empty() && teams.contains(subject.name);
    case model::QuotaHolder::kUser:
      return users.contains(subject.name);
    default:
      return false;
  }
}

// The rows of a team and of what is below it: a team stands before its children.
class Below {
 public:
  explicit Below(const std::string& team) : teams_{team} {}
  bool has(const scheduling::ShareRow& row) {
    if (!row.user.empty()) return teams_.contains(row.team);
    if (teams_.contains(row.parent)) teams_.insert(row.team);
    return teams_.contains(row.team);
  }

 private:
  std::set<std::string> teams_;
};

}  // namespace

base::Result<v1::ListSharesResponse> ShareCalls::list(const v1::ListSharesRequest& request,
                                                      const Peer& peer) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  const model::Policy& policy = *snapshot->policy;
  const views::Shares shares = views::shares_of(*snapshot);
  const auto is_asked = [&](const scheduling::ShareRow& row) {
    return row.user.empty() && row.team == request.team();
  };
  if (!request.team().empty() && std::ranges::none_of(shares.rows, is_asked)) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("there is no team '{}'; 'gpu-platform shares' lists the teams",
                                  request.team()));
  }
  v1::ListSharesResponse out;
  out.set_order(std::string(to_string(policy.order)));
  out.set_counted(shares.is_counted);
  const std::int64_t half_life = base::whole_milliseconds(policy.fair_share.half_life);
  out.set_half_life_seconds(static_cast<double>(half_life) / 1000);
  const base::Instant now = std::max(os::wall_now(), snapshot->at);
  const views::RunningUse running = views::running_use_of(*snapshot, now);
  const model::View view = context_.reader.view_of(peer.caller);
  Below below(request.team());
  std::set<std::string> teams;
  std::set<std::string> users;
  for (const scheduling::ShareRow& row : shares.rows) {
    const bool is_below = request.team().empty() || below.has(row);
    if (!is_below || (!request.user().empty() && row.user != request.user())) continue;
    if (!row.user.empty() && !view.sees_usage_of(row.user, row.team)) continue;
    v1::Share& share = *out.add_shares();
    to_proto(row, running, share);
    if (shares.is_counted) {
      share.set_use_gpu_seconds(views::gpu_seconds_at(*snapshot, row, now));
    }
    row.user.empty() ? teams.insert(row.team) : users.insert(row.user);
  }
  TRY(cut_to_page(request, *out.mutable_shares(), out,
                  [](const v1::Share& share) { return share.team() + "/" + share.user(); }));
  if (request.has_page_token()) return out;
  for (const views::QuotaRow& row : views::quotas_of(*snapshot)) {
    const bool is_hidden = row.subject.holder == model::QuotaHolder::kUser &&
                           !users.contains(row.subject.name) &&
                           !view.sees_usage_of(row.subject.name, {});
    if (is_hidden) continue;
    if (is_asked_for(request, row.subject, teams, users)) to_proto(row, *out.add_quotas());
  }
  for (const views::SurplusRow& row : views::surplus_of(*snapshot)) {
    to_proto(row, *out.add_surplus());
  }
  return out;
}

}  // namespace gpu_platform::api
