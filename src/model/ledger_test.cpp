#include "model/ledger.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "model/budget.h"

namespace gpu_platform::model {
namespace {

std::string page_about_money() {
  const std::ifstream page(GP_SOURCE_DIRECTORY "/docs/accounting.md");
  std::stringstream text;
  text << page.rdbuf();
  return text.str();
}

// "| `idle` | …"
void expect_row(const std::string& page, std::string_view name) {
  EXPECT_NE(page.find(fmt::format("\n| `{}` | ", name)), std::string::npos)
      << "docs/accounting.md does not say what '" << name << "' is";
}

TEST(Ledger, ThePageSaysWhatEachKindOfTimeIs) {
  const std::string page = page_about_money();
  for (std::size_t i = 0; i < kRestKinds; ++i) {
    expect_row(page, to_string(static_cast<RestKind>(i)));
  }
  for (std::size_t i = 0; i < kNotBilledReasons; ++i) {
    const auto why = static_cast<NotBilled>(i);
    if (why != NotBilled::kBilled) expect_row(page, to_string(why));
  }
}

TEST(Ledger, ThePageSaysWhatFollowsWhenABudgetIsSpent) {
  const std::string page = page_about_money();
  for (std::size_t i = 0; i < kBudgetActs; ++i) {
    expect_row(page, to_string(static_cast<BudgetAct>(i)));
  }
}

TEST(Ledger, TimesAreCutOffToMilliseconds) {
  EXPECT_EQ(millis_of(base::Instant(1'999'999)), 1);
  EXPECT_EQ(millis_of(base::Instant(2'000'000)), 2);
}

}  // namespace
}  // namespace gpu_platform::model
