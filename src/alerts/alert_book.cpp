#include "alerts/alert_book.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "alerts/alert_codec.h"

namespace gpu_platform::alerts {

namespace {

constexpr std::string_view kAlertNotes = "alert/";
constexpr std::string_view kSilenceNotes = "silence/";

std::string alert_note(const Alert& alert) {
  return fmt::format("{}{}", kAlertNotes, alert.fingerprint);
}
// Of one that is over: another may fire meanwhile.
std::string resolved_note(const Alert& alert) {
  return fmt::format("{}{}.{}", kAlertNotes, alert.fingerprint, alert.resolved.unix_ns());
}
std::string silence_note(std::uint64_t id) {
  return fmt::format("{}{}", kSilenceNotes, id);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

AlertBook::AlertBook(Settings settings)
    : settings_(std::move(settings)),
      evaluator_(settings_.rules),
      grouping_(settings_.limits, settings_.manners) {}

std::size_t AlertBook::restore(std::span<const Note> notes, Moment now) {
  std::size_t damaged = 0;
  for (const Note& note : notes) {
    if (!note.bytes) continue;
    if (note.name.starts_with(kSilenceNotes)) {
      const auto silence = decode_silence(*note.bytes);
      if (!silence) {
        ++damaged;
        continue;
      }
      next_silence_ = std::max(next_silence_, silence->id + 1);
      silences_.insert_or_assign(silence->id, *silence);
    } else if (note.name.starts_with(kAlertNotes)) {
      auto tracked = decode_tracked(*note.bytes);
      if (!tracked) {
        ++damaged;
      } else if (tracked->alert.state == State::kResolved) {
        recent_.push_back(std::move(tracked->alert));
      } else {
        evaluator_.restore(*std::move(tracked));
      }
    }
  }
  std::ranges::stable_sort(recent_, std::greater<>(), &Alert::resolved);
  evaluator_.for_each([&](const Tracked& tracked) {
    for (const std::string& channel : tracked.alert.told) {
      grouping_.note_told(channel, tracked.alert);
    }
  });
  // The newest last: of several ends of one alert it counts.
  for (const Alert& alert : recent_ | std::views::reverse) {
    for (const std::string& channel : alert.told) grouping_.add(channel, alert, now.steady);
  }
  look_for_untold(now);
  return damaged;
}

std::vector<AlertBook::Note> AlertBook::take_changes() {
  std::vector<Note> changes;
  for (auto& [name, note] : std::exchange(changes_, {})) changes.push_back(std::move(note));
  return changes;
}

void AlertBook::set(Settings settings, Moment now) {
  settings_ = std::move(settings);
  grouping_.set(settings_.limits, settings_.manners);
  grouping_.keep_channels(settings_.channels);
  handle(evaluator_.set_rules(settings_.rules, now), now);
  look_for_untold(now);
}

void AlertBook::take(const std::string& source, std::span<const Fact> facts, Moment now) {
  handle(evaluator_.take(source, facts, now), now);
}

void AlertBook::forget(const std::string& source, Moment now) {
  handle(evaluator_.forget(source, now), now);
}

void AlertBook::handle(Evaluator::Transitions transitions, Moment now) {
  for (Transition& each : transitions) {
    switch (each.turn) {
      case Turn::kPending:
        if (const Tracked* const tracked = evaluator_.find(each.alert.fingerprint)) note(*tracked);
        break;
      case Turn::kFired:
      case Turn::kGrew:
        tell_firing(each.alert, now);
        if (const Tracked* const tracked = evaluator_.find(each.alert.fingerprint)) note(*tracked);
        break;
      case Turn::kResolved:
        remember(std::move(each.alert), now);
        break;
      case Turn::kDropped:
        changes_.insert_or_assign(alert_note(each.alert),
                                  Note{alert_note(each.alert), std::nullopt});
        break;
    }
  }
}

// Those that were told that it fires are told the end, also during a silence: what they opened for
// it can be closed. What was not told yet is told as over.
void AlertBook::remember(Alert alert, Moment now) {
  for (const std::string& channel : settings_.channels) {
    const bool waits = grouping_.take_back(channel, alert.fingerprint);
    if (waits || contains(alert.told, channel)) grouping_.add(channel, alert, now.steady);
    if (waits && !contains(alert.told, channel)) alert.told.push_back(channel);
  }
  std::erase_if(alert.told,
                [&](const std::string& channel) { return !contains(settings_.channels, channel); });
  std::ranges::sort(alert.told);
  changes_.insert_or_assign(alert_note(alert), Note{alert_note(alert), std::nullopt});
  note(alert);
  recent_.push_front(std::move(alert));
  while (recent_.size() > kMaxRecent) drop_oldest();
}

void AlertBook::drop_oldest() {
  const std::string name = resolved_note(recent_.back());
  changes_.insert_or_assign(name, Note{name, std::nullopt});
  recent_.pop_back();
}

void AlertBook::tell_firing(const Alert& alert, Moment now) {
  if (silence_of(alert, now.at) != 0) return;
  for (const std::string& channel : channels_of(alert)) grouping_.add(channel, alert, now.steady);
}

std::vector<std::string> AlertBook::channels_of(const Alert& alert) const {
  std::vector<std::string> channels = channels_for(alert, settings_.routes, settings_.channels);
  std::erase_if(channels, [&](const std::string& channel) {
    const auto manner = settings_.manners.find(channel);
    const bool is_for_owners =
        manner != settings_.manners.end() && manner->second == Manner::kByOwner;
    return !contains(settings_.channels, channel) ||
           (is_for_owners && !alert.labels.contains("user"));
  });
  return channels;
}

// After a restart, a reload or the end of a silence.
void AlertBook::look_for_untold(Moment now) {
  evaluator_.for_each([&](const Tracked& tracked) {
    const Alert& alert = tracked.alert;
    if (alert.state != State::kFiring || silence_of(alert, now.at) != 0) return;
    for (const std::string& channel : channels_of(alert)) {
      if (!contains(alert.told, channel)) grouping_.add(channel, alert, now.steady);
    }
  });
}

std::vector<Notification> AlertBook::due(Moment now) {
  const bool has_ended = std::erase_if(silences_, [&](const auto& entry) {
                           if (!is_over(entry.second, now.at)) return false;
                           const std::string name = silence_note(entry.first);
                           changes_.insert_or_assign(name, Note{name, std::nullopt});
                           return true;
                         }) > 0;
  if (has_ended) look_for_untold(now);
  while (!recent_.empty() && recent_.back().resolved + kRecent < now.at) drop_oldest();
  std::vector<Notification> out;
  repeat(now, out);
  for (Grouping::Message& message : grouping_.due(now.steady)) {
    for (const Alert& alert : message.all) mark_told(message.notification.channel, alert);
    out.push_back(std::move(message.notification));
  }
  return out;
}

// Also during a silence: the channel would take it for over.
void AlertBook::repeat(Moment now, std::vector<Notification>& out) {
  if (repeated_ && now.steady - *repeated_ < kRepeatEvery) return;
  repeated_ = now.steady;
  for (const auto& [channel, manner] : settings_.manners) {
    if (manner != Manner::kAtOnce) continue;
    std::size_t room = 0;
    evaluator_.for_each([&](const Tracked& tracked) {
      const Alert& alert = tracked.alert;
      if (alert.state != State::kFiring || !contains(alert.told, channel)) return;
      if (room == 0) {
        room = settings_.limits.max_alerts;
        Notification& next = out.emplace_back();
        next.channel = channel;
        next.group = "what fires";
        next.key = fmt::format("{}.{}", alert.fingerprint, now.at.unix_ns());
        next.is_repeated = true;
      }
      out.back().firing.push_back(alert);
      --room;
    });
  }
}

// What is told last counts: ends of earlier firings that waited meanwhile are not told any more.
void AlertBook::mark_told(const std::string& channel, const Alert& alert) {
  for (Alert& each : recent_) {
    if (each.fingerprint == alert.fingerprint && std::erase(each.told, channel) > 0) note(each);
  }
  if (alert.state == State::kResolved) return;
  Tracked* const tracked = evaluator_.find(alert.fingerprint);
  if (tracked == nullptr) return;
  std::vector<std::string>& told = tracked->alert.told;
  if (!contains(told, channel)) told.insert(std::ranges::upper_bound(told, channel), channel);
  note(*tracked);
}

std::optional<base::Instant> AlertBook::next() const {
  return grouping_.next();
}

void AlertBook::note(const Tracked& tracked) {
  const std::string name = alert_note(tracked.alert);
  changes_.insert_or_assign(name, Note{name, encode(tracked)});
}

void AlertBook::note(const Alert& resolved) {
  const std::string name = resolved_note(resolved);
  Tracked tracked;
  tracked.alert = resolved;
  changes_.insert_or_assign(name, Note{name, encode(tracked)});
}

std::uint64_t AlertBook::silence_of(const Alert& alert, base::Instant now) const {
  for (const auto& [id, silence] : silences_) {
    if (alerts::silences(silence, alert, now)) return id;
  }
  return 0;
}

Alert AlertBook::shown(const Alert& alert, base::Instant now) const {
  Alert copy = alert;
  copy.silence = alert.state == State::kResolved ? 0 : silence_of(alert, now);
  return copy;
}

std::vector<Alert> AlertBook::alerts(base::Instant now) const {
  std::vector<Alert> all;
  evaluator_.for_each([&](const Tracked& tracked) { all.push_back(shown(tracked.alert, now)); });
  std::ranges::stable_sort(all, [](const Alert& a, const Alert& b) {
    if (a.state != b.state) return a.state == State::kFiring;
    if (a.severity != b.severity) return a.severity > b.severity;
    if (a.since != b.since) return a.since > b.since;
    return a.fingerprint < b.fingerprint;
  });
  for (const Alert& alert : recent_) all.push_back(shown(alert, now));
  return all;
}

std::optional<Alert> AlertBook::find(const std::string& fingerprint, base::Instant now) const {
  if (const Tracked* const tracked = evaluator_.find(fingerprint)) {
    return shown(tracked->alert, now);
  }
  const auto known = std::ranges::find(recent_, fingerprint, &Alert::fingerprint);
  return known == recent_.end() ? std::nullopt : std::optional(shown(*known, now));
}

std::vector<Silence> AlertBook::silences(base::Instant now) const {
  std::vector<Silence> all;
  for (const auto& [id, silence] : silences_) {
    if (!is_over(silence, now)) all.push_back(silence);
  }
  return all;
}

base::Result<Silence> AlertBook::add(Silence silence, Moment now) {
  TRY(check(silence, now.at));
  if (silences_.size() >= kMaxSilences) {
    return base::fail(base::ErrorCode::kResourceExhausted,
                      fmt::format("there are {} silences already: end one first", kMaxSilences));
  }
  silence.id = next_silence_++;
  silence.from = now.at;
  silences_.emplace(silence.id, silence);
  const std::string name = silence_note(silence.id);
  changes_.insert_or_assign(name, Note{name, encode(silence)});
  // What waits to be told is not told now.
  evaluator_.for_each([&](const Tracked& tracked) {
    if (!alerts::silences(silence, tracked.alert, now.at)) return;
    for (const std::string& channel : settings_.channels) {
      grouping_.take_back(channel, tracked.alert.fingerprint);
    }
  });
  return silence;
}

base::Result<Silence> AlertBook::end_silence(std::uint64_t id, Moment now) {
  const auto found = silences_.find(id);
  if (found == silences_.end()) {
    return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no silence {}", id), "id");
  }
  Silence silence = std::move(found->second);
  silences_.erase(found);
  const std::string name = silence_note(id);
  changes_.insert_or_assign(name, Note{name, std::nullopt});
  silence.until = std::min(silence.until, now.at);
  look_for_untold(now);
  return silence;
}

base::Result<Alert> AlertBook::acknowledge(const std::string& fingerprint, std::string by,
                                           std::string comment, base::Instant now) {
  Tracked* const tracked = evaluator_.find(fingerprint);
  if (tracked == nullptr) {
    if (!find(fingerprint, now)) {
      return base::fail(base::ErrorCode::kNotFound,
                        fmt::format("there is no alert {}", fingerprint), "id");
    }
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("the alert {} is over", fingerprint), "id");
  }
  tracked->alert.acknowledged_by = std::move(by);
  tracked->alert.acknowledge_comment = std::move(comment);
  note(*tracked);
  return shown(tracked->alert, now);
}

}  // namespace gpu_platform::alerts
