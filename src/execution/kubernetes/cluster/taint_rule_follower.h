#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kubernetes/back_off.h"
#include "kubernetes/client.h"
#include "kubernetes/reflector.h"

namespace gpu_platform::execution {

// Follows the DeviceTaintRules of a cluster, in the newest version that its API server has them in.
// A server without them, and an account that may not list them, are as a cluster without rules; the
// latter is said once. Every ten minutes it looks again. An account that loses the right keeps the
// rules that it knew. Thread: the client's.
class TaintRuleFollower {
 public:
  // The client outlives it. Of the handlers, those of lists and objects are called; a cluster
  // without rules is an empty list.
  TaintRuleFollower(kubernetes::Client& client, kubernetes::FollowHandlers handlers,
                    std::function<void(const std::string& line)> warn);

  // Does what is due. Call after each Client::poll(), with the monotonic time in nanoseconds.
  void advance(std::int64_t now_ns);
  // When advance() has something to do although nothing came; 0: nothing.
  std::int64_t due_ns() const;
  // Whether the rules are known, or that there are none to know.
  bool is_listed() const;

 private:
  void ask_version(std::size_t index);
  void ask_right(const std::string& version);
  void follow(const std::string& version);
  void follow_none();
  void look_later(base::Duration pause);

  kubernetes::Client& client_;
  const kubernetes::FollowHandlers handlers_;
  const std::function<void(const std::string& line)> warn_;
  kubernetes::BackOff back_off_;
  std::unique_ptr<kubernetes::Reflector> reflector_;  // null: nothing is followed
  std::string version_;                               // that is followed
  std::int64_t due_ns_ = 1;                           // of the next look; 0: it is under way
  base::Duration pause_;                              // until the next look, from now on
  bool is_without_ = false;                           // it was told that there are none
  bool is_right_missed_ = false;                      // and that was said
};

}  // namespace gpu_platform::execution
