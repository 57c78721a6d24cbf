#include "alerts/grouping.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace gpu_platform::alerts {

namespace {

constexpr std::string_view kManyPlaces = "many places";

bool is_resolved(const Alert& alert) {
  return alert.state == State::kResolved;
}

Manner manner_in(const Grouping::Manners& manners, const std::string& channel) {
  const auto found = manners.find(channel);
  return found == manners.end() ? Manner::kGrouped : found->second;
}

std::string user_of(const Alert& alert) {
  const auto found = alert.labels.find("user");
  return found == alert.labels.end() ? std::string() : found->second;
}

// The same news have the same key, in whatever order they came.
std::string key_of(const std::string& channel, const std::vector<Alert>& news) {
  std::string text = channel;
  for (const Alert& alert : news) {
    text += fmt::format("\n{} {} {} {}", alert.fingerprint, alert.fired.unix_ns(),
                        alert.resolved.unix_ns(), is_resolved(alert) ? 0 : alert.value.value_or(0));
  }
  return fmt::format("{:016x}", base::hash64(text));
}

}  // namespace

std::string group_of(const Alert& alert, Manner manner) {
  if (manner == Manner::kByOwner) return "user " + user_of(alert);
  for (const std::string_view name : {"rack", "node"}) {
    const auto found = alert.labels.find(name);
    if (found != alert.labels.end() && !found->second.empty()) {
      return fmt::format("{} {}", name, found->second);
    }
  }
  return "rule " + alert.rule;
}

void Grouping::set(Limits limits, Manners manners) {
  const Manners before = std::exchange(manners_, std::move(manners));
  limits_ = limits;
  for (auto& [name, channel] : channels_) {
    if (manner_in(before, name) == manner_of(name)) continue;
    // Its groups are others now.
    const Channel former = std::exchange(channel, {});
    for (const auto& [group_name, group] : former.groups) {
      for (const auto& [fingerprint, alert] : group.news) add(name, alert, group.since);
    }
  }
}

Manner Grouping::manner_of(const std::string& channel) const {
  return manner_in(manners_, channel);
}

// Labels may change while an alert fires: its end belongs to the group of its begin. A message to
// an owner never has an alert of another.
std::string Grouping::group_of(const std::string& name, const Channel& channel,
                               const Alert& alert) const {
  const Manner manner = manner_of(name);
  const auto open = channel.open.find(alert.fingerprint);
  const bool is_known = open != channel.open.end() && manner != Manner::kByOwner;
  return is_known ? open->second : alerts::group_of(alert, manner);
}

void Grouping::add(const std::string& channel, const Alert& alert, base::Instant steady) {
  Channel& told = channels_[channel];
  Group& group = told.groups[group_of(channel, told, alert)];
  if (group.news.empty()) group.since = steady;
  group.latest = steady;
  group.news.insert_or_assign(alert.fingerprint, alert);
}

void Grouping::note_told(const std::string& channel, const Alert& alert) {
  Channel& told = channels_[channel];
  const std::string group = group_of(channel, told, alert);
  if (told.open.emplace(alert.fingerprint, group).second) ++told.groups[group].open;
}

bool Grouping::take_back(const std::string& channel, const std::string& fingerprint) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return false;
  bool has_been = false;
  for (auto& [name, group] : found->second.groups) has_been |= group.news.erase(fingerprint) > 0;
  return has_been;
}

void Grouping::keep_channels(const std::vector<std::string>& channels) {
  std::erase_if(channels_, [&](const auto& entry) {
    return std::ranges::find(channels, entry.first) == channels.end();
  });
}

// Whether the channel was told of alerts of the group, and the news say that all of them are over.
// The end of one that it was not told of is no reason for a message by itself.
bool Grouping::is_over(const Channel& channel, const Group& group) {
  if (group.open == 0 || group.news.size() < group.open) return false;
  std::size_t ended = 0;
  for (const auto& [fingerprint, alert] : group.news) {
    if (!is_resolved(alert)) return false;
    ended += channel.open.contains(fingerprint) ? 1 : 0;
  }
  return ended == group.open;
}

bool Grouping::is_all_over(const Channel& channel) {
  return std::ranges::all_of(channel.groups, [&](const auto& entry) {
    return entry.second.open == 0 || is_over(channel, entry.second);
  });
}

base::Instant Grouping::due_at(Manner manner, const Channel& channel, const Group& group) const {
  if (manner == Manner::kAtOnce) return group.since;
  const base::Instant waited = group.since + limits_.wait;
  if (!group.sent) return waited;
  const base::Instant next = std::max(waited, *group.sent + limits_.interval);
  return is_over(channel, group) ? std::min(next, group.latest + limits_.wait) : next;
}

