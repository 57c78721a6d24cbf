#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/ids.h"

// The audit trail: the caller, origin, action and outcome of each request. An entry follows from
// only one event of the journal (model::audit_entry of model/event.h), so the trail can be made
// again from the journal. It never has command lines, environments or secrets.

namespace gpu_platform::model {

// The interface that a call came through.
enum class Door : std::uint8_t {
  kNone,        // not known: recorded before there was a trail
  kUnixSocket,  // the API; the socket's peer credentials name the caller
  kSignal,      // a signal to the daemon; the kernel names the sender
  kStart,       // the daemon's own start
  kListener,    // the API from other machines; a credential names the caller
};
inline constexpr std::size_t kDoors = 5;
std::string_view to_string(Door door);  // "unix socket"

// Names the credential that a caller came with; never its secret.
struct CredentialName {
  // The token's name, or the name in the certificate or the issuer's token that access.identities
  // maps to the user: "email:ada@example.org".
  std::string name;
  std::string issuer;      // of an OpenID Connect token
  std::string user_claim;  // of that token: the one that has the name

  friend bool operator==(const CredentialName&, const CredentialName&) = default;
};
inline constexpr std::size_t kMaxCredentialNameBytes = 255;

// The caller, and where the call came from.
struct Origin {
  Door door = Door::kNone;
  std::string user;
  std::uint32_t uid = 0;
  std::uint64_t pid = 0;  // of the caller when it came in; 0: not known
  TokenId token;          // that the caller came with; invalid: none
  std::optional<CredentialName> credential = std::nullopt;  // of that

  friend bool operator==(const Origin&, const Origin&) = default;
};

enum class AuditAction : std::uint8_t {
  kSubmit,
  kCancel,
  kKill,
  kHold,
  kRelease,
  kRequeue,
  kRequeueAndHold,
  kUpdate,
  kDrain,
  kTakeOffline,
  kBringOnline,
  kMakeReservation,
  kCancelReservation,
  kConfigure,
  kExec,
  kAttach,
  kPortForward,
  kChangeMany,  // a change of many jobs that was refused before it could be read which
  kTop,         // jobs were raised above others of their user
  kSignal,      // to the processes of a job
  kChangeReservation,
  kCreateToken,
  kRevokeToken,
  kSetTeam,
  kRemoveTeam,
  kAcceptInvitation,
  kDeclineInvitation,
  kReset,
  kCheck,
  kSilence,
  kEndSilence,
  kAcknowledge,  // an alert
  kTestChannel,
  kStopIdle,  // by the platform: a job that does not use its GPUs
  kSetPrice,
  kWithdrawPrice,
  kCorrectLedger,
  kSetBudget,
  kOverrideBudget,
  kRemoveBudget,
};
inline constexpr std::size_t kAuditActions = 40;
std::string_view to_string(AuditAction action);  // "requeue_and_hold"

// The owner of the jobs, or the user of a token.
struct JobOwner {
  std::string user;
  std::uint32_t uid = 0;

  friend bool operator==(const JobOwner&, const JobOwner&) = default;
};

// A refusal and its reason.
struct Refusal {
  std::string code;  // of base::ErrorCode: "PERMISSION_DENIED"
  std::string text;  // short, of one line

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// The effect of a call, or the effect that it would have had.
struct AuditedCall {
  Origin by;
  AuditAction action = AuditAction::kSubmit;
  // A call that touches jobs of several users makes an entry for each of them.
  std::optional<JobOwner> owner;
  std::vector<JobId> jobs;  // the first kMaxAuditedJobs, ascending
  std::uint64_t job_count = 0;
  std::vector<std::string> gpus;  // "node:index", the first kMaxAuditedGpus
  std::uint64_t gpu_count = 0;
  // A node, a reservation, a token, a team, a silence, an alert, a channel or a budget by name; a
  // price by its type or its id; the user, the team or the project that a correction is of.
  std::string target;
  std::optional<Refusal> refusal;
  std::string request_id;
  // The number of refused calls since `since` that are one entry, past the rate. Else this is 1 and
  // `since` is unset.
  std::uint64_t calls = 1;
  base::Instant since;

  friend bool operator==(const AuditedCall&, const AuditedCall&) = default;
};
inline constexpr std::size_t kMaxAuditedJobs = 100;
inline constexpr std::size_t kMaxAuditedGpus = 64;
inline constexpr std::size_t kMaxRefusalBytes = 200;

struct AuditEntry {
  EventSeq seq;  // of the event that says it: the entry's id
  base::Instant at;
  AuditedCall call;

  friend bool operator==(const AuditEntry&, const AuditEntry&) = default;
};

// Returns the text on one line, no longer than `max_bytes`, and cut between two characters of
// UTF-8.
std::string one_line(std::string_view text, std::size_t max_bytes);

// The refusal as it is recorded. The message of a malformed request may repeat what was sent, which
// may be secret: of such a one the field alone is told.
Refusal refusal_of(const base::Error& error);
// True for the caller, and for the owners of the jobs or the token.
bool concerns(const AuditedCall& call, std::uint32_t uid);

}  // namespace gpu_platform::model
