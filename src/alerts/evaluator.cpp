#include "alerts/evaluator.h"

#include <algorithm>

#include <fmt/format.h>

#include "alerts/wording.h"
#include "base/hash.h"

namespace gpu_platform::alerts {

namespace {

// The time since the last fact with a value; none if that is not known.
base::Duration known_time(const Tracked& tracked, Moment now) {
  if (!tracked.seen || now.steady < *tracked.seen) return {};
  return now.steady - *tracked.seen;
}

// A counter that goes back was restarted.
std::int64_t growth_of(std::optional<std::int64_t> before, const Fact& fact) {
  const std::int64_t value = *fact.value;
  if (!before) return fact.counts_from_zero ? value : 0;
  return value < *before ? value : value - *before;
}

std::vector<std::vector<std::size_t>> index_of(const std::vector<Rule>& rules) {
  std::vector<std::vector<std::size_t>> index(kSignals);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].is_enabled) index[static_cast<std::size_t>(rules[i].signal)].push_back(i);
  }
  return index;
}

}  // namespace

std::string fingerprint_of(const std::string& rule, const std::string& source,
                           const std::string& subject) {
  std::string text = rule;
  text.append(1, '\0').append(source).append(1, '\0').append(subject);
  return fmt::format("{:016x}", base::hash64(text));
}

Evaluator::Evaluator(std::vector<Rule> rules)
    : rules_(std::move(rules)), by_signal_(index_of(rules_)) {}

Evaluator::Transitions Evaluator::set_rules(std::vector<Rule> rules, Moment now) {
  rules_ = std::move(rules);
  by_signal_ = index_of(rules_);
  Transitions out;
  for (auto& [name, source] : sources_) {
    for (auto each = source.tracked.begin(); each != source.tracked.end();) {
      const auto current = each++;
      const auto rule = std::ranges::find(rules_, current->first.first, &Rule::name);
      const bool stays =
          rule != rules_.end() && rule->is_enabled && rule->signal == current->second.signal;
      if (stays) {
        current->second.alert.severity = rule->severity;
        current->second.alert.advice = rule->advice;
      } else {
        end(source, current, now, out);
      }
    }
  }
  return out;
}

Evaluator::Transitions Evaluator::take(const std::string& name, std::span<const Fact> facts,
                                       Moment now) {
  Transitions out;
  Source& source = sources_[name];
  ++source.round;
  for (const Fact& fact : facts) {
    const bool is_counter = row_of(fact.signal).kind == Kind::kCounter;
    std::int64_t growth = 0;
    if (is_counter && fact.value) {
      const std::pair key{fact.signal, fact.subject->key};
      const auto before = source.counts.find(key);
      const bool is_known = before != source.counts.end();
      growth = growth_of(is_known ? std::optional(before->second) : std::nullopt, fact);
      // What is not there counts as 0 where counters begin with that.
      if (is_known) {
        before->second = *fact.value;
      } else if (*fact.value != 0 || !fact.counts_from_zero) {
        source.counts.emplace(key, *fact.value);
      }
    }
    for (const std::size_t index : by_signal_[static_cast<std::size_t>(fact.signal)]) {
      const Rule& rule = rules_[index];
      if (!applies(rule, fact.subject->labels)) continue;
      if (is_counter) {
        judge_counter(source, rule, fact, name, growth, now, out);
      } else {
        judge_level(source, rule, fact, name, now, out);
      }
    }
  }
  for (auto each = source.tracked.begin(); each != source.tracked.end();) {
    const auto current = each++;
    if (current->second.round != source.round) end(source, current, now, out);
  }
  return out;
}

Evaluator::Transitions Evaluator::forget(const std::string& name, Moment now) {
  Transitions out;
  const auto found = sources_.find(name);
  if (found == sources_.end()) return out;
  Source& source = found->second;
  while (!source.tracked.empty()) end(source, source.tracked.begin(), now, out);
  sources_.erase(found);
  return out;
}

std::vector<std::string> Evaluator::sources() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : sources_) names.push_back(name);
  return names;
}

void Evaluator::restore(Tracked tracked) {
  tracked.seen.reset();
  Source& source = sources_[tracked.source];
  tracked.round = source.round;
  Key key{tracked.alert.rule, tracked.subject};
  by_fingerprint_[tracked.alert.fingerprint] = {tracked.source, key};
  source.tracked.insert_or_assign(std::move(key), std::move(tracked));
}

const Tracked* Evaluator::find(const std::string& fingerprint) const {
  const auto place = by_fingerprint_.find(fingerprint);
  if (place == by_fingerprint_.end()) return nullptr;
  return &sources_.at(place->second.first).tracked.at(place->second.second);
}

Tracked* Evaluator::find(const std::string& fingerprint) {
  return const_cast<Tracked*>(std::as_const(*this).find(fingerprint));
}

bool Evaluator::has_pending() const {
  bool has = false;
  for_each([&](const Tracked& tracked) { has |= tracked.alert.state == State::kPending; });
  return has;
}

