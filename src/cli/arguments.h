#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"

namespace gpu_platform::cli {

// What --help of a command shows besides its options.
struct CommandText {
  std::string_view name;      // "jobs list"
  std::string_view synopsis;  // "[options] -- COMMAND [ARGUMENT…]"
  std::string_view summary;   // one line
  std::string_view examples;  // whole lines, shown first
};

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
  // Words that are no options: `least` to `most` of them.
  Arguments& words(const std::string& name, std::vector<std::string>& target, std::size_t least,
                   std::size_t most, const std::string& help);

  // Reads the words. Otherwise the exit code: 0 after --help, 2 after a mistake, which has been
  // reported.
  std::optional<int> parse(std::span<const std::string> arguments, Console& console);

 private:
  struct State;
  std::string help() const;

  std::unique_ptr<State> state_;
};

// Reports a mistake in how a command was called; returns kUsage.
int usage_error(Console& console, std::string_view message, std::string_view command);

}  // namespace gpu_platform::cli
