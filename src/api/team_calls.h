#pragma once

#include "api/changing_call.h"
#include "gpu_platform/v1/teams.pb.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of TeamService. Safe from any thread.
class TeamCalls {
 public:
  explicit TeamCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListTeamsResponse> list(const v1::ListTeamsRequest& request,
                                           const Peer& peer) const;
  base::Result<v1::Team> get(const v1::GetTeamRequest& request, const Peer& peer) const;

  // There may be no team of the name yet.
  void create(const v1::SetTeamRequest& request, const Peer& peer, Resume resume,
              Done<v1::Team> done) const;
  void set(const v1::SetTeamRequest& request, const Peer& peer, Resume resume,
           Done<v1::Team> done) const;
  void accept_invitation(const v1::AnswerInvitationRequest& request, const Peer& peer,
                         Resume resume, Done<v1::Team> done) const;
  void decline_invitation(const v1::AnswerInvitationRequest& request, const Peer& peer,
                          Resume resume, Done<v1::Team> done) const;
  void remove(const v1::RemoveTeamRequest& request, const Peer& peer, Resume resume,
              Done<v1::Team> done) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
