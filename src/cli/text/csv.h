#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::cli {

// A text as a cell of CSV (RFC 4180): quoted where it must be. A text that a spreadsheet would run
// as a formula gets an apostrophe before it, and characters that turn the direction of writing are
// replaced, since names of jobs and teams are those of users.
std::string csv_cell(std::string_view text);

}  // namespace gpu_platform::cli
