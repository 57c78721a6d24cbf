#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gpu_platform::scheduling {

// What the writes of a trial replaced, newest last. Works on any table that offers
//   Value exchange(Key, const Value&)   replace a value, return the former one
// and knows nothing else of it, so no operation needs an inverse of its own.
template <class Table, class Key, class Value>
class UndoLog {
 public:
  using Mark = std::size_t;

  void write(Table& table, const Key& key, const Value& value) {
    entries_.emplace_back(key, table.exchange(key, value));
  }
  Mark mark() const { return entries_.size(); }
  void rollback_to(Table& table, Mark mark) {
    for (; entries_.size() > mark; entries_.pop_back()) {
      table.exchange(entries_.back().first, entries_.back().second);
    }
  }
  void forget() { entries_.clear(); }

 private:
  std::vector<std::pair<Key, Value>> entries_;
};

}  // namespace gpu_platform::scheduling
