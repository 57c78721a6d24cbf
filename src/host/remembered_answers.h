#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "host/slow_calls.h"

namespace gpu_platform::host {

// A cache of answers of a database that may be far away. A result is kept for a minute; "not found"
// and "no answer" are kept for some seconds. There is one question at a time for each key, however
// many callers ask. If the database does not answer, its last answer still counts. Safe from any
// thread.
template <class Key, class Value>
class RememberedAnswers : public std::enable_shared_from_this<RememberedAnswers<Key, Value>> {
 public:
  using Question = std::function<base::Result<Value>()>;
  using Done = std::function<void(base::Result<Value>)>;

  // Returns the known answer. Nothing: the question is on its way, and `asked` is called with the
  // answer.
  std::optional<base::Result<Value>> now(const Key& key, std::uint32_t user, SlowCalls& calls,
                                         Question question, Done asked) {
    {
      const std::lock_guard lock(mutex_);
      Entry& entry = entry_of(key);
      if (entry.answer && Clock::now() < entry.until) return entry.answer;
      if (asked != nullptr) entry.waiting.push_back(std::move(asked));
      if (std::exchange(entry.is_asked, true)) return std::nullopt;
    }
    // Weak: an answer may come when nothing of this is left.
    calls.ask<Value>(user, std::move(question),
                     [weak = this->weak_from_this(), key](base::Result<Value> answer) {
                       if (const auto self = weak.lock()) self->learn(key, std::move(answer));
                     });
    return std::nullopt;
  }

  // Returns the last answer, however old it is.
  std::optional<base::Result<Value>> last(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : found->second.answer;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kFoundFor{60};
  static constexpr std::chrono::seconds kFailedFor{5};
  static constexpr std::size_t kMaxEntries = 4096;

  struct Entry {
    std::optional<base::Result<Value>> answer;
    Clock::time_point until;
    bool is_asked = false;
    std::vector<Done> waiting;
  };

  Entry& entry_of(const Key& key) {
    if (entries_.size() >= kMaxEntries && !entries_.contains(key)) {
      std::erase_if(entries_, [](const auto& entry) { return !entry.second.is_asked; });
    }
    return entries_[key];
  }

  void learn(const Key& key, base::Result<Value> answer) {
    std::vector<Done> waiting;
    {
      const std::lock_guard lock(mutex_);
      Entry& entry = entries_[key];
      const bool is_answer = answer || answer.error().code == base::ErrorCode::kNotFound;
      const bool keeps_old = !is_answer && entry.answer && *entry.answer;
      if (!keeps_old) entry.answer = std::move(answer);
      entry.until = Clock::now() + (*entry.answer && !keeps_old ? kFoundFor : kFailedFor);
      entry.is_asked = false;
      waiting.swap(entry.waiting);
      answer = *entry.answer;
    }
    for (const Done& done : waiting) done(answer);
  }

  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace gpu_platform::host
