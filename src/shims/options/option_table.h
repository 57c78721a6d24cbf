#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Options in the manner of Slurm's commands: one letter or a long name, values joined or apart,
// long names cut where that is clear, later ones over earlier ones. Tables say what is done with
// each. Pure.

namespace gpu_platform::shims {

enum class Take { kNothing, kValue, kMayHaveValue };

enum class Rule {
  kHonoured,
  kAccepted,  // asks for what is so anyway: nothing is said
  kIgnored,   // a warning says so, with the note
  kRefused,   // an error, with the note
};

struct Option {
  std::string_view name;  // long, without dashes
  char letter = 0;        // 0: none
  Take take = Take::kValue;
  Rule rule = Rule::kHonoured;
  std::string_view note;      // what is done instead, or what to do
  std::string_view variable;  // environment variable that sets it
};

// The options that were given, by long name.
class Settings {
 public:
  // A later value goes over an earlier one, and "no-X" and "X" over each other; only those of
  // "mail-type" add up.
  void set(const Option& option, std::string value);
  bool has(std::string_view name) const { return values_.contains(name); }
  void erase(std::string_view name) {
    std::erase_if(values_, [&](const auto& one) { return one.first == name; });
  }
  // Empty when absent.
  const std::string& value(std::string_view name) const;
  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// What to do with an option that the table does not have.
enum class Unknown { kError, kWarn };

// How options end and other words begin.
enum class Order {
  kOptionsFirst,  // at the first word that is none: a program with options of its own follows
  kMixed,
};

struct Reading {
  std::span<const Option> table;
  Unknown unknown = Unknown::kError;
  Order order = Order::kOptionsFirst;
  std::string where;  // for messages: "line 4", empty for the command line
};

// Reads the words into `settings`; warnings are appended. The words that are no options.
base::Result<std::vector<std::string>> read_options(const Reading& reading,
                                                    std::span<const std::string> words,
                                                    Settings& settings,
                                                    std::vector<std::string>& warnings);

// Options of the environment, NAME=VALUE.
base::Status read_variables(std::span<const Option> table, std::span<const std::string> environment,
                            Settings& settings, std::vector<std::string>& warnings);

}  // namespace gpu_platform::shims
