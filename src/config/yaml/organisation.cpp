#include "config/yaml/organisation.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "config/schema.h"
#include "config/yaml/document.h"
#include "model/gpu_catalogue.h"
#include "model/quota_fields.h"

namespace gpu_platform::config {

namespace {

using Keys = std::vector<std::string_view>;

Keys limit_keys() {
  Keys keys;
  for (const model::QuotaField& row : model::kQuotaFields) keys.push_back(row.name);
  keys.emplace_back("gpu_types");
  return keys;
}

Keys type_limit_keys() {
  Keys keys;
  model::for_each_type_quota_field([&](const auto& row) { keys.push_back(row.name); });
  return keys;
}

Keys team_keys() {
  Keys keys{"name", "parent", "shares", "users", "coordinators"};
  std::ranges::copy(limit_keys(), std::back_inserter(keys));
  for (const std::string_view key : {"reclaim_min_runtime", "max_reclaims_per_job",
                                     "preempt_min_runtime", "default_time_limit"}) {
    keys.push_back(key);
  }
  return keys;
}

// "0.25" as 250.
std::optional<std::uint32_t> thousandths_of(std::string_view text) {
  const std::size_t dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::string part(dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1));
  if (part.size() > 3 || (dot != std::string_view::npos && part.empty())) return std::nullopt;
  part.resize(3, '0');
  const auto number = base::parse_count(digits + part, 0, 1'000'000);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

void OrganisationReader::read(const std::string& path, const YAML::Node& name,
                              const YAML::Node& value) {
  key_ = path;
  seen_.emplace(path, Place{name.Mark(), file_});
  if (path == "teams") return read_teams(value);
  if (path == "teams_file") return read_teams_file(value);
  if (path == "scheduling.fair_share.gpu_weights") return read_gpu_weights(value);
  if (path == "allocation.reserved_ratio") return read_reserved_ratio(value);
  if (path == "quotas.users") return read_named_quotas(value, organisation_.of_users);
  if (path == "quotas.projects") return read_named_quotas(value, organisation_.of_projects);
  organisation_.of_each_user = read_quota(value);
  refuse_guarantee(value, organisation_.of_each_user, "each user");
}

void OrganisationReader::read_reserved_ratio(const YAML::Node& value) {
  const auto ratio = value.IsScalar() ? thousandths_of(value.Scalar()) : std::nullopt;
  if (!ratio || *ratio > 1000) {
    report(value, fmt::format("'{}' must be 0 to 1, with three decimals at most", key_));
    return;
  }
  organisation_.reserved_thousandths = *ratio;
}

// A guarantee must belong to one holder, and no job may have two holders.
void OrganisationReader::refuse_guarantee(const YAML::Node& map, const model::Quota& quota,
                                          std::string_view whose) {
  const bool is_by_type = std::ranges::any_of(
      quota.gpu_types, [](const auto& of_type) { return of_type.guaranteed_gpus.has_value(); });
  if (!quota.guaranteed_gpus && !is_by_type) return;
  report(map, fmt::format("'guaranteed_gpus' in '{}' is for teams and for users by name "
                          "(quotas.users), not for {}",
                          key_, whose));
}

void OrganisationReader::check_guarantee(const YAML::Node& map, const model::Quota& quota) {
  check_type_guarantees(map, quota);
  const auto& own = quota.guaranteed_gpus;
  if (!own && quota.over_quota_weight) {
    report(map, fmt::format("'over_quota_weight' in '{}' is about the GPUs beyond guaranteed_gpus, "
                            "which is missing: write 'guaranteed_gpus: 0' for none",
                            key_));
  } else if (!own && (quota.borrow_limit || quota.lend_limit)) {
    report(map, fmt::format("'{}' in '{}' needs guaranteed_gpus, which is not set",
                            quota.borrow_limit ? "borrow_limit" : "lend_limit", key_));
  } else if (own && quota.max_gpus && *own > *quota.max_gpus) {
    report(map, fmt::format("'guaranteed_gpus' in '{}' must be at most max_gpus, which is {}", key_,
                            *quota.max_gpus));
  } else if (own && quota.lend_limit && *quota.lend_limit > *own) {
    report(map, fmt::format("'lend_limit' in '{}' must be at most guaranteed_gpus, which is {}",
                            key_, *own));
  }
}

// What is guaranteed by type is a part of what is guaranteed at all, and of what may be used.
void OrganisationReader::check_type_guarantees(const YAML::Node& map, const model::Quota& quota) {
  std::uint64_t sum = 0;
  for (const model::TypeQuota& each : quota.gpu_types) sum += each.guaranteed_gpus.value_or(0);
  const auto check = [&](std::string_view name, const std::optional<std::uint32_t>& most) {
    if (!most || sum <= *most) return;
    report(map, fmt::format("'guaranteed_gpus' of all 'gpu_types' in '{}' add up to {}: at most "
                            "{}, which is {}",
                            key_, sum, name, *most));
  };
  check("guaranteed_gpus", quota.guaranteed_gpus);
  check("max_gpus", quota.max_gpus);
  const std::uint64_t rest = quota.guaranteed_gpus.value_or(0) - sum;
  if (sum > 0 && quota.guaranteed_gpus && sum <= *quota.guaranteed_gpus &&
      quota.lend_limit.value_or(0) > rest) {
    report(map, fmt::format("'lend_limit' in '{}' must be at most the part of guaranteed_gpus that "
                            "is not in gpu_types, which is {}",
                            key_, rest));
  }
}

void OrganisationReader::read_teams(const YAML::Node& list) {
  if (list.IsNull()) return;
  if (!list.IsSequence()) {
    report(list,
           fmt::format("'{}' must be a list of teams ('- name: …'), not {}", key_, kind_of(list)));
    return;
  }
  for (const auto& team : list) read_team(team);
}

void OrganisationReader::read_teams_file(const YAML::Node& value) {
  const auto path = word(value, "teams_file");
  if (!path) return;
  const std::string file = path->starts_with('/') ? *path : folder_ + "/" + *path;
  const auto text = read_text(file);
  if (!text) {
    report(value, fmt::format("teams_file: {} {}", file, text.error().message));
    return;
  }
  const auto document = parse_document(*text);
  const std::string outer = std::exchange(file_, file);
  if (document) {
    read_teams(*document);
  } else {
    problems_.push_back(document.error());
    problems_.back().file = file;
  }
  file_ = outer;
}

void OrganisationReader::read_team(const YAML::Node& map) {
  if (!map.IsMap()) {
    report(map,
           fmt::format("a team in '{}' must begin with '- name: …', not {}", key_, kind_of(map)));
    return;
  }
  model::Team team;
  team_coordinators_.clear();
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    if (!read_of_team(name.Scalar(), value, team)) report_unknown(name, team_keys());
  });
  if (team.name.empty()) {
    if (!map["name"]) report(map, "a team without a name: begin it with '- name: …'");
    return;
  }
  if (model::find_team(organisation_, team.name) != nullptr) {
    report(map, fmt::format("team '{}' is defined already; each name may be used once", team.name));
    return;
  }
  check_guarantee(map, team.quota);
  team_places_.push_back({map.Mark(), file_});
  if (!team_coordinators_.empty()) coordinators_[team.name] = std::move(team_coordinators_);
  organisation_.teams.push_back(std::move(team));
}

