#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/identity.h"

namespace gpu_platform::node {

// Looks up users: numbers and groups as this host's user database has them (files, LDAP and the
// like). It uses getent(1), because a static program cannot load a name service's modules. Each
// lookup is a process of its own with a deadline: a directory that does not answer delays the jobs
// of that user and nothing else. Answers are kept for a minute.
//
// Without root a job runs as the launcher's own user, and nothing is asked.
class Identities {
 public:
  explicit Identities(IdentityRules rules) : rules_(std::move(rules)) {}
  ~Identities();
  Identities(const Identities&) = delete;
  Identities& operator=(const Identities&) = delete;

  struct Answer {
    enum class Kind { kKnown, kRefused, kLater };
    Kind kind = Kind::kLater;  // kLater: is being asked for; look again after work()
    Identity user;
    std::string why;  // kRefused
  };
  // `now_ms`: of a steady clock, here and below.
  Answer find(std::uint32_t uid, std::int64_t now_ms);

  // The descriptors to wait for, and the longest time to wait (-1: for ever).
  void watch(std::vector<pollfd>& handles) const;
  int timeout_ms(std::int64_t now_ms) const;
  // Returns true if a lookup has an answer now.
  bool work(std::int64_t now_ms);

 private:
  struct Entry {
    Identity user;
    std::string why;            // refused for this
    std::int64_t until_ms = 0;  // of the answer, or when asking is given up
    int pipe = -1;              // what getent says; -1: it is not being asked
    int pidfd = -1;
    bool asks_for_groups = false;  // the second question
    std::string said;
  };

  bool ask(Entry& entry, const char* database, const std::string& key);
  void read_from(Entry& entry);
  void take_account(std::uint32_t uid, Entry& entry);
  void take_groups(Entry& entry);
  void conclude(Entry& entry, std::string why);
  void hang_up(Entry& entry);

  const IdentityRules rules_;
  std::map<std::uint32_t, Entry> entries_;
  std::size_t asked_ = 0;  // entries with a pipe
  std::int64_t now_ms_ = 0;
};

}  // namespace gpu_platform::node
