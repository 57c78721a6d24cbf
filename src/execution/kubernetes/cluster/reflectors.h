#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execution/kubernetes/cluster/taint_rule_follower.h"
#include "kubernetes/client.h"
#include "kubernetes/reflector.h"

namespace gpu_platform::execution {

// All that an engine follows in its cluster, each kind by a reflector of its own. A kind that
// cannot be followed is said to `warn`, and so is the end of that trouble; `warn` may be empty.
// Thread: the client's.
class Reflectors {
 public:
  // The client outlives it.
  Reflectors(kubernetes::Client& client, std::function<void(const std::string& line)> warn);

  // Nothing is asked for before advance(). The handler of troubles is set here.
  void follow(kubernetes::Followed what, kubernetes::FollowHandlers handlers);
  // DeviceTaintRules, which a server need not have (taint_rule_follower.h). At most once.
  void follow_taint_rules(kubernetes::FollowHandlers handlers);

  // Does what is due. Call after each Client::poll(), with the monotonic time in nanoseconds.
  void advance(std::int64_t now_ns);
  // When advance() has something to do although nothing came; 0: nothing.
  std::int64_t due_ns() const;
  // Whether the first list of everything is complete.
  bool are_listed() const;

 private:
  kubernetes::Client& client_;
  const std::function<void(const std::string& line)> warn_;
  std::vector<std::unique_ptr<kubernetes::Reflector>> reflectors_;
  std::optional<TaintRuleFollower> taint_rules_;  // absent: they are not followed
};

}  // namespace gpu_platform::execution