bool OrganisationReader::read_of_team(std::string_view key, const YAML::Node& value,
                                      model::Team& team) {
  if (key == "name") {
    team.name = word(value, key).value_or("");
  } else if (key == "parent") {
    team.parent = word(value, key).value_or("");
  } else if (key == "shares") {
    team.shares = count(value, key, 1).value_or(1);
  } else if (key == "users") {
    read_members(value, team);
  } else if (key == "coordinators") {
    for (std::string& user : users(value, key)) team_coordinators_.insert(std::move(user));
  } else if (key == "reclaim_min_runtime") {
    team.reclaim_min_runtime = duration(value, key);
  } else if (key == "preempt_min_runtime") {
    team.preempt_min_runtime = duration(value, key);
  } else if (key == "default_time_limit") {
    read_default_time_limit(value, team);
  } else if (key == "max_reclaims_per_job") {
    team.max_reclaims_per_job = count(value, key, 0);
  } else {
    return read_limit(key, value, team.quota);
  }
  return true;
}

void OrganisationReader::read_default_time_limit(const YAML::Node& value, model::Team& team) {
  team.default_time_limit = duration(value, "default_time_limit");
  if (team.default_time_limit != base::Duration()) return;
  report(value, fmt::format("'default_time_limit' in '{}' must be more than 0", key_));
}

