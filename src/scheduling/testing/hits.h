#pragma once

#include <cstddef>

#include <gtest/gtest.h>

namespace gpu_platform::scheduling {

// How many of the worlds that a property was tried in were such that it says something of them. One
// that looks at nothing holds, too.
class Hits {
 public:
  // Returns `says_something`.
  bool count(bool says_something) {
    ++all_;
    if (says_something) ++some_;
    return says_something;
  }

  // A fiftieth of them, and one at least: of a hundred worlds of any seed enough will do, although
  // of some kinds only one in ten counts.
  ::testing::AssertionResult are_enough() const {
    if (some_ > 0 && some_ * 50 >= all_) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "only " << some_ << " of " << all_ << " worlds count";
  }

 private:
  std::size_t all_ = 0;
  std::size_t some_ = 0;
};

}  // namespace gpu_platform::scheduling
