#include "api/team_calls.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/accounts.h"
#include "api/call_context.h"
#include "api/convert/team.h"
#include "api/list_page.h"
#include "model/access.h"

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

// Without the members that the caller may not see.
v1::Team described(const CallContext& context, const model::Team& team,
                   const controller::Snapshot& snapshot, const Peer& peer) {
  const model::View view = context.reader.view_of(peer.caller);
  const auto is_hidden = [&](const model::Member& member) {
    return !view.sees_usage_of(member.user, team.name);
  };
  model::Team seen = team;
  std::erase_if(seen.members, is_hidden);
  v1::Team out;
  api::to_proto(seen, *snapshot.teams, out);
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
  if (context.core.access == nullptr) return out;
  for (const std::string& user : context.core.access()->coordinators_of(team.name)) {
    out.add_coordinators(user);
  }
  return out;
}

base::Result<v1::Team> find_described(const CallContext& context, const std::string& name,
                                      const Peer& peer) {
  const auto snapshot = context.core.snapshots.snapshot();
  const model::Team* team = find_team(*snapshot->policy->organisation, name);
  if (team != nullptr) return described(context, *team, *snapshot, peer);
  return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no team '{}'", name), "name");
}

// Sends a command that changes the team of that name, which is the answer.
void change_team(const CallContext& context, model::Command command, std::string name,
                 const Peer& peer, Resume resume, Done<v1::Team> done) {
  context.send(std::move(command), std::move(resume),
               [&context, name = std::move(name), peer,
                done = std::move(done)](base::Result<model::CommandReply> reply) {
                 if (!reply) return done(std::unexpected(std::move(reply).error()));
                 done(find_described(context, name, peer));
               });
}

// The users that it adds must exist.
void send_team(const CallContext& context, model::SetTeam command, const Peer& peer, Resume resume,
               Done<v1::Team> done) {
  std::vector<NamedUser> named;
  named.reserve(command.add_members.size() + command.add_coordinators.size());
  for (const auto& member : command.add_members) named.push_back({"add_members", member.user});
  for (const std::string& user : command.add_coordinators) {
    named.push_back({"add_coordinators", user});
  }
  const bool may_touch = model::may_touch_team(peer.caller, command.name);
  auto send_it = [&context, command = std::move(command), peer, resume,
                  done = std::move(done)](base::Status checked) {
    if (!checked) return done(std::unexpected(std::move(checked).error()));
    change_team(context, {peer.caller, command}, command.name, peer, resume, done);
  };
  // Others are refused, and nothing is looked up for them.
  if (!may_touch) return send_it({});
  check_users(context, std::move(named), peer.caller.uid, std::move(resume), std::move(send_it));
}

void send_answer(const CallContext& context, model::AnswerInvitation answer, const Peer& peer,
                 Resume resume, Done<v1::Team> done) {
  if (const auto named = check_named(peer); !named) return done(std::unexpected(named.error()));
  const std::string name = answer.name;
  change_team(context, {peer.caller, std::move(answer)}, name, peer, std::move(resume),
              std::move(done));
}

}  // namespace

base::Result<v1::ListTeamsResponse> TeamCalls::list(const v1::ListTeamsRequest& request,
                                                    const Peer& peer) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::ListTeamsResponse out;
  for (const model::Team& team : snapshot->policy->organisation->teams) {
    *out.add_teams() = described(context_, team, *snapshot, peer);
  }
  TRY(cut_to_page(request, *out.mutable_teams(), out,
                  [](const v1::Team& team) { return team.name(); }));
  return out;
}

base::Result<v1::Team> TeamCalls::get(const v1::GetTeamRequest& request, const Peer& peer) const {
  return find_described(context_, request.name(), peer);
}

void TeamCalls::create(const v1::SetTeamRequest& request, const Peer& peer, Resume resume,
                       Done<v1::Team> done) const {
  auto command = to_model(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  command->presence = model::SetTeam::Presence::kNew;
  send_team(context_, *std::move(command), peer, std::move(resume), std::move(done));
}

void TeamCalls::set(const v1::SetTeamRequest& request, const Peer& peer, Resume resume,
                    Done<v1::Team> done) const {
  auto command = to_model(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  send_team(context_, *std::move(command), peer, std::move(resume), std::move(done));
}

void TeamCalls::accept_invitation(const v1::AnswerInvitationRequest& request, const Peer& peer,
                                  Resume resume, Done<v1::Team> done) const {
  send_answer(context_, {request.name(), true}, peer, std::move(resume), std::move(done));
}

void TeamCalls::decline_invitation(const v1::AnswerInvitationRequest& request, const Peer& peer,
                                   Resume resume, Done<v1::Team> done) const {
  send_answer(context_, {request.name(), false}, peer, std::move(resume), std::move(done));
}

void TeamCalls::remove(const v1::RemoveTeamRequest& request, const Peer& peer, Resume resume,
                       Done<v1::Team> done) const {
  auto before = find_described(context_, request.name(), peer);
  if (!before) return done(std::unexpected(std::move(before).error()));
  context_.send({peer.caller, model::RemoveTeam{request.name()}}, std::move(resume),
                [before = *std::move(before),
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done(before);
                });
}

}  // namespace gpu_platform::api
