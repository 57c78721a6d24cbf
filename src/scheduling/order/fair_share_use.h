#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "base/units.h"
#include "model/job.h"
#include "model/policy.h"

namespace gpu_platform::scheduling {

// The account that is charged: a user within a team, or a user without a team (team empty).
struct Account {
  std::string team;
  std::string user;

  friend auto operator<=>(const Account&, const Account&) = default;
};

// A team that the organisation does not have counts as none.
Account account_of(const model::Organisation& organisation, const model::JobSpec& spec);

// Returns true if the policy's order depends on usage.
bool needs_use(const model::Policy& policy);

// The decayed usage. All use decays by the same factor, so none of it is touched as time passes;
// later use counts more instead. Amounts are in the units of the instant `epoch` (use of 2^-22 of
// the cluster for a millisecond). A charge at time t is multiplied by 2^((t - epoch) / half_life);
// when a half-life has passed, all amounts are halved and the epoch moves on.
// Source of the method: the classic decayed use of Slurm's multifactor plugin, without its pass
// over all accounts.
class FairShareUse {
 public:
  struct Amounts {
    std::uint64_t counted = 0;    // the usage that the order uses
    std::uint64_t uncounted = 0;  // of attempts that gave back since the last count
    // The same of the GPUs alone, as gpu_time(), for people to see: it does not depend on what the
    // cluster has, and the order does not use it.
    std::uint64_t counted_gpu_time = 0;
    std::uint64_t uncounted_gpu_time = 0;

    friend bool operator==(const Amounts&, const Amounts&) = default;
  };
  using Accounts = std::map<Account, Amounts>;

  FairShareUse() = default;
  FairShareUse(base::Instant epoch, base::Instant counted_to, Accounts accounts);

  base::Instant epoch() const { return epoch_; }
  base::Instant counted_to() const { return counted_to_; }
  const Accounts& accounts() const { return accounts_; }
  bool has_uncounted() const { return has_uncounted_; }

  // Returns false if it was there already.
  bool add(const Account& account) { return accounts_.try_emplace(account).second; }
  // Lets whole half-lives pass, so that `at` is less than one after the epoch. Halves the counted
  // usage too: the order is computed anew after it.
  void move_epoch(base::Instant at, base::Duration half_life);
  // Returns true if that would halve anything.
  bool is_past(base::Instant at, base::Duration half_life) const {
    return at >= epoch_ + half_life;
  }
  // Charges `part` of the cluster (2^-32), which has these GPUs, from `from` to `to`, as of `to`,
  // which is not past.
  void charge(const Account& account, std::uint64_t part, base::GpuShare gpus, base::Instant from,
              base::Instant to, base::Duration half_life);
  // Says that everything up to `at` has been charged: from here on it counts.
  void count(base::Instant at, base::Duration half_life);
  // Says that there was no usage since the last count: the next interval begins now.
  void begin_interval(base::Instant at) { counted_to_ = at; }
  // Sets another half-life, from `at` on.
  void change_half_life(base::Instant at, base::Duration from, base::Duration to);
  // Moves accounts of teams that no longer exist to their users.
  void follow(const model::Organisation& organisation);

  friend bool operator==(const FairShareUse&, const FairShareUse&) = default;

 private:
  base::Instant epoch_;
  base::Instant counted_to_;  // running attempts have been charged up to here
  bool has_uncounted_ = false;
  Accounts accounts_;
};

}  // namespace gpu_platform::scheduling
