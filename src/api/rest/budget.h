#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::api {

// The account that a connection counts for.
struct Holder {
  std::uint32_t account = 0;   // a uid, or kUnknownUsers
  std::string name;            // "user ann", for messages
  bool is_privileged = false;  // root, or the user that the daemon runs as
};

// All users without an account on this machine together, because a user with a user namespace can
// have thousands of uids.
inline constexpr std::uint32_t kUnknownUsers = UINT32_MAX;

// A limited resource: the amount for one user, the amount for all, and a last part that is kept for
// privileged users, who are limited only by the total.
//
// Thread: safe from any. Cost: one uncontended lock and O(log users).
class Budget {
 public:
  struct Limits {
    std::string_view has;         // "has {} connections open"
    std::string_view advice;      // "close some"
    std::string_view key_in_all;  // of the configuration
    std::string_view key_per_user;
    std::uint64_t in_all = 0;
    std::uint64_t per_user = 0;
    std::uint32_t percent_kept = 0;  // of in_all, for privileged users; rounded up
  };
  explicit Budget(const Limits& limits);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Returns kResourceExhausted if the user's own limit is reached, and kUnavailable if the limit of
  // all users is. The message names the limit, its value, the key and what to do.
  base::Status try_take(const Holder& holder, std::uint64_t amount);
  // The same for an amount that exists already and cannot be refused.
  void take(const Holder& holder, std::uint64_t amount);
  void give_back(const Holder& holder, std::uint64_t amount);

  // Checks whether any amount may be taken: for amounts that are known only later.
  base::Status check_capacity(const Holder& holder) const;
  // Calls `wake` once, on the thread that gives something back and so may make room, or at once if
  // there is room. Callers that wait for the limit of one user are called in their order, a few at
  // a time.
  void call_when_less(const Holder& holder, std::function<void()> wake);

  std::uint64_t taken() const;
  // Returns the amount taken by users that are not privileged.
  std::uint64_t taken_by_users() const;

 private:
  using Wakers = std::deque<std::function<void()>>;

  bool is_own_limit_reached(const Holder& holder, std::uint64_t amount) const;
  base::Status judge(const Holder& holder, std::uint64_t amount) const;
  void add(const Holder& holder, std::uint64_t amount);
  static void take_some(Wakers& from, std::vector<std::function<void()>>& into);

  const Limits limits_;
  const std::uint64_t for_users_;  // of in_all
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> by_account_;  // of users that are not privileged
  std::uint64_t of_users_ = 0;
  std::uint64_t of_privileged_ = 0;
  std::map<std::uint32_t, Wakers> waiting_;  // by account; for their own limit; none empty
  Wakers waiting_for_all_;
};

// An amount taken from a budget, given back on destruction. Thread: one owner at a time.
class Lease {
 public:
  Lease() = default;
  Lease(Budget& budget, Holder holder) : budget_(&budget), holder_(std::move(holder)) {}
  Lease(Lease&& other) noexcept
      : budget_(other.budget_),
        holder_(std::move(other.holder_)),
        amount_(std::exchange(other.amount_, 0)) {}
  Lease& operator=(Lease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(holder_, other.holder_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Lease() { become(0); }

  std::uint64_t amount() const { return amount_; }
  // Changes the amount: more must be available; less is given back.
  base::Status try_become(std::uint64_t amount);
  void become(std::uint64_t amount);

 private:
  Budget* budget_ = nullptr;
  Holder holder_;
  std::uint64_t amount_ = 0;
};

// The budgets of one server.
struct BudgetLimits {
  std::uint64_t connections = 4'096;
  std::uint64_t connections_per_user = 512;
  std::uint64_t channels = 1'024;
  std::uint64_t channels_per_user = 128;
  std::uint64_t streams_per_user = 256;
  base::Bytes body_bytes = base::kMiB * 64;
  base::Bytes body_bytes_per_user = base::kMiB * 16;
  base::Bytes answer_bytes = base::kMiB * 128;
  base::Bytes answer_bytes_per_user = base::kMiB * 16;
  std::uint32_t percent_for_root = 10;
};

struct Budgets {
  explicit Budgets(const BudgetLimits& limits);

  Budget connections;
  Budget links;     // those of them that the listener has opened
  Budget channels;  // into running jobs
  Budget streams;   // answers that are held back or go on: long polls, event streams, output
  Budget bodies;    // bytes of requests that are not answered yet
  Budget answers;   // bytes that a client has not taken yet
};

}  // namespace gpu_platform::api
