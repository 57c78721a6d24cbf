#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::accounting {

// Gives texts numbers, from 0 in the order in which they come: what comes a million times is
// compared as a number. The order never depends on a hash.
class Numbering {
 public:
  Numbering();

  // Returns the number of the text, which gets the next one if it is new.
  std::uint32_t number_of(std::string_view text);
  bool has(std::string_view text) const;
  std::string_view text_of(std::uint32_t number) const { return entries_[number].text; }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::string text;
  };
  // The slot of the text, or the free one where it belongs.
  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  void grow();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // number + 1; 0: free. A power of two, at most half full
};

}  // namespace gpu_platform::accounting
