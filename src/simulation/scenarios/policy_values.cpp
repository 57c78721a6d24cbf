#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"
#include "simulation/scenarios/values.h"

// Teams, quotas and the order of the queue, from statements.

namespace gpu_platform::simulation {

namespace {

constexpr std::uint64_t kMost = 1'000'000'000;

template <class Words, class Value>
base::Status set_word(const Statement& statement, std::string_view name, const Words& values,
                      Value& value) {
  const std::string* text = option(statement, name);
  if (text == nullptr) return {};
  const auto found =
      std::ranges::find_if(values, [&](Value each) { return model::to_string(each) == *text; });
  if (found == values.end()) {
    return base::invalid({}, fmt::format("{}: '{}' is none of its words", name, *text));
  }
  value = *found;
  return {};
}

base::Status set_limit(const Statement& statement, std::string_view name,
                       std::optional<std::uint32_t>& limit) {
  if (option(statement, name) == nullptr) return {};
  return set_count(statement, name, 0, kMost, limit.emplace());
}

base::Result<model::Quota> quota_of(const Statement& statement) {
  model::Quota quota;
  TRY(set_limit(statement, "max_gpus", quota.max_gpus));
  TRY(set_limit(statement, "max_running_jobs", quota.max_running_jobs));
  TRY(set_limit(statement, "max_queued_jobs", quota.max_queued_jobs));
  TRY(set_limit(statement, "gpu_hours", quota.gpu_hours));
  TRY(set_limit(statement, "guaranteed_gpus", quota.guaranteed_gpus));
  TRY(set_limit(statement, "borrow_limit", quota.borrow_limit));
  TRY(set_limit(statement, "lend_limit", quota.lend_limit));
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

base::Status change_order(const Statement& statement, model::Policy& policy) {
  using model::QueueOrder;
  using model::QuotaPeriod;
  TRY(set_word(statement, "order",
               std::array{QueueOrder::kPriority, QueueOrder::kFcfs, QueueOrder::kFairShare,
                          QueueOrder::kWeighted},
               policy.order));
  TRY(set_duration(statement, "half_life", policy.fair_share.half_life));
  TRY(set_duration(statement, "interval", policy.fair_share.interval));
  if (const std::string* weights = option(statement, "gpu_weights")) {
    policy.fair_share.gpu_weights.clear();
    for (const std::string& weight : parts_of(*weights)) {
      TRY_ASSIGN(const auto type, numbered(weight, 1));
      policy.fair_share.gpu_weights.push_back(
          {model::canonical_gpu_type(type.first).value_or(type.first),
           static_cast<std::uint32_t>(type.second * 1000)});
    }
  }
  if (option(statement, "quota_period") != nullptr) {
    model::Organisation organisation = *policy.organisation;
    TRY(set_word(statement, "quota_period",
                 std::array{QuotaPeriod::kDay, QuotaPeriod::kWeek, QuotaPeriod::kMonth},
                 organisation.period));
    policy.organisation = std::move(organisation);
  }
  if (option(statement, "allocation") != nullptr) {
    using model::AllocationMode;
    model::Organisation organisation = *policy.organisation;
    TRY(set_word(statement, "allocation",
                 std::array{AllocationMode::kGuaranteed, AllocationMode::kStatic,
                            AllocationMode::kDynamic, AllocationMode::kHybrid},
                 organisation.allocation));
    TRY(set_count(statement, "reserved_thousandths", 0, 1000, organisation.reserved_thousandths));
    policy.organisation = std::move(organisation);
  }
  const std::string* weights = option(statement, "weights");
  if (weights == nullptr) return {};
  const std::vector<std::string> parts = parts_of(*weights);
  std::array<std::uint32_t*, 4> fields = {&policy.weights.age, &policy.weights.priority,
                                          &policy.weights.fair_share, &policy.weights.size};
  if (parts.size() != fields.size()) {
    return base::invalid({}, "weights: four numbers, of age, priority, fair share and size");
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    TRY_ASSIGN(const std::uint64_t value, base::parse_count(parts[i], 0, 1'000'000));
    *fields[i] = static_cast<std::uint32_t>(value);
  }
  return {};
}

}  // namespace gpu_platform::simulation
