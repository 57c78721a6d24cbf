#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execution/engine.h"
#include "execution/kubernetes/pods/attempt_end.h"
#include "execution/kubernetes/pods/attempt_life.h"
#include "execution/kubernetes/pods/manifests.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "execution/kubernetes/settings.h"

// The life of attempts as pods. Orders, pods and answers come in; calls and observations go out.
// Pure, so that one suite runs it against a lying, late, repeating cluster.
//
// The truth is in the cluster: an attempt's objects follow from its id, so all that was made before
// a crash is found by its name, and making it again is harmless. A pod keeps kFinalizer until the
// attempt is forgotten, so its end is read however late. Each rank has at most one call under way;
// what it needs next is computed anew from what is known (next_call), never remembered.
//
// Ownership: values. Thread: one owner. Cost: what changed.

namespace gpu_platform::execution {

enum class CallKind : std::uint8_t {
  kMakeClaim,
  kMakePod,
  kMakeService,  // of a gang, when its pods are made; it goes with the first of them
  kAllocate,     // P2: the claim's finalizer and status
  kBind,         // P2
  kLiftGate,     // of a gang, when all its pods and its service are made
  kDeletePod,
  kFetchOutput,  // of a pod that has ended, before it is released
  kDeleteClaim,
  kReleasePod,  // takes kFinalizer away
};

// One request that the engine is to make. The answer comes back through PodAttempts::answer.
struct Call {
  std::uint64_t id = 0;
  CallKind kind = CallKind::kMakePod;
  model::AttemptId attempt;
  std::uint32_t rank = 0;
  std::string namespace_name;
  std::string name;
  std::uint32_t grace_seconds = 0;  // of kDeletePod
  std::uint32_t place = 0;          // of the entry that kLiftGate and kReleasePod take away
};

struct CallAnswer {
  int status = 0;      // HTTP; 0: none
  std::string reason;  // of a Status: "AlreadyExists"
  std::string text;    // what the server says is wrong, one line
  std::string uid;     // of the object, where one was made
};

// A claim of this platform is in the cluster, or is gone from it.
struct ClaimSeen {
  std::string namespace_name;
  model::AttemptId attempt;
  std::uint32_t rank = 0;
  bool is_there = false;
};

class PodAttempts {
 public:
  using BootId = NodeBootId;

  PodAttempts(KubernetesSettings settings, BootId boot_id);
  ~PodAttempts();

  // ---- orders. `environment`: as submitted, NAME=VALUE ended by NUL.
  void start(const StartOrder& order, std::string environment, base::Instant now);
  void stop(const StopOrder& order);
  void set_limit(const LimitOrder& order);
  void forget(const ForgetOrder& order);
  // There was input or output: the job's idle timeout begins anew.
  void note_activity(model::AttemptId attempt, base::Instant now);
  void adopt(const std::vector<KnownAttempt>& known, base::Instant now);

  // ---- what is seen. Nothing is decided before listed(), and nothing that the core does not know
  // is removed before the first adopt(). What is known at begin_list() and not seen until listed()
  // is gone: begin_list() comes before the server is asked, for what is made later may be missing.
  void begin_list();
  void see(const PodView& pod);
  void see_gone(const PodView& pod);
  void listed();
  // The same for claims, between begin_claim_list() and claims_listed().
  void begin_claim_list();
  void see_claim(const ClaimSeen& claim);
  void claims_listed();
  void answer(std::uint64_t call, const CallAnswer& answer, base::Instant now);

  // Does what is due; afterwards the calls and observations are complete.
  void advance(base::Instant now);
  base::Instant next_due() const;  // unset: never
  std::vector<Call> take_calls();
  std::vector<Observation> take_observations();

  // What an attempt waits for or does, in words; empty: it runs, or it is not known.
  std::string step_of(model::AttemptId attempt) const;
  // Those whose step changed since the last call.
  std::vector<model::AttemptId> take_changed_steps() { return attempts_.take_changed_steps(); }
  // What the manifests are made from; null: not known.
  const StartOrder* order_of(model::AttemptId attempt) const;
  const std::string* environment_of(model::AttemptId attempt) const;
  // The pods of an attempt by rank, as last seen.
  std::vector<PodView> pods_of(model::AttemptId attempt) const;
  // The uid of a rank's pod, as the server gave it; empty: not known.
  std::string pod_uid_of(model::AttemptId attempt, std::uint32_t rank) const;
  // Returns whether what a pod of it has printed is still to be fetched, after its end.
  bool awaits_output(model::AttemptId attempt) const;
  std::size_t size() const { return attempts_.size(); }

 private:
  struct Rank;
  struct Attempt;

  void step(Attempt& attempt, base::Instant now);
  void judge_start(Attempt& attempt, base::Instant now);
  void judge_limits(Attempt& attempt, base::Instant now);
  StartPlaces places_of(const Attempt& attempt) const;
  void judge_idleness(Attempt& attempt, base::Instant now);
  void judge_end(Attempt& attempt, base::Instant now);
  void judge_clean(Attempt& attempt);
  void judge_gone(Attempt& attempt);
  void make_calls(Attempt& attempt, base::Instant now);
  static void take_order(Attempt& attempt, const StartOrder& order);
  static RankEnd end_of_rank(const Rank& rank);
  static bool is_failing(const Attempt& attempt);
  static bool wants_output(const Attempt& attempt, const Rank& rank);
  static bool has_ended(const Attempt& attempt);
  bool is_for_another_boot(const Attempt& attempt) const;
  std::optional<Call> next_call(const Attempt& attempt, std::uint32_t index,
                                base::Instant now) const;
  std::optional<Call> next_creation(const Attempt& attempt, std::uint32_t index) const;
  std::optional<Call> next_removal(const Attempt& attempt, std::uint32_t index,
                                   base::Instant now) const;
  Call call_of(const Attempt& attempt, std::uint32_t rank, CallKind kind) const;
  void settle(Attempt& attempt, Rank& rank, CallKind kind, const CallAnswer& answer,
              base::Instant now);
  void refuse(Attempt& attempt, Rank& rank, CallKind kind, const CallAnswer& answer,
              base::Instant now);

  KubernetesSettings settings_;
  AttemptLives<Attempt> attempts_;
  std::map<std::uint64_t, std::pair<model::AttemptId, std::uint32_t>> under_way_;
  std::map<std::uint64_t, CallKind> kinds_;
  std::set<std::pair<model::AttemptId, std::uint32_t>> not_in_list_;  // of a list that is read
  std::set<std::pair<model::AttemptId, std::uint32_t>> claims_not_in_list_;
  std::vector<Call> calls_;
};

}  // namespace gpu_platform::execution
