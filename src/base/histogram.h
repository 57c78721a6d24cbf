#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpu_platform::base {

// Counts of values by size, with their sum, the last and the largest. Pure; one thread at a time.
class Histogram {
 public:
  // `bounds`: ascending; they outlive the histogram. A value equal to a bound counts below it.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void add(double value) {
    const auto bound = std::ranges::lower_bound(bounds_, value);
    ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
    max_ = count_ == 0 ? value : std::max(max_, value);
    last_ = value;
    sum_ += value;
    ++count_;
  }

  std::span<const double> bounds() const { return bounds_; }
  // Returns for each bound the number of values above the bound before it; then that of the values
  // above all bounds.
  std::span<const std::uint64_t> counts() const { return counts_; }
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  // 0 without values.
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double last() const { return last_; }
  double max() const { return max_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double last_ = 0;
  double max_ = 0;
};

}  // namespace gpu_platform::base