void OrganisationReader::read_members(const YAML::Node& list, model::Team& team) {
  if (!list.IsSequence()) {
    report(list,
           fmt::format("'users' of a team must be a list ([ann, bob: 2]), not {}", kind_of(list)));
    return;
  }
  for (const auto& item : list) {
    if (!item.IsMap()) {
      read_member(item, 1, team);
      continue;
    }
    for_each_entry(item, [&](const YAML::Node& name, const YAML::Node& shares) {
      read_member(name, count(shares, "shares", 1).value_or(1), team);
    });
  }
}

void OrganisationReader::read_member(const YAML::Node& name, std::uint32_t shares,
                                     model::Team& team) {
  const auto user = word(name, "users");
  if (!user) return;
  if (model::is_member(team, *user)) {
    report(name, fmt::format("user '{}' is in this team already: each once", *user));
    return;
  }
  team.members.push_back({*user, shares});
}

bool OrganisationReader::read_limit(std::string_view key, const YAML::Node& value,
                                    model::Quota& quota) {
  if (key == "gpu_types") {
    read_type_limits(value, quota);
    return true;
  }
  const auto row = std::ranges::find(model::kQuotaFields, key, &model::QuotaField::name);
  if (row == model::kQuotaFields.end()) return false;
  quota.*row->member = count(value, key, 0);
  return true;
}

void OrganisationReader::read_type_limits(const YAML::Node& map, model::Quota& quota) {
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& limits) {
    // A type that is not in the catalogue is named as the driver names its model.
    model::TypeQuota of_type{model::canonical_gpu_type(name.Scalar()).value_or(name.Scalar()), {}};
    if (std::ranges::find(quota.gpu_types, of_type.type, &model::TypeQuota::type) !=
        quota.gpu_types.end()) {
      report(name, fmt::format("'{}' has limits already: each once", of_type.type));
      return;
    }
    for_each_entry(limits, [&](const YAML::Node& limit, const YAML::Node& value) {
      if (!read_type_limit(limit.Scalar(), value, of_type))
        report_unknown(limit, type_limit_keys());
    });
    check_type_guarantee(name, of_type);
    quota.gpu_types.push_back(std::move(of_type));
  });
  std::ranges::sort(quota.gpu_types, {}, &model::TypeQuota::type);
}

bool OrganisationReader::read_type_limit(std::string_view key, const YAML::Node& value,
                                         model::TypeQuota& quota) {
  const auto row = std::ranges::find(model::kQuotaFields, key, &model::QuotaField::name);
  if (row == model::kQuotaFields.end() || row->of_type == nullptr) return false;
  quota.*row->of_type = count(value, key, 0);
  return true;
}

// Each GPU must be in one pool: no type may have guarantees of its own and those of its family.
void OrganisationReader::check_type_guarantee(const YAML::Node& map,
                                              const model::TypeQuota& quota) {
  const auto& own = quota.guaranteed_gpus;
  const std::string where = fmt::format("'gpu_types.{}' of '{}'", quota.type, key_);
  if (!own && (quota.borrow_limit || quota.lend_limit)) {
    report(map, fmt::format("'{}' in {} needs guaranteed_gpus, which is not set",
                            quota.borrow_limit ? "borrow_limit" : "lend_limit", where));
  }
  if (!own) return;
  if (quota.max_gpus && *own > *quota.max_gpus) {
    report(map, fmt::format("'guaranteed_gpus' in {} must be at most max_gpus, which is {}", where,
                            *quota.max_gpus));
  }
  if (quota.lend_limit && *quota.lend_limit > *own) {
    report(map, fmt::format("'lend_limit' in {} must be at most guaranteed_gpus, which is {}",
                            where, *own));
  }
  const auto other = std::ranges::find_if(guaranteed_types_, [&](const std::string& name) {
    return name != quota.type &&
           (model::gpu_type_matches(name, quota.type) || model::gpu_type_matches(quota.type, name));
  });
  if (other != guaranteed_types_.end()) {
    report(map, fmt::format("'guaranteed_gpus' in {}: there are guarantees for '{}' too, and the "
                            "same GPUs are of both; use one of these names everywhere",
                            where, *other));
  }
  guaranteed_types_.insert(quota.type);
}

model::Quota OrganisationReader::read_quota(const YAML::Node& map) {
  model::Quota quota;
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    if (!read_limit(name.Scalar(), value, quota)) report_unknown(name, limit_keys());
  });
  check_guarantee(map, quota);
  return quota;
}

