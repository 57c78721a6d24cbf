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

// A team that the organisation does not have is none.
Account account_of(const model::Organisation& organisation, const model::JobSpec& spec);

// True where the policy's order asks what was used.
bool needs_use(const model::Policy& policy);

// What was used, decayed. All use decays by the same factor, so none of it is touched as time goes
// by: what is charged later counts more instead. Amounts are in the units of the instant `epoch`
// (use of 2^-22 of the cluster for a millisecond); what is charged at t is multiplied by
// 2^((t - epoch) / half_life), and when a half-life has passed all is halved and the epoch goes on.
// Source of the method: the classic decayed use of Slurm's multifactor plugin, without its pass
// over all accounts.
class FairShareUse {
 public:
  struct Amounts {
    std::uint64_t counted = 0;    // what the order goes by
    std::uint64_t uncounted = 0;  // of those who gave back since the last count

    friend bool operator==(const Amounts&, const Amounts&) = default;
  };
  using Accounts = std::map<Account, Amounts>;

  FairShareUse() = default;
  FairShareUse(base::Instant epoch, base::Instant counted_to, Accounts accounts);

  base::Instant epoch() const { return epoch_; }
  base::Instant counted_to() const { return counted_to_; }
  const Accounts& accounts() const { return accounts_; }
  bool has_uncounted() const { return has_uncounted_; }

  // False where it was there already.
  bool add(const Account& account) { return accounts_.try_emplace(account).second; }
  // Lets whole half-lives pass, so that `at` is less than one after the epoch. Halves what is
  // counted too: the order is worked out anew after it.
  void move_epoch(base::Instant at, base::Duration half_life);
  // True when that would halve anything.
  bool is_past(base::Instant at, base::Duration half_life) const {
    return at >= epoch_ + half_life;
  }
  // `part` of the cluster (2^-32) from `from` to `to`, charged as of `to`, which is not past.
  void charge(const Account& account, std::uint64_t part, base::Instant from, base::Instant to,
              base::Duration half_life);
  // Everything up to `at` is charged: from here on it counts.
  void count(base::Instant at, base::Duration half_life);
  // There was no usage since the last count: the next interval begins now.
  void begin_interval(base::Instant at) { counted_to_ = at; }
  // Another half-life, from `at` on.
  void change_half_life(base::Instant at, base::Duration from, base::Duration to);
  // Accounts of teams that are no more become their users'.
  void follow(const model::Organisation& organisation);

  friend bool operator==(const FairShareUse&, const FairShareUse&) = default;

 private:
  base::Instant epoch_;
  base::Instant counted_to_;  // those who hold something are charged up to here
  bool has_uncounted_ = false;
  Accounts accounts_;
};

}  // namespace gpu_platform::scheduling
