#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_names.h"
#include "cli/text/output.h"

namespace gpu_platform::cli {

// What --help of a command shows besides its options.
struct CommandText {
  std::string_view name;      // "jobs list"
  std::string_view synopsis;  // "[options] -- COMMAND [ARGUMENT…]"
  std::string_view summary;   // one line
  std::string_view examples;  // whole lines, shown first
};

// For commands whose --output is a file of the job. All others have --format as well.
inline constexpr const char* kFormatOption = "-o,--format";

// As the only word, it has parse() print the options instead of reading them: for each a line of
// its names, its value and its help, separated by tabs, and one of "=", the name of the words that
// are no options, and their help. Completion in shells asks so.
inline constexpr std::string_view kListOptions = "--list-options-for-completion";

// The options and arguments of one command. Values stay text: what they mean is checked where they
// are used, so that every message can say what is allowed there. The targets must outlive the
// object.
class Arguments {
 public:
  explicit Arguments(const CommandText& text);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  Arguments& flag(const std::string& names, bool& target, const std::string& help);
  Arguments& option(const std::string& names, std::optional<std::string>& target,
                    const std::string& value, const std::string& help);
  // May be given several times.
  Arguments& many(const std::string& names, std::vector<std::string>& target,
                  const std::string& value, const std::string& help);
  // A flag that may have a value behind '=': `target` is "true" without one.
  Arguments& flag_or_value(const std::string& names, std::optional<std::string>& target,
                           const std::string& value, const std::string& help);
  // -o and --json. The place of names is without a name where a command has none to print.
  Arguments& output(Output& output, NamesPlace names, const char* option = "-o,--output,--format");
  // --watch, too.
  Arguments& output_and_watch(Output& output, NamesPlace names);
  // Words that are no options: `least` to `most` of them.
  Arguments& words(const std::string& name, std::vector<std::string>& target, std::size_t least,
                   std::size_t most, const std::string& help);
  // The first word that is no option, and everything after it, options or not: a program and its
  // arguments. Instead of words().
  Arguments& command(const std::string& name, std::vector<std::string>& target,
                     const std::string& help);

  // --help shows these options first. Those that are not common are shown only by --help --all.
  // Without a call all options are common, but for those defined after rarely_used().
  Arguments& common(std::span<const std::string_view> flags);
  Arguments& rarely_used();

  // Reads the words. Otherwise the exit code: 0 after --help, 2 after a mistake, which has been
  // reported.
  std::optional<int> parse(std::span<const std::string> arguments, Console& console);

 private:
  struct State;
  std::optional<int> read_output(Console& console);
  std::string help(bool has_all) const;
  std::string list() const;

  std::unique_ptr<State> state_;
};

// Reports a mistake in how a command was called; returns kUsage.
int usage_error(Console& console, std::string_view message, std::string_view command);
// The same of a mistake that names its option or field.
int usage_error(Console& console, const base::Error& mistake, std::string_view command);

}  // namespace gpu_platform::cli
