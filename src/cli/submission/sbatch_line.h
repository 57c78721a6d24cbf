#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"

// Options of "#SBATCH" lines as options of the command line. Pure. Slurm's own commands
// (src/shims) know all of Slurm's options; here are those that one command of a job can have.

namespace gpu_platform::cli {

// What the lines of one script say about mail: they add up.
struct SbatchMail {
  std::set<std::string> events;  // values of --notify: "start"
  std::string to;                // the last --mail-user; empty: none
  bool has_type = false;         // there is a --mail-type, perhaps of no event
  std::string script;            // what errors call it
};

// Returns the words for `submit`. Options that change nothing here are left out, with a warning if
// a person might miss them. --mail-type and --mail-user are added to `mail`. Errors name the
// option; an option without a counterpart is refused.
base::Result<std::vector<std::string>> words_of_sbatch_line(const std::vector<std::string>& words,
                                                            SbatchMail& mail,
                                                            std::vector<std::string>& warnings);

}  // namespace gpu_platform::cli
