#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "alerts/alert.h"
#include "base/units.h"

namespace gpu_platform::alerts {

// Joins what is to be told into few messages. The failure of a rack or a node is one message: news
// of a group wait for others of it for `wait`, and after a message of the group for `interval`.
// Where many groups have news at a time, they are one message with counts: in one interval a
// channel gets at most `max_messages` messages of single groups, and one of many.
//
// Times are on the steady clock. Nothing here is kept over a restart: who was told is in the alert.
class Grouping {
 public:
  struct Limits {
    base::Duration wait = base::seconds(5);
    base::Duration interval = base::minutes(5);
    std::size_t max_messages = 10;  // of single groups
    std::size_t max_alerts = 50;    // in a message; the others are counted

    friend bool operator==(const Limits&, const Limits&) = default;
  };
  explicit Grouping(Limits limits) : limits_(limits) {}
  void set_limits(Limits limits) { limits_ = limits; }

  // The channel is to be told the alert as it is now: that it fires, or that it is over.
  void add(const std::string& channel, const Alert& alert, base::Instant steady);
  // The channel is not told it any more. Returns whether it would have been.
  bool take_back(const std::string& channel, const std::string& fingerprint);
  // Channels that are gone.
  void keep_channels(const std::vector<std::string>& channels);

  struct Message {
    Notification notification;
    std::vector<Alert> all;  // those that are only counted, too
  };
  // What is to be sent now.
  std::vector<Message> due(base::Instant steady);
  // When something is due at the earliest; none: nothing waits.
  std::optional<base::Instant> next() const;

 private:
  struct Group {
    std::map<std::string, Alert> news;  // by fingerprint
    base::Instant since;                // the first of the news came; if there are any
    std::optional<base::Instant> sent;
  };
  struct Channel {
    std::map<std::string, Group> groups;  // by name
    std::deque<base::Instant> singles;    // messages of single groups in the last interval
    std::optional<base::Instant> sent_many;
  };
  base::Instant due_at(const Group& group) const;
  void send(const std::string& name, Channel& channel, base::Instant steady,
            std::vector<Message>& out);
  Message message_of(const std::string& channel, const std::string& group,
                     std::vector<Alert> news) const;

  Limits limits_;
  std::map<std::string, Channel> channels_;
};

// "rack r2", "node dgx-1", "rule JobsWaitLong".
std::string group_of(const Alert& alert);

}  // namespace gpu_platform::alerts
