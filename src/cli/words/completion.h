#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

// Completion in shells: the script that a shell loads, and the words that it then asks for. Options
// and their values come from the commands themselves, names of jobs and nodes from the daemon.

namespace gpu_platform::cli {

// One word that may stand there, and what it is.
struct Candidate {
  std::string word;
  std::string help;

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// What completion needs to know of the table of commands. The lists may be empty.
struct CommandIndex {
  std::vector<Candidate> first_words;
  std::function<std::vector<Candidate>(std::string_view group)> second_words;
  // The command of these words, of which it may use one or two; null: there is none, or it lists no
  // options.
  std::function<const Command*(std::span<const std::string> words, std::size_t& used)> find;
};

// Prints what may stand in the place of the last word, which may be empty: in each line a word, a
// tab and its help. The words before it are the rest of the line, without the program's name. A
// daemon that is away has no names to offer. Shells call it.
int run_complete(const CommandIndex& index, const Invocation& invocation);

}  // namespace gpu_platform::cli
