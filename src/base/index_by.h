#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace gpu_platform::base {

// Finds the values of a span by one of their members (kKey: what std::invoke takes). Of values with
// equal keys it gives the first.
//
// Ownership: refers to the values, which must stay as they are. Cost: O(n log n) once, O(n) if the
// values are in the order of their keys; find() O(log n).
template <class T, auto kKey>
class IndexBy {
 public:
  using Key = std::remove_cvref_t<std::invoke_result_t<decltype(kKey), const T&>>;

  IndexBy() = default;
  explicit IndexBy(std::span<const T> values) {
    by_key_.reserve(values.size());
    for (const T& value : values) by_key_.push_back(&value);
    if (!std::ranges::is_sorted(by_key_, {}, key_of)) {
      std::ranges::stable_sort(by_key_, {}, key_of);
    }
  }

  // All of them, by their keys.
  std::span<const T* const> all() const { return by_key_; }

  // Null where there is none.
  const T* find(const Key& key) const {
    const auto place = std::ranges::lower_bound(by_key_, key, {}, key_of);
    return place == by_key_.end() || key_of(*place) != key ? nullptr : *place;
  }

 private:
  static Key key_of(const T* value) { return std::invoke(kKey, *value); }

  std::vector<const T*> by_key_;
};

}  // namespace gpu_platform::base
