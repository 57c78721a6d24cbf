#include "scheduling/order/fair_share_ranking.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "scheduling/order/growth.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;
using Place = std::int64_t;

constexpr Place kFirstPlace = -(Place{1} << 62);
constexpr Place kLastPlace = Place{1} << 62;

std::uint64_t part_of(std::uint64_t value, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<std::uint64_t>((Wide{value} << 32) / all);
}

std::uint64_t times(std::uint64_t value, std::uint64_t part) {
  return static_cast<std::uint64_t>(Wide{value} * part >> 32);
}

// 2^(-use / shares) in 1024ths; both are parts of 2^32.
std::uint32_t factor_of(std::uint64_t use, std::uint64_t shares) {
  if (use == 0) return kMaxFactor;
  if (shares == 0) return 0;
  const Wide exponent = (Wide{use} << 32) / shares;
  const Wide halvings = exponent >> 32;
  if (halvings >= 11) return 0;
  const auto rest = static_cast<std::uint64_t>(exponent & (kOne32 - 1));
  const Wide whole = Wide{kMaxFactor} << 32;
  return static_cast<std::uint32_t>((whole >> static_cast<unsigned>(halvings)) /
                                    power_of_two(rest, kOne32));
}

// Returns the longest strictly ascending run of the present places, by index; empty ones are left
// out.
std::vector<std::size_t> longest_ascent(const std::vector<std::optional<Place>>& places) {
  std::vector<std::size_t> tails;  // tails[n]: the smallest end of an ascent of n + 1
  std::vector<std::optional<std::size_t>> before(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    const auto at = std::ranges::lower_bound(tails, *places[i], {},
                                             [&](std::size_t tail) { return *places[tail]; });
    if (at != tails.begin()) before[i] = *std::prev(at);
    if (at == tails.end()) {
      tails.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<std::size_t> ascent;
  if (tails.empty()) return ascent;
  for (std::optional<std::size_t> i = tails.back(); i; i = before[*i]) ascent.push_back(*i);
  std::ranges::reverse(ascent);
  return ascent;
}

// Numbers the groups in ascending order, so that as many as possible keep their numbers.
std::vector<Place> places_of(const std::vector<std::optional<Place>>& former) {
  std::vector<Place> places(former.size());
  std::vector<std::size_t> kept = longest_ascent(former);
  kept.push_back(former.size());
  Place below = kFirstPlace;
  std::size_t next = 0;
  for (const std::size_t stop : kept) {
    const Place above = stop < former.size() ? *former[stop] : kLastPlace;
    const auto gaps = static_cast<Place>(stop - next) + 1;
    // Halves first: the two may be further apart than a Place can say, as the only gap may be.
    const Place step = gaps == 1 ? 0 : (above / 2 - below / 2) / gaps * 2;
    if (step <= 0 && stop > next) {  // no room between these two: all anew
      return places_of(std::vector<std::optional<Place>>(former.size()));
    }
    for (; next < stop; ++next) places[next] = below += step;
    if (stop == former.size()) break;
    below = places[stop] = above;
    next = stop + 1;
  }
  return places;
}

}  // namespace

class RankingBuilder {
 public:
  RankingBuilder(const model::Organisation& organisation, const FairShareUse& use) {
    nodes_.push_back({});
    for (const model::Team& team : organisation.teams) {
      team_index_.emplace(team.name, nodes_.size());
      nodes_.push_back({.team = team.name, .parent_team = team.parent, .shares = team.shares});
    }
    for (const model::Team& team : organisation.teams) {
      for (const model::Member& member : team.members) {
        add_user(team.name, member.user, member.shares);
      }
    }
    for (const auto& [account, amounts] : use.accounts()) {
      Node& node = nodes_[add_user(account.team, account.user, 1)];
      node.use += amounts.counted;
      node.gpu_time += amounts.counted_gpu_time;
    }
    link();
  }

  void build(const FairShareRanking& before, FairShareRanking& out) {
    rank({0});
    measure(0);
    name_places(before, out);
    list(0, 0, out);
  }

 private:
  struct Node {
    std::string_view team;
    std::string_view user;  // empty: a team
    std::string_view parent_team;
    std::uint32_t shares = 1;
    std::uint64_t use = 0;       // of all below
    std::uint64_t gpu_time = 0;  // of all below
    std::vector<std::size_t> children;
    std::uint32_t place = 0;  // of users: how many go before, and one
    std::uint64_t normal_shares = kOne32;
    std::uint64_t effective_use = 0;
  };

  std::size_t index_of_team(std::string_view team) const {
    const auto found = team_index_.find(team);
    return found == team_index_.end() ? 0 : found->second;
  }

  // An account that exists already keeps its shares.
  std::size_t add_user(std::string_view team, std::string_view user, std::uint32_t shares) {
    const std::size_t parent = index_of_team(team);
    if (parent == 0) team = {};
    const auto [place, is_new] = user_index_.try_emplace({parent, user}, nodes_.size());
    if (is_new) {
      nodes_.push_back({.team = team, .user = user, .parent_team = team, .shares = shares});
    }
    return place->second;
  }

  void link() {
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      nodes_[index_of_team(nodes_[i].parent_team)].children.push_back(i);
    }
    sum_use(0);
  }

  void sum_use(std::size_t index) {
    for (const std::size_t child : nodes_[index].children) {
      sum_use(child);
      nodes_[index].use += nodes_[child].use;
      nodes_[index].gpu_time += nodes_[child].gpu_time;
    }
  }

  // Less usage for its shares goes first; users go before teams.
  bool goes_before(std::size_t a, std::size_t b) const {
    const Wide first = Wide{nodes_[a].use} * nodes_[b].shares;
    const Wide second = Wide{nodes_[b].use} * nodes_[a].shares;
    return first < second;
  }

  // The children of all these teams, taken together.
  void rank(const std::vector<std::size_t>& teams) {
    std::vector<std::size_t> children;
    for (const std::size_t team : teams) {
      const auto& own = nodes_[team].children;
      children.insert(children.end(), own.begin(), own.end());
    }
    std::ranges::sort(children, [this](std::size_t a, std::size_t b) {
      if (goes_before(a, b) || goes_before(b, a)) return goes_before(a, b);
      return a < b;
    });
    for (auto first = children.begin(); first != children.end();) {
      const auto last = std::find_if(first, children.end(),
                                     [&](std::size_t other) { return goes_before(*first, other); });
      rank_tied({first, last});
      first = last;
    }
  }

  void rank_tied(const std::vector<std::size_t>& tied) {
    std::vector<std::size_t> users;
    std::vector<std::size_t> teams;
    for (const std::size_t each : tied) {
      (nodes_[each].user.empty() ? teams : users).push_back(each);
    }
    if (!users.empty()) {
      for (const std::size_t user : users) nodes_[user].place = users_ranked_ + 1;
      users_ranked_ += static_cast<std::uint32_t>(users.size());
      groups_.push_back(std::move(users));
    }
    if (!teams.empty()) rank(teams);
  }

  // Computes the normalised shares and the effective use of all accounts below. The use of the
  // first level is taken as it is: only what siblings of one team used is shared among them.
  void measure(std::size_t index) {
    const Node& parent = nodes_[index];
    const bool is_root = index == 0;
    if (is_root) nodes_[0].effective_use = parent.use == 0 ? 0 : kOne32;
    std::uint64_t all_shares = 0;
    for (const std::size_t child : parent.children) all_shares += nodes_[child].shares;
    for (const std::size_t child : parent.children) {
      Node& node = nodes_[child];
      const std::uint64_t part = part_of(node.shares, all_shares);
      const std::uint64_t use = part_of(node.use, nodes_[0].use);
      node.normal_shares = times(parent.normal_shares, part);
      const std::uint64_t of_others = parent.effective_use - std::min(use, parent.effective_use);
      node.effective_use = use + (is_root ? 0 : times(of_others, part));
      measure(child);
    }
  }

  void name_places(const FairShareRanking& before, FairShareRanking& out) const {
    std::vector<std::optional<Place>> former;
    for (const auto& group : groups_) former.push_back(former_place(group, before));
    const std::vector<Place> places = places_of(former);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (const std::size_t user : groups_[i]) {
        const Node& node = nodes_[user];
        out.ranks_.emplace(
            Account{std::string(node.team), std::string(node.user)},
            FairShareRank{places[i], factor_of(node.effective_use, node.normal_shares)});
      }
    }
  }

  std::optional<Place> former_place(const std::vector<std::size_t>& group,
                                    const FairShareRanking& before) const {
    for (const std::size_t user : group) {
      const auto found = before.ranks_.find(nodes_[user]);
      if (found != before.ranks_.end()) return found->second.place;
    }
    return std::nullopt;
  }

  void list(std::size_t index, std::uint32_t depth, FairShareRanking& out) const {
    const Node& node = nodes_[index];
    out.rows_.push_back({.team = std::string(node.team),
                         .user = std::string(node.user),
                         .parent = std::string(node.parent_team),
                         .depth = depth,
                         .shares = node.shares,
                         .normal_shares = node.normal_shares,
                         .use = part_of(node.use, nodes_[0].use),
                         .gpu_time = node.gpu_time,
                         .effective_use = node.effective_use,
                         .factor = factor_of(node.effective_use, node.normal_shares),
                         .place = node.place});
    for (const std::size_t child : node.children) list(child, depth + 1, out);
  }

  std::vector<Node> nodes_;  // the organisation first
  std::map<std::string_view, std::size_t> team_index_;
  std::map<std::pair<std::size_t, std::string_view>, std::size_t> user_index_;
  std::vector<std::vector<std::size_t>> groups_;  // tied users, in the order of the walk
  std::uint32_t users_ranked_ = 0;
};

FairShareRanking::FairShareRanking(const model::Organisation& organisation, const FairShareUse& use,
                                   const FairShareRanking& before) {
  RankingBuilder(organisation, use).build(before, *this);
}

FairShareRank FairShareRanking::of(std::string_view team, std::string_view user) const {
  struct View {
    std::string_view team;
    std::string_view user;
  };
  auto found = ranks_.find(View{team, user});
  if (found == ranks_.end()) found = ranks_.find(View{{}, user});
  return found == ranks_.end() ? FairShareRank{} : found->second;
}

bool FairShareRanking::is_kept_by(const FairShareRanking& later) const {
  return std::ranges::all_of(ranks_, [&](const auto& entry) {
    const auto found = later.ranks_.find(entry.first);
    return found != later.ranks_.end() && found->second == entry.second;
  });
}

}  // namespace gpu_platform::scheduling
