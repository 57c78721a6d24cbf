#include "views/shares.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/job_spec.h"
#include "scheduling/book_entries.h"
#include "scheduling/order/fair_share_use.h"
#include "views/surplus_parts.h"

namespace gpu_platform::views {

namespace {

using model::QuotaHolder;

void add_rows(scheduling::QuotaSubject subject, const model::Quota& quota,
              const scheduling::QuotaLedger& ledger, std::vector<QuotaRow>& rows) {
  if (quota.is_empty()) return;
  const auto found = ledger.uses().find(subject);
  const scheduling::QuotaUse use =
      found == ledger.uses().end() ? scheduling::QuotaUse() : found->second;
  rows.push_back({subject, std::nullopt, quota, use});
  for (const model::TypeQuota& each : quota.gpu_types) {
    const scheduling::TypeUse of_type = scheduling::use_of_type(use, each.type);
    rows.push_back({subject,
                    each,
                    {},
                    {.gpus = of_type.gpus, .committed = of_type.committed, .used = of_type.used}});
  }
}

}  // namespace

std::vector<QuotaRow> quotas_of(const controller::Snapshot& snapshot) {
  std::vector<QuotaRow> rows;
  const model::Organisation& organisation = *snapshot.policy->organisation;
  const scheduling::QuotaLedger ledger =
      scheduling::quotas_of(snapshot.jobs, organisation, *snapshot.period_use);
  for (const model::Team& team : organisation.teams) {
    add_rows({QuotaHolder::kTeam, team.name}, team.quota, ledger, rows);
  }
  for (const model::NamedQuota& user : organisation.of_users) {
    add_rows({QuotaHolder::kUser, user.name}, user.quota, ledger, rows);
  }
  for (const auto& [subject, use] : ledger.uses()) {
    const bool is_named =
        std::ranges::find(organisation.of_users, subject.name, &model::NamedQuota::name) !=
        organisation.of_users.end();
    if (subject.holder != QuotaHolder::kUser || is_named) continue;
    add_rows(subject, organisation.of_each_user, ledger, rows);
  }
  for (const model::NamedQuota& project : organisation.of_projects) {
    add_rows({QuotaHolder::kProject, project.name}, project.quota, ledger, rows);
  }
  return rows;
}

RunningUse running_use_of(const controller::Snapshot& snapshot, base::Instant now) {
  const model::Organisation& organisation = *snapshot.policy->organisation;
  RunningUse all;
  const auto add = [&](const scheduling::Account& account, const model::Attempt& attempt,
                       std::uint64_t gpu_time) {
    if (gpu_time > 0) all[account][attempt.gpu_type] += gpu_time;
  };
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      const base::Instant end = scheduling::end_by_limit(job, attempt);
      if (end <= now) continue;
      const std::uint64_t left =
          scheduling::gpu_time(scheduling::gpu_share_of(job.spec->request), end - now);
      const scheduling::Account account = scheduling::account_of(organisation, *job.spec);
      add(account, attempt, left);
      const model::Team* team = model::find_team(organisation, account.team);
      for (; team != nullptr; team = model::find_team(organisation, team->parent)) {
        add({team->name, {}}, attempt, left);
      }
      add({}, attempt, left);
    }
  });
  return all;
}

double gpu_seconds_at(const controller::Snapshot& snapshot, const scheduling::ShareRow& row,
                      base::Instant now) {
  const base::Duration grown_for = std::max(now - snapshot.use_epoch, base::Duration());
  const double halvings = static_cast<double>(grown_for.value()) /
                          static_cast<double>(snapshot.policy->fair_share.half_life.value());
  return in_gpu_seconds(row.gpu_time) * std::exp2(-halvings);
}

double in_gpu_seconds(std::uint64_t gpu_time) {
  return static_cast<double>(gpu_time) / (static_cast<double>(base::kWholeGpu.value()) * 1000);
}

Shares shares_of(const controller::Snapshot& snapshot) {
  if (scheduling::needs_use(*snapshot.policy)) return {true, snapshot.order->ranking->rows()};
  Shares shares{false, scheduling::FairShareRanking(*snapshot.policy->organisation, {}, {}).rows()};
  for (scheduling::ShareRow& row : shares.rows) row.place = 0;
  return shares;
}

std::vector<SurplusRow> surplus_of(const controller::Snapshot& snapshot) {
  scheduling::GpusByType types;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) ++types[gpu.info.type];
  });
  const scheduling::Pools pools = scheduling::lending_of(snapshot.jobs, *snapshot.policy, types);
  std::vector<SurplusRow> rows;
  for (const auto& [name, parts] : surplus_parts_of(snapshot, pools, types)) {
    const scheduling::PoolBalance& pool = pools.all().find(name)->second.balance();
    for (const auto& [holder, part] : parts) {
      rows.push_back({name, holder, pool.guarantee_of(holder), part});
    }
  }
  return rows;
}

}  // namespace gpu_platform::views
