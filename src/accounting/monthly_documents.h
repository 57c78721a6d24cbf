#pragma once

#include <string>
#include <string_view>

#include "accounting/monthly.h"

// The report of a month as documents. Equal reports give equal bytes.

namespace gpu_platform::accounting {

// {"month": "2026-10", "teams": {NAME: {"total_cost": 1234.5, "by_gpu_type": {TYPE: {"hours": 2.5,
// "cost": 13.75}}}}, "total": 1234.5}, with a line feed. Numbers have at most six decimals. Where
// they are not zero, a team also has "cpu_cost" and "corrections", which are in its total, and a
// type "unpriced_hours", which are in its hours. The cost of a type without any price is null.
std::string json_of(const MonthlyReport& report);
// A row for each team and type, and for the CPU cost and the corrections of a team (RFC 4180).
// All its costs together are the total.
std::string csv_of(const MonthlyReport& report);
// A page that stands alone, without a script. It prints on A4.
std::string html_of(const MonthlyReport& report);

// A text as a cell of CSV: quoted where it must be. A text that a spreadsheet would run as a
// formula gets an apostrophe before it.
std::string csv_text(std::string_view text);
// A text as a value of JSON, with its quotes. What is not UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);
// A text in HTML, also in an attribute. Characters that do not show, such as marks that turn the
// direction of writing, become U+FFFD.
std::string html_text(std::string_view text);
// A name of people's, apart from the direction of writing of what is around it.
std::string html_name(std::string_view text);

}  // namespace gpu_platform::accounting
