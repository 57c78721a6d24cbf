#pragma once

#include <algorithm>
#include <array>

#include "shims/options/option_table.h"

// Rows that the tables of several commands have, and how a table is made of parts.

namespace gpu_platform::shims {

template <std::size_t... N>
constexpr auto joined(const Option (&... parts)[N]) {
  std::array<Option, (N + ...)> all{};
  auto at = all.begin();
  ((at = std::ranges::copy(parts, at).out), ...);
  return all;
}

// Every command has these.
inline constexpr Option kCommonOptions[] = {
    {"usage", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"clusters", 'M', Take::kValue, Rule::kIgnored, "there is one cluster", ""},
};

// -h of commands in which it is help, and of those in which it leaves out the titles.
inline constexpr Option kHelpOption[] = {{"help", 'h', Take::kNothing, Rule::kHonoured, "", ""}};
inline constexpr Option kHelpWithoutLetter[] = {
    {"help", 0, Take::kNothing, Rule::kHonoured, "", ""}};

inline constexpr Option kVerboseOption[] = {
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""}};

// The commands that show jobs, nodes and the site have these.
inline constexpr Option kViewOptions[] = {
    {"json", 0, Take::kMayHaveValue, Rule::kHonoured,
     "the document of Slurm 24.11; v0.0.40, v0.0.41, v0.0.42 and v0.0.38 name a form, list shows "
     "of "
     "them",
     ""},
    {"yaml", 0, Take::kMayHaveValue, Rule::kHonoured, "the same document", ""},
    {"hide", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"local", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"federation", 0, Take::kNothing, Rule::kAccepted, "", ""},
};

}  // namespace gpu_platform::shims
