#include "alerts/grouping.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace gpu_platform::alerts {

namespace {

constexpr std::string_view kManyPlaces = "many places";

bool is_over(const Alert& alert) {
  return alert.state == State::kResolved;
}

// The same news have the same key, in whatever order they came.
std::string key_of(const std::string& channel, const std::vector<Alert>& news) {
  std::string text = channel;
  for (const Alert& alert : news) {
    text += fmt::format("\n{} {} {} {}", alert.fingerprint, alert.fired.unix_ns(),
                        alert.resolved.unix_ns(), is_over(alert) ? 0 : alert.value.value_or(0));
  }
  return fmt::format("{:016x}", base::hash64(text));
}

}  // namespace

std::string group_of(const Alert& alert) {
  for (const std::string_view name : {"rack", "node"}) {
    const auto found = alert.labels.find(name);
    if (found != alert.labels.end() && !found->second.empty()) {
      return fmt::format("{} {}", name, found->second);
    }
  }
  return "rule " + alert.rule;
}

void Grouping::add(const std::string& channel, const Alert& alert, base::Instant steady) {
  Group& group = channels_[channel].groups[group_of(alert)];
  if (group.news.empty()) group.since = steady;
  group.news.insert_or_assign(alert.fingerprint, alert);
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

base::Instant Grouping::due_at(const Group& group) const {
  const base::Instant waited = group.since + limits_.wait;
  return group.sent ? std::max(waited, *group.sent + limits_.interval) : waited;
}

std::vector<Grouping::Message> Grouping::due(base::Instant steady) {
  std::vector<Message> out;
  for (auto& [name, channel] : channels_) send(name, channel, steady, out);
  return out;
}

void Grouping::send(const std::string& name, Channel& channel, base::Instant steady,
                    std::vector<Message>& out) {
  const auto is_past = [&](base::Instant sent) { return sent + limits_.interval <= steady; };
  std::erase_if(channel.singles, is_past);
  // A group without news is remembered for as long as it is to wait.
  std::erase_if(channel.groups, [&](const auto& entry) {
    return entry.second.news.empty() && (!entry.second.sent || is_past(*entry.second.sent));
  });
  std::vector<std::pair<const std::string, Group>*> ready;
  for (auto& entry : channel.groups) {
    if (!entry.second.news.empty() && due_at(entry.second) <= steady) ready.push_back(&entry);
  }
  if (ready.empty()) return;
  const auto take = [&](Group& group, std::vector<Alert>& news) {
    for (auto& [fingerprint, alert] : group.news) news.push_back(std::move(alert));
    group.news.clear();
    group.sent = steady;
  };
  if (channel.singles.size() + ready.size() <= limits_.max_messages) {
    for (auto* const entry : ready) {
      std::vector<Alert> news;
      take(entry->second, news);
      channel.singles.push_back(steady);
      out.push_back(message_of(name, entry->first, std::move(news)));
    }
    return;
  }
  if (channel.sent_many && !is_past(*channel.sent_many)) return;
  std::vector<Alert> news;
  for (auto* const entry : ready) take(entry->second, news);
  channel.sent_many = steady;
  out.push_back(message_of(name, std::string(kManyPlaces), std::move(news)));
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
    return std::tuple(is_over(a), -static_cast<int>(a.severity), a.fired, a.fingerprint) <
           std::tuple(is_over(b), -static_cast<int>(b.severity), b.fired, b.fingerprint);
  });
  for (const Alert& alert : news) {
    Notification& told = message.notification;
    if (told.firing.size() + told.resolved.size() >= limits_.max_alerts) {
      ++told.more;
    } else {
      (is_over(alert) ? told.resolved : told.firing).push_back(alert);
    }
  }
  message.all = std::move(news);
  return message;
}

std::optional<base::Instant> Grouping::next() const {
  std::optional<base::Instant> earliest;
  for (const auto& [name, channel] : channels_) {
    for (const auto& [group_name, group] : channel.groups) {
      if (group.news.empty()) continue;
      const base::Instant at = due_at(group);
      if (!earliest || at < *earliest) earliest = at;
    }
  }
  return earliest;
}

}  // namespace gpu_platform::alerts
