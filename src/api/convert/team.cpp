#include "api/convert/team.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/suggest.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// The messages have the keys of a quota as fields of the same names.
const pb::FieldDescriptor& field_of(const pb::Message& message, const model::QuotaField& row) {
  const auto* field = message.GetDescriptor()->FindFieldByName(std::string(row.name));
  CHECK(field != nullptr);
  return *field;
}

base::Result<model::QuotaKey> key_named(const std::string& name) {
  std::vector<std::string_view> names;
  for (const model::QuotaField& row : model::kQuotaFields) {
    if (row.name == name) return row.key;
    names.push_back(row.name);
  }
  return base::invalid("clear", fmt::format("clear: '{}' is not a limit or guarantee of a team{}",
                                            name, base::did_you_mean(name, names)));
}

void add_origin(std::string_view key, bool is_configured, v1::Team& out) {
  v1::TeamValueOrigin& origin = *out.add_origins();
  origin.set_key(std::string(key));
  origin.set_origin(is_configured ? v1::TEAM_ORIGIN_CONFIGURATION : v1::TEAM_ORIGIN_RUN_TIME);
}

void put_limits(const model::Team& team, const model::Team* configured,
                const model::RunTimeTeam* set, v1::Team& out) {
  for (const model::QuotaField& row : model::kQuotaFields) {
    const auto value = team.quota.*row.member;
    if (!value) continue;
    out.GetReflection()->SetUInt32(&out, &field_of(out, row), *value);
    const bool is_configured = configured != nullptr && (configured->quota.*row.member).has_value();
    add_origin(row.name, is_configured, out);
    if (is_configured || set == nullptr) continue;
    const auto given = set->quota.*row.member;
    if (given && *given != *value) out.mutable_origins()->rbegin()->set_lowered_from(*given);
  }
}

}  // namespace

base::Result<model::SetTeam> to_model(const v1::SetTeamRequest& request) {
  model::SetTeam command;
  command.name = request.name();
  if (request.must_exist()) command.presence = model::SetTeam::Presence::kPresent;
  if (request.has_parent()) command.parent = request.parent();
  if (request.has_shares()) command.shares = request.shares();
  for (const v1::TeamMember& member : request.add_members()) {
    auto& added = command.add_members.emplace_back();
    added.user = member.user();
    if (member.has_shares()) added.shares = member.shares();
    if (member.has_default_team()) added.is_default = member.default_team();
  }
  command.remove_members = {request.remove_members().begin(), request.remove_members().end()};
  command.add_coordinators = {request.add_coordinators().begin(), request.add_coordinators().end()};
  command.remove_coordinators = {request.remove_coordinators().begin(),
                                 request.remove_coordinators().end()};
  for (const model::QuotaField& row : model::kQuotaFields) {
    const pb::FieldDescriptor& field = field_of(request, row);
    if (!request.GetReflection()->HasField(request, &field)) continue;
    command.quota[row.key] = request.GetReflection()->GetUInt32(request, &field);
  }
  for (const std::string& name : request.clear()) {
    TRY_ASSIGN(const model::QuotaKey key, key_named(name));
    if (!command.quota.emplace(key, std::nullopt).second) {
      return base::invalid("clear", fmt::format("clear: {} is given twice", name));
    }
  }
  return command;
}

void to_proto(const model::Team& team, const model::TeamSources& sources, v1::Team& out) {
  const model::Team* configured = find_team(sources.configured, team.name);
  const auto found = sources.run_time.find(team.name);
  const model::RunTimeTeam* set = found == sources.run_time.end() ? nullptr : &found->second;
  out.set_name(team.name);
  out.set_origin(configured != nullptr ? v1::TEAM_ORIGIN_CONFIGURATION : v1::TEAM_ORIGIN_RUN_TIME);
  if (!team.parent.empty()) {
    out.set_parent(team.parent);
    add_origin("parent", configured != nullptr, out);
  }
  out.set_shares(team.shares);
  add_origin("shares", configured != nullptr, out);
  for (const model::Member& member : team.members) {
    v1::TeamMember& listed = *out.add_members();
    listed.set_user(member.user);
    listed.set_shares(member.shares);
    listed.set_default_team(!member.only_if_named);
  }
  if (!team.members.empty()) {
    add_origin("members", configured != nullptr && !configured->members.empty(), out);
  }
  put_limits(team, configured, set, out);
  if (set == nullptr) return;
  for (const model::HiddenValue& value : model::hidden_values(sources, *set)) {
    v1::HiddenTeamValue& hidden = *out.add_hidden();
    hidden.set_key(value.key);
    hidden.set_value(value.text);
  }
  out.set_set_by(set->set_by);
  if (set->set_at.is_set()) to_proto(set->set_at, *out.mutable_set_at());
}

}  // namespace gpu_platform::api