void OrganisationReader::read_named_quotas(const YAML::Node& map,
                                           std::vector<model::NamedQuota>& quotas) {
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& limits) {
    quotas.push_back({name.Scalar(), read_quota(limits)});
    if (&quotas == &organisation_.of_projects) {
      refuse_guarantee(limits, quotas.back().quota, "projects");
    }
  });
  std::ranges::sort(quotas, {}, &model::NamedQuota::name);
}

void OrganisationReader::read_gpu_weights(const YAML::Node& map) {
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const auto weight = value.IsScalar() ? thousandths_of(value.Scalar()) : std::nullopt;
    if (!weight || *weight == 0) {
      report(value, fmt::format("'{}' in '{}' must be 0.001 to 1000, with three decimals at most",
                                printable(name.Scalar()), key_));
      return;
    }
    // A type that is not in the catalogue is named as the driver names its model.
    const std::string type = model::canonical_gpu_type(name.Scalar()).value_or(name.Scalar());
    if (std::ranges::find(gpu_weights_, type, &model::GpuWeight::type) != gpu_weights_.end()) {
      report(name, fmt::format("'{}' has a weight already: each once", type));
      return;
    }
    gpu_weights_.push_back({type, *weight});
  });
  std::ranges::sort(gpu_weights_, {}, &model::GpuWeight::type);
}

bool OrganisationReader::is_below_itself(const model::Team& team) const {
  const model::Team* above = &team;
  for (std::size_t step = 0; step < organisation_.teams.size(); ++step) {
    above = model::find_team(organisation_, above->parent);
    if (above == nullptr) return false;
    if (above == &team) return true;
  }
  return false;  // below a circle, which its own teams report
}

void OrganisationReader::report_team(std::size_t index, std::string message) {
  const auto& [mark, file] = team_places_[index];
  problems_.push_back({mark.line + 1, mark.column + 1, "teams", std::move(message), file});
}

void OrganisationReader::check_default_times(base::Duration longest) {
  for (std::size_t i = 0; i < organisation_.teams.size(); ++i) {
    const model::Team& team = organisation_.teams[i];
    if (!team.default_time_limit || *team.default_time_limit <= longest) continue;
    report_team(
        i, fmt::format("team '{}': default_time_limit is {}, and the site's longest time "
                       "limit is {} (policies.max_job_duration_hours)",
                       team.name, base::written(*team.default_time_limit), base::written(longest)));
  }
}

void OrganisationReader::check_parents() {
  for (std::size_t i = 0; i < organisation_.teams.size(); ++i) {
    const model::Team& team = organisation_.teams[i];
    if (team.parent.empty()) continue;
    const auto say = [&](std::string message) { report_team(i, std::move(message)); };
    if (team.parent == team.name) {
      say(fmt::format("team '{}' is its own parent", team.name));
    } else if (model::find_team(organisation_, team.parent) == nullptr) {
      std::vector<std::string_view> names;
      for (const model::Team& each : organisation_.teams) names.push_back(each.name);
      say(fmt::format("team '{}' has the parent '{}', and there is no such team{}", team.name,
                      team.parent, base::did_you_mean(team.parent, names)));
    } else if (is_below_itself(team)) {
      say(fmt::format("team '{}' is below itself: its parents go round in a circle", team.name));
    }
  }
}

void OrganisationReader::finish(Configuration& configuration) {
  file_.clear();
  check_parents();
  check_default_times(configuration.policy.max_time_limit);
  const auto refuse = [&](std::string_view key, std::string message) {
    const auto& [mark, file] = seen_.find(key)->second;
    problems_.push_back(
        {mark.line + 1, mark.column + 1, std::string(key), std::move(message), file});
  };
  if (seen_.contains("teams") && seen_.contains("teams_file")) {
    refuse("teams_file", "teams_file: this file has the teams already ('teams')");
  }
  if (configuration.max_gpus_per_user && organisation_.of_each_user.max_gpus) {
    refuse("quotas.user_default",
           "quotas.user_default: max_gpus is set already, by policies.max_gpus_per_user");
  }
  if (configuration.max_gpus_per_user) {
    organisation_.of_each_user.max_gpus = configuration.max_gpus_per_user;
  }
  organisation_.period = configuration.quota_period;
  organisation_.allocation = configuration.allocation;
  configuration.policy.organisation = std::move(organisation_);
  configuration.access.coordinators = std::move(coordinators_);
  configuration.policy.fair_share.gpu_weights = std::move(gpu_weights_);
}

}  // namespace gpu_platform::config
