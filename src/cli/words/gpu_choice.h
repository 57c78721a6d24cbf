#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/words/arguments.h"

namespace gpu_platform::cli {

// The GPUs that a command is about: at most one of the options is given.
struct GpuChoice {
  std::optional<std::string> gpu_id, gpu, node;
  std::vector<std::string> words;  // the same without an option, as kubectl takes a node

  void add_to(Arguments& arguments, std::size_t max_words = 1);
  int given() const;
  // Gives a single word to the option that it stands in for. A word beside an option is one too
  // many.
  void take_word();
  // What is wrong with the options, before the daemon is asked.
  std::optional<std::string> mistake() const;
  bool is_one_gpu() const { return gpu_id.has_value() || gpu.has_value(); }
  // "gpu_id=GPU-3" for the query of a call; empty: nothing was given.
  std::string query() const;
};

// A choice of the one GPU or node that the word names: a UUID, NODE:INDEX or NODE.
GpuChoice choice_of_word(const std::string& word);

}  // namespace gpu_platform::cli
