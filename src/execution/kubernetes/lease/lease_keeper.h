#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "execution/kubernetes/lease/lease.h"
#include "kubernetes/client.h"

namespace gpu_platform::execution {

// Renews the lease of the cluster every third of its duration. If another controller has taken it,
// `on_lost` is called, once: this one must not go on. A server that does not answer loses nothing
// by itself, because no other controller can take the lease then either. Thread: the client's.
class LeaseKeeper {
 public:
  LeaseKeeper(kubernetes::Client& client, LeaseTerms terms,
              std::function<void(const base::Error&)> on_lost)
      : client_(client), terms_(std::move(terms)), on_lost_(std::move(on_lost)) {}

  void advance(std::int64_t now_ns);
  std::int64_t due_ns() const { return is_under_way_ || is_lost_ ? 0 : due_ns_; }

 private:
  void read();
  void write(const LeaseState& state, bool is_there);
  void lose(const LeaseState& state);

  kubernetes::Client& client_;
  const LeaseTerms terms_;
  const std::function<void(const base::Error&)> on_lost_;
  std::int64_t due_ns_ = 1;
  bool is_under_way_ = false;
  bool is_lost_ = false;
};

}  // namespace gpu_platform::execution
