#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/calls.h"
#include "api/convert/team.h"
#include "api/list_page.h"
#include "model/access.h"

// The calls about teams.

namespace gpu_platform::api {

namespace {

// What a caller sees of the invitations to a team: all, if it may end them, else its own.
void put_invitations(const model::RunTimeTeam& set, const model::Caller& caller, v1::Team& out) {
  const bool coordinates =
      caller.teams != nullptr && std::ranges::binary_search(caller.teams->coordinates, set.name);
  const bool sees_all = coordinates || has(caller, model::Right::kSeeUsage);
  for (const model::Invitation& invitation : set.invited) {
    const bool is_own = invitation.user == caller.user;
    if (is_own) out.set_invites_you(true);
    if (!is_own && !sees_all) continue;
    v1::TeamInvitation& listed = *out.add_invited();
    listed.set_user(invitation.user);
    listed.set_shares(invitation.shares);
    listed.set_invited_by(invitation.by);
  }
}

}  // namespace

// Without the members that the caller may not see.
v1::Team Calls::described(const model::Team& team, const controller::Snapshot& snapshot,
                          const Peer& peer) const {
  const model::View view = reader_.view_of(peer.caller);
  const auto is_hidden = [&](const model::Member& member) {
    return !view.sees_usage_of(member.user, team.name);
  };
  model::Team seen = team;
  std::erase_if(seen.members, is_hidden);
  v1::Team out;
  to_proto(seen, *snapshot.teams, out);
  const auto set = snapshot.teams->run_time.find(team.name);
  if (set != snapshot.teams->run_time.end() &&
      std::ranges::any_of(set->second.members, is_hidden)) {
    auto& values = *out.mutable_hidden();
    const auto members =
        std::find_if(values.begin(), values.end(),
                     [](const v1::HiddenTeamValue& value) { return value.key() == "members"; });
    if (members != values.end()) values.erase(members);
  }
  if (set != snapshot.teams->run_time.end()) put_invitations(set->second, peer.caller, out);
  if (core_.access == nullptr) return out;
  for (const std::string& user : core_.access()->coordinators_of(team.name)) {
    out.add_coordinators(user);
  }
  return out;
}

base::Result<v1::ListTeamsResponse> Calls::teams(const v1::ListTeamsRequest& request,
                                                 const Peer& peer) const {
  const auto snapshot = core_.snapshots.snapshot();
  v1::ListTeamsResponse out;
  for (const model::Team& team : snapshot->policy->organisation->teams) {
    *out.add_teams() = described(team, *snapshot, peer);
  }
  TRY(cut_to_page(request, *out.mutable_teams(), out,
                  [](const v1::Team& team) { return team.name(); }));
  return out;
}

base::Result<v1::Team> Calls::team(const std::string& name, const Peer& peer) const {
  const auto snapshot = core_.snapshots.snapshot();
  const model::Team* team = find_team(*snapshot->policy->organisation, name);
  if (team != nullptr) return described(*team, *snapshot, peer);
  return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no team '{}'", name), "name");
}

void Calls::set_team(const v1::SetTeamRequest& request, bool is_new, const Peer& peer,
                     Resume resume, TeamChanged done) const {
  auto command = to_model(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  if (is_new) command->presence = model::SetTeam::Presence::kNew;
  NamedUsers named{.asker = peer.caller.uid};
  for (const auto& member : command->add_members) {
    named.named.push_back({"add_members", member.user});
  }
  for (const std::string& user : command->add_coordinators) {
    named.named.push_back({"add_coordinators", user});
  }
  auto send_it = [this, command = *std::move(command), peer, resume,
                  done = std::move(done)](base::Status checked) {
    if (!checked) return done(std::unexpected(std::move(checked).error()));
    change_team({peer.caller, command}, command.name, peer, resume, done);
  };
  // Others are refused, and nothing is looked up for them.
  if (!model::may_touch_team(peer.caller, request.name())) return send_it({});
  check_users(std::move(named), resume, std::move(send_it));
}

void Calls::answer_invitation(model::AnswerInvitation answer, const Peer& peer, Resume resume,
                              TeamChanged done) const {
  if (const auto named = check_named(peer); !named) return done(std::unexpected(named.error()));
  const std::string name = answer.name;
  change_team({peer.caller, std::move(answer)}, name, peer, std::move(resume), std::move(done));
}

void Calls::change_team(model::Command command, std::string name, const Peer& peer, Resume resume,
                        TeamChanged done) const {
  send(std::move(command), std::move(resume),
       [this, name = std::move(name), peer,
        done = std::move(done)](base::Result<model::CommandReply> reply) {
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         done(team(name, peer));
       });
}

void Calls::remove_team(const std::string& name, const Peer& peer, Resume resume,
                        TeamChanged done) const {
  auto before = team(name, peer);
  if (!before) return done(std::unexpected(std::move(before).error()));
  send({peer.caller, model::RemoveTeam{name}}, std::move(resume),
       [before = *std::move(before),
        done = std::move(done)](base::Result<model::CommandReply> reply) {
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         done(before);
       });
}

}  // namespace gpu_platform::api
