#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/client_names.h"
#include "client/script_words.h"

// Job scripts: files that begin with "#!" and may set options of their job in lines "#GPU …" and
// "#SBATCH …". A shell script is copied at submission: its text is a word of the job's command, so
// later edits of the file mean nothing to the job, and a job that is submitted again has the same
// script.

namespace gpu_platform::cli {

struct JobScript {
  std::string name;        // of the file without its folders
  std::string called;      // what the script sees as its own name ($0)
  std::string text;        // cut after the option lines if it is not copied
  bool is_copied = false;  // false: the file itself is run
};

// The places in which a script is looked for.
struct ScriptPlace {
  std::string word;     // the program as it was typed; "-" is standard input
  std::string workdir;  // of the job, absolute
  std::string path;     // the job's PATH
  bool has_image = false;
};

// Returns the script, or nothing if the word is no script. Not copied are scripts of other
// interpreters than shells, which may need the files beside them, and those that are given by an
// absolute path and have no option lines: they are programs. In an image an absolute path is a
// program of the image. Errors name the script.
base::Result<std::optional<JobScript>> find_script(const ProcessEnvironment& process_environment,
                                                   const ScriptPlace& place);

// Returns the job's command: interpreter, script and arguments. For a copied script only.
std::vector<std::string> command_of(const JobScript& script,
                                    const std::vector<std::string>& arguments);

// The marks of option lines.
inline constexpr std::string_view kGpuLine = "#GPU";
inline constexpr std::string_view kSbatchLine = "#SBATCH";

// Returns the option lines of both kinds (client/script_words.h). The error names the line.
base::Result<std::vector<client::OptionLine>> option_lines(std::string_view script);

// Whether a program without a slash is found in this PATH, as far as that can be known: folders
// that are relative, or that the caller may not look into, count as having it.
bool is_in_path(const ProcessEnvironment& process_environment, std::string_view program,
                std::string_view path);

}  // namespace gpu_platform::cli
