#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/team.h"
#include "scheduling/order/fair_share_use.h"

namespace gpu_platform::scheduling {

inline constexpr std::uint32_t kMaxFactor = 1024;

// The account as the order of jobs sees it.
struct FairShareRank {
  std::int64_t place = 0;             // the smaller goes first; the numbers mean nothing else
  std::uint32_t factor = kMaxFactor;  // 2^(-use / shares) in 1024ths

  friend bool operator==(const FairShareRank&, const FairShareRank&) = default;
};

// One row of the tree, as people see it. Parts are of 2^32.
struct ShareRow {
  std::string team;  // empty: for a user without a team, and for the organisation itself
  std::string user;  // empty: the team as a whole
  std::string parent;
  std::uint32_t depth = 0;
  std::uint32_t shares = 1;
  std::uint64_t normal_shares = 0;  // part of the whole that the shares come to
  std::uint64_t use = 0;            // part of all use
  std::uint64_t gpu_time = 0;       // of GPUs, as FairShareUse keeps it: as of its epoch
  // The same; below the first level with a share of what others of its team used.
  std::uint64_t effective_use = 0;
  std::uint32_t factor = kMaxFactor;
  std::uint32_t place = 0;  // of users, from 1; tied users have the same

  friend bool operator==(const ShareRow&, const ShareRow&) = default;
};

// The order of accounts by their usage relative to their shares, computed from counted usage by a
// walk through the organisation. At each level the child with the least usage for its shares goes
// first; the children of teams that tie are taken together, and users go before teams that they tie
// with.
// Source: R. Cox and L. Morrison, Fair Tree, Slurm User Group 2014.
//
// Immutable once built. Cost of building: O(accounts log accounts).
class FairShareRanking {
 public:
  FairShareRanking() = default;
  // Accounts that keep their order keep their places of `before`, so that only an account that was
  // passed, or passes another, gets a new place.
  FairShareRanking(const model::Organisation& organisation, const FairShareUse& use,
                   const FairShareRanking& before);

  // Returns the rank of a job's account; a team that is no account of the user's counts as
  // none.
  FairShareRank of(std::string_view team, std::string_view user) const;
  // Returns true if every account of this ranking has the same rank in `later`.
  bool is_kept_by(const FairShareRanking& later) const;
  // Returns the rows in the order of the tree: a team before what is below it.
  const std::vector<ShareRow>& rows() const { return rows_; }

  friend bool operator==(const FairShareRanking&, const FairShareRanking&) = default;

 private:
  friend class RankingBuilder;
  struct Less {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      const int team = std::string_view(a.team).compare(b.team);
      return team != 0 ? team < 0 : std::string_view(a.user) < std::string_view(b.user);
    }
  };
  std::map<Account, FairShareRank, Less> ranks_;
  std::vector<ShareRow> rows_;
};

}  // namespace gpu_platform::scheduling