// Returns what is tracked of the rule and the subject, told now; null: nothing.
Tracked* Evaluator::track(Source& source, const Rule& rule, const Fact& fact,
                          const std::string& name, Moment now) {
  const auto made = source.tracked.try_emplace(Key{rule.name, fact.subject->key});
  Tracked& tracked = made.first->second;
  tracked.round = source.round;
  if (!made.second) return &tracked;
  tracked.signal = rule.signal;
  tracked.source = name;
  tracked.subject = fact.subject->key;
  tracked.alert.fingerprint = fingerprint_of(rule.name, name, fact.subject->key);
  tracked.alert.rule = rule.name;
  tracked.alert.severity = rule.severity;
  tracked.alert.advice = rule.advice;
  tracked.alert.labels = fact.subject->labels;
  tracked.alert.since = now.at;
  by_fingerprint_[tracked.alert.fingerprint] = {name, {rule.name, fact.subject->key}};
  return &tracked;
}

void Evaluator::judge_level(Source& source, const Rule& rule, const Fact& fact,
                            const std::string& name, Moment now, Transitions& out) {
  const bool holds = fact.value && fires(rule, *fact.value);
  if (source.tracked.empty() && !holds) return;
  const auto known = source.tracked.find(Key{rule.name, fact.subject->key});
  if (known == source.tracked.end()) {
    if (!holds) return;
    Tracked& fresh = *track(source, rule, fact, name, now);
    fresh.seen = now.steady;
    fresh.alert.value = fact.value;
    fresh.alert.summary = summary_of(rule, fact);
    if (rule.hold <= base::Duration()) return fire(rule, fresh, fact, now, out);
    out.push_back({Turn::kPending, fresh.alert});
    return;
  }
  Tracked& tracked = known->second;
  tracked.round = source.round;
  tracked.alert.labels = fact.subject->labels;
  if (!fact.value) {
    tracked.alert.value.reset();
    tracked.seen.reset();
    return;
  }
  const base::Duration passed = known_time(tracked, now);
  const bool is_other = tracked.alert.value != fact.value || !fact.detail.empty();
  tracked.seen = now.steady;
  tracked.alert.value = fact.value;
  const bool is_firing = tracked.alert.state == State::kFiring;
  if (is_firing ? is_clear(rule, *fact.value) : !holds) return end(source, known, now, out);
  // One that is over says what it was about at last.
  if (is_other) tracked.alert.summary = summary_of(rule, fact);
  if (is_firing) return;
  tracked.held += passed;
  if (tracked.held >= rule.hold) fire(rule, tracked, fact, now, out);
}

void Evaluator::judge_counter(Source& source, const Rule& rule, const Fact& fact,
                              const std::string& name, std::int64_t growth, Moment now,
                              Transitions& out) {
  const bool has_grown = growth >= rule.threshold;
  if (source.tracked.empty() && !has_grown) return;
  const auto known = source.tracked.find(Key{rule.name, fact.subject->key});
  if (known == source.tracked.end()) {
    if (!has_grown) return;
    Tracked& fresh = *track(source, rule, fact, name, now);
    fresh.seen = now.steady;
    fresh.alert.value = growth;
    return fire(rule, fresh, fact, now, out);
  }
  Tracked& tracked = known->second;
  tracked.round = source.round;
  if (!fact.value) {
    tracked.seen.reset();
    return;
  }
  const base::Duration passed = known_time(tracked, now);
  tracked.seen = now.steady;
  if (growth > 0) {
    tracked.held = {};
    tracked.alert.value = tracked.alert.value.value_or(0) + growth;
    Fact sum = fact;
    sum.value = tracked.alert.value;
    tracked.alert.summary = summary_of(rule, sum);
    out.push_back({Turn::kGrew, tracked.alert});
    return;
  }
  tracked.held += passed;
  if (tracked.held >= rule.quiet) end(source, known, now, out);
}

void Evaluator::fire(const Rule& rule, Tracked& tracked, const Fact& fact, Moment now,
                     Transitions& out) {
  Fact shown = fact;
  shown.value = tracked.alert.value;
  tracked.alert.summary = summary_of(rule, shown);
  tracked.alert.state = State::kFiring;
  tracked.alert.fired = now.at;
  tracked.held = {};
  out.push_back({Turn::kFired, tracked.alert});
}

void Evaluator::end(Source& source, std::map<Key, Tracked>::iterator which, Moment now,
                    Transitions& out) {
  Alert alert = std::move(which->second.alert);
  by_fingerprint_.erase(alert.fingerprint);
  source.tracked.erase(which);
  const bool has_fired = alert.state == State::kFiring;
  alert.state = State::kResolved;
  alert.resolved = now.at;
  out.push_back({has_fired ? Turn::kResolved : Turn::kDropped, std::move(alert)});
}

}  // namespace gpu_platform::alerts
