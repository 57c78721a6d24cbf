#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "config/schema.h"
#include "model/gpu_catalogue.h"
#include "model/quota_fields.h"
#include "simulation/scenarios/values.h"

// Teams, quotas and the order of the queue, from statements.

namespace gpu_platform::simulation {

namespace {

constexpr std::uint64_t kMax = 1'000'000'000;

base::Status set_limit(const Statement& statement, std::string_view name,
                       std::optional<std::uint32_t>& limit) {
  if (option(statement, name) == nullptr) return {};
  return set_count(statement, name, 0, kMax, limit.emplace());
}

model::TypeQuota& quota_of_type(model::Quota& quota, const std::string& type) {
  const std::string name = model::canonical_gpu_type(type).value_or(type);
  const auto found = std::ranges::find(quota.gpu_types, name, &model::TypeQuota::type);
  if (found != quota.gpu_types.end()) return *found;
  return quota.gpu_types.emplace_back(model::TypeQuota{name, {}});
}

// "max_gpus_of=H100:8,A100:4".
base::Status set_by_type(const Statement& statement, std::string_view name,
                         std::optional<std::uint32_t> model::TypeQuota::* limit,
                         model::Quota& quota) {
  const std::string* all = option(statement, name);
  if (all == nullptr) return {};
  for (const std::string& each : parts_of(*all)) {
    const std::size_t colon = each.find(':');
    if (colon == std::string::npos) {
      return base::invalid({}, fmt::format("{}: '{}' is not TYPE:NUMBER", name, each));
    }
    TRY_ASSIGN(const std::uint64_t number, base::parse_count(each.substr(colon + 1), 0, kMax));
    quota_of_type(quota, each.substr(0, colon)).*limit = static_cast<std::uint32_t>(number);
  }
  return {};
}

base::Result<model::Quota> quota_of(const Statement& statement) {
  model::Quota quota;
  for (const model::QuotaField& row : model::kQuotaFields) {
    TRY(set_limit(statement, row.name, quota.*row.member));
    if (row.of_type == nullptr) continue;
    TRY(set_by_type(statement, fmt::format("{}_of", row.name), row.of_type, quota));
  }
  std::ranges::sort(quota.gpu_types, {}, &model::TypeQuota::type);
  return quota;
}

// "NAME:NUMBER", or NAME with the number `otherwise`.
base::Result<std::pair<std::string, std::uint64_t>> numbered(const std::string& text,
                                                             std::uint64_t otherwise) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::pair(text, otherwise);
  TRY_ASSIGN(const std::uint64_t number, base::parse_count(text.substr(colon + 1), 1, 1'000'000));
  return std::pair(text.substr(0, colon), number);
}

base::Result<model::Team> team_of(const Statement& statement) {
  model::Team team;
  team.name = statement.arguments[0];
  if (const std::string* parent = option(statement, "parent")) team.parent = *parent;
  TRY(set_count(statement, "shares", 1, 1'000'000, team.shares));
  if (const std::string* users = option(statement, "users")) {
    for (const std::string& user : parts_of(*users)) {
      TRY_ASSIGN(const auto member, numbered(user, 1));
      team.members.push_back({member.first, static_cast<std::uint32_t>(member.second)});
    }
  }
  TRY_ASSIGN(team.quota, quota_of(statement));
  TRY(set_limit(statement, "max_reclaims_per_job", team.max_reclaims_per_job));
  for (const auto& [name, value] : {std::pair("reclaim_min_runtime", &team.reclaim_min_runtime),
                                    {"preempt_min_runtime", &team.preempt_min_runtime},
                                    {"default_time_limit", &team.default_time_limit}}) {
    if (option(statement, name) != nullptr) TRY(set_duration(statement, name, value->emplace()));
  }
  return team;
}

template <class Named>
void put_named(std::vector<Named>& all, Named one) {
  const auto found = std::ranges::find(all, one.name, &Named::name);
  if (found == all.end()) {
    all.push_back(std::move(one));
  } else {
    *found = std::move(one);
  }
}

}  // namespace

base::Status change_organisation(const Statement& statement, model::Policy& policy) {
  model::Organisation organisation = *policy.organisation;
  if (statement.verb == "team") {
    TRY_ASSIGN(model::Team team, team_of(statement));
    if (!team.parent.empty() && model::find_team(organisation, team.parent) == nullptr) {
      return base::invalid({}, fmt::format("parent: there is no team '{}' yet", team.parent));
    }
    put_named(organisation.teams, std::move(team));
  } else {
    TRY_ASSIGN(const model::Quota quota, quota_of(statement));
    if (const std::string* user = option(statement, "user")) {
      put_named(organisation.of_users, {*user, quota});
    } else if (const std::string* project = option(statement, "project")) {
      put_named(organisation.of_projects, {*project, quota});
    } else {
      organisation.of_each_user = quota;
    }
  }
  policy.organisation = std::move(organisation);
  return {};
}

namespace {

constexpr std::string_view kGpuWeights = "scheduling.fair_share.gpu_weights";
constexpr std::string_view kReservedRatio = "allocation.reserved_ratio";

// "H100:10,T4:1".
base::Status set_gpu_weights(const Statement& statement, model::FairShare& fair_share) {
  const std::string* weights = option(statement, kGpuWeights);
  if (weights == nullptr) return {};
  fair_share.gpu_weights.clear();
  for (const std::string& weight : parts_of(*weights)) {
    TRY_ASSIGN(const auto type, numbered(weight, 1));
    fair_share.gpu_weights.push_back({model::canonical_gpu_type(type.first).value_or(type.first),
                                      static_cast<std::uint32_t>(type.second * 1000)});
  }
  return {};
}

// "0.3", three decimals at most.
base::Status set_reserved_ratio(const Statement& statement, model::Organisation& organisation) {
  const std::string* ratio = option(statement, kReservedRatio);
  if (ratio == nullptr) return {};
  const std::size_t point = ratio->find('.');
  std::string decimals = point == std::string::npos ? "" : ratio->substr(point + 1);
  decimals.resize(std::max<std::size_t>(decimals.size(), 3), '0');
  const auto thousandths = base::parse_count(ratio->substr(0, point) + decimals, 0, 1000);
  if (!thousandths) return base::invalid({}, fmt::format("{}: must be 0 to 1", kReservedRatio));
  organisation.reserved_thousandths = static_cast<std::uint32_t>(*thousandths);
  return {};
}

}  // namespace

std::vector<std::string_view> options_of_policy() {
  std::vector<std::string_view> names = {kGpuWeights, kReservedRatio};
  for (const config::Key& key : config::schema()) {
    if (key.effect == config::Effect::kAnytime) names.push_back(key.path);
  }
  return names;
}

base::Status change_policy(const Statement& statement, config::Configuration& configuration) {
  for (const config::Key& key : config::schema()) {
    const std::string* text = option(statement, key.path);
    if (text == nullptr) continue;
    const base::Status set = config::set_value(key, *text, configuration);
    if (!set) return base::invalid({}, fmt::format("{}: {}", key.path, set.error().message));
  }
  model::Policy& policy = configuration.policy;
  policy.allow_root_jobs = configuration.root_jobs == config::RootJobs::kAllow;
  TRY(set_gpu_weights(statement, policy.fair_share));
  model::Organisation organisation = *policy.organisation;
  organisation.period = configuration.quota_period;
  organisation.allocation = configuration.allocation;
  TRY(set_reserved_ratio(statement, organisation));
  policy.organisation = std::move(organisation);
  return {};
}

}  // namespace gpu_platform::simulation
