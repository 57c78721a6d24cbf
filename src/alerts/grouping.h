#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "alerts/alert.h"
#include "base/units.h"

namespace gpu_platform::alerts {

// Joins what is to be told into few messages. The failure of a rack or a node is one message: news
// of a group wait for others of it for `wait`, and after a message of the group for `interval`. The
// end of all alerts of a group that a channel was told of does not wait for the interval, but for
// `wait` after the last of them. An alert that comes and goes is thus told at most twice in an
// interval: that it fires, and that it is over.
//
// Where many groups have news at a time, they are one message with counts: in one interval a
// channel gets at most `max_messages` messages of single groups, and one of many; and one more when
// all that it was told of is over.
//
// Channels that are told at once have no waits and no limits. Those of owners have no messages of
// many groups: each user has one.
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
  // Channels that are not named are kGrouped.
  using Manners = std::map<std::string, Manner, std::less<>>;

  Grouping(Limits limits, Manners manners) : limits_(limits), manners_(std::move(manners)) {}
  void set(Limits limits, Manners manners);

  // The channel is to be told the alert as it is now: that it fires, or that it is over.
  void add(const std::string& channel, const Alert& alert, base::Instant steady);
  // The channel was told before a restart that the alert fires.
  void note_told(const std::string& channel, const Alert& alert);
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
    base::Instant latest;               // the last of them
    std::optional<base::Instant> sent;
    std::size_t open = 0;  // alerts that the channel was told of, and not yet that they are over
  };
  struct Channel {
    std::map<std::string, Group> groups;      // by name
    std::map<std::string, std::string> open;  // the name of the group, by fingerprint
    std::deque<base::Instant> singles;        // messages of single groups in the last interval
    std::optional<base::Instant> sent_many;
  };
  using Entry = std::pair<const std::string, Group>;

  Manner manner_of(const std::string& channel) const;
  std::string group_of(const std::string& name, const Channel& channel, const Alert& alert) const;
  static bool is_over(const Channel& channel, const Group& group);
  static bool is_all_over(const Channel& channel);
  base::Instant due_at(Manner manner, const Channel& channel, const Group& group) const;
  void send(const std::string& name, Channel& channel, base::Instant steady,
            std::vector<Message>& out);
  // Moves the news of these groups out; they count as told.
  static std::vector<Alert> take(Channel& channel, const std::vector<Entry*>& groups,
                                 base::Instant steady);
  Message message_of(const std::string& channel, const std::string& group,
                     std::vector<Alert> news) const;

  Limits limits_;
  Manners manners_;
  std::map<std::string, Channel> channels_;
};

// "rack r2", "node dgx-1", "rule JobsWaitLong"; of owners: "user ann".
std::string group_of(const Alert& alert, Manner manner);

}  // namespace gpu_platform::alerts
