#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What the commands read in a job's script before it runs: its interpreter, and the options that it
// sets in comments, "#GPU …" and "#SBATCH …". Pure. Blanks are spaces, tabs and carriage returns.

namespace gpu_platform::client {

// Returns the words of one line, with quotes and backslashes as a shell has them. A word that
// begins with "#" ends the line. The error is a quote that is not closed.
base::Result<std::vector<std::string>> shell_words(std::string_view line);

struct OptionLine {
  std::size_t number = 0;          // from 1
  std::string_view mark;           // "#SBATCH"
  std::vector<std::string> words;  // at least one
};

// Returns the lines that begin with one of these marks and a blank, up to the first line that is
// neither empty nor a comment. The error names the line as its field.
base::Result<std::vector<OptionLine>> option_lines(std::string_view script,
                                                   std::initializer_list<std::string_view> marks);

// Returns the interpreter of a "#!" line as the system reads it: the program, and at most one
// argument. Empty if there is none.
std::vector<std::string> interpreter_of(std::string_view script);

}  // namespace gpu_platform::client