std::vector<Grouping::Message> Grouping::due(base::Instant steady) {
  std::vector<Message> out;
  for (auto& [name, channel] : channels_) send(name, channel, steady, out);
  return out;
}

void Grouping::send(const std::string& name, Channel& channel, base::Instant steady,
                    std::vector<Message>& out) {
  const Manner manner = manner_of(name);
  const auto is_past = [&](base::Instant sent) { return sent + limits_.interval <= steady; };
  std::erase_if(channel.singles, is_past);
  // A group without news is remembered for as long as it is to wait, or has open alerts.
  std::erase_if(channel.groups, [&](const auto& entry) {
    const Group& group = entry.second;
    return group.news.empty() && group.open == 0 && (!group.sent || is_past(*group.sent));
  });
  std::vector<Entry*> ready;
  for (Entry& entry : channel.groups) {
    const Group& group = entry.second;
    if (!group.news.empty() && due_at(manner, channel, group) <= steady) ready.push_back(&entry);
  }
  if (ready.empty()) return;
  const std::string many(ready.size() == 1 ? std::string_view(ready.front()->first) : kManyPlaces);
  if (manner == Manner::kAtOnce) {
    const std::vector<Alert> news = take(channel, ready, steady);
    const auto size = static_cast<std::ptrdiff_t>(limits_.max_alerts);
    for (auto part = news.begin(); part != news.end();) {
      const auto end = part + std::min(size, news.end() - part);
      out.push_back(message_of(name, many, std::vector<Alert>(part, end)));
      part = end;
    }
    return;
  }
  const bool are_few = channel.singles.size() + ready.size() <= limits_.max_messages;
  if (manner == Manner::kByOwner || are_few) {
    for (Entry* const entry : ready) {
      channel.singles.push_back(steady);
      out.push_back(message_of(name, entry->first, take(channel, {entry}, steady)));
    }
    return;
  }
  const bool is_soon = channel.sent_many && !is_past(*channel.sent_many);
  if (is_soon && !is_all_over(channel)) return;
  channel.sent_many = steady;
  out.push_back(message_of(name, many, take(channel, ready, steady)));
}

std::vector<Alert> Grouping::take(Channel& channel, const std::vector<Entry*>& groups,
                                  base::Instant steady) {
  std::vector<Alert> news;
  for (Entry* const entry : groups) {
    Group& group = entry->second;
    for (auto& [fingerprint, alert] : group.news) {
      const auto open = channel.open.find(fingerprint);
      const bool is_open = open != channel.open.end();
      if (is_resolved(alert) && is_open) {
        --channel.groups.at(open->second).open;
        channel.open.erase(open);
      } else if (!is_resolved(alert) && !is_open) {
        channel.open.emplace(fingerprint, entry->first);
        ++group.open;
      }
      news.push_back(std::move(alert));
    }
    group.news.clear();
    group.sent = steady;
  }
  return news;
}

Grouping::Message Grouping::message_of(const std::string& channel, const std::string& group,
                                       std::vector<Alert> news) const {
  Message message;
  message.notification.channel = channel;
  message.notification.group = group;
  std::ranges::sort(news, {}, &Alert::fingerprint);
  message.notification.key = key_of(channel, news);
  // The worst first; equal ones by time and id, so that the message is the same each time.
  std::ranges::stable_sort(news, [](const Alert& a, const Alert& b) {
    return std::tuple(is_resolved(a), -static_cast<int>(a.severity), a.fired, a.fingerprint) <
           std::tuple(is_resolved(b), -static_cast<int>(b.severity), b.fired, b.fingerprint);
  });
  for (const Alert& alert : news) {
    Notification& told = message.notification;
    if (told.firing.size() + told.resolved.size() >= limits_.max_alerts) {
      ++told.more;
    } else {
      (is_resolved(alert) ? told.resolved : told.firing).push_back(alert);
    }
  }
  if (manner_of(channel) == Manner::kByOwner) {
    message.notification.user = user_of(news.front());
  }
  message.all = std::move(news);
  return message;
}

std::optional<base::Instant> Grouping::next() const {
  std::optional<base::Instant> earliest;
  for (const auto& [name, channel] : channels_) {
    for (const auto& [group_name, group] : channel.groups) {
      if (group.news.empty()) continue;
      const base::Instant at = due_at(manner_of(name), channel, group);
      if (!earliest || at < *earliest) earliest = at;
    }
  }
  return earliest;
}

}  // namespace gpu_platform::alerts
