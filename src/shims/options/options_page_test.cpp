#include "shims/options/options_page.h"

#include <gtest/gtest.h>

#include "shims/shims.h"

namespace gpu_platform::shims {
namespace {

TEST(OptionsPage, JoinsTheCommandsThatHandleAnOptionAlike) {
  constexpr Option kFirst[] = {{"time", 't', Take::kValue, Rule::kHonoured, "a|b", ""},
                               {"all", 0, Take::kNothing, Rule::kAccepted, "", ""}};
  constexpr Option kSecond[] = {{"time", 't', Take::kValue, Rule::kHonoured, "a|b", ""}};
  constexpr Option kThird[] = {{"time", 't', Take::kValue, Rule::kRefused, "use -x", ""}};
  const CommandOptions all[] = {{"one", kFirst}, {"two", kSecond}, {"three", kThird}};
  EXPECT_EQ(options_page(all),
            "| option | commands | is | what is done |\n| --- | --- | --- | --- |\n"
            "| `--all` | `one` | accepted | changes nothing |\n"
            "| `-t`, `--time` | `one` `two` | honoured | a\\|b |\n"
            "| `-t`, `--time` | `three` | refused | use -x |\n");
}

TEST(OptionsPage, HasEveryCommandAndSaysWhyOptionsAreNotHonoured) {
  EXPECT_GE(option_tables().size(), 16U);
  for (const auto& [command, options] : option_tables()) {
    EXPECT_FALSE(options.empty()) << command;
    for (const Option& option : options) {
      const bool is_taken = option.rule == Rule::kHonoured || option.rule == Rule::kAccepted;
      EXPECT_TRUE(is_taken || !option.note.empty()) << command << " --" << option.name;
    }
  }
}

TEST(OptionsPage, IsOfTablesThatNameEachOptionOnce) {
  for (const auto& [command, options] : option_tables()) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_NE(options[i].name, options[j].name) << command;
        EXPECT_FALSE(options[i].letter != 0 && options[i].letter == options[j].letter)
            << command << " -" << options[i].letter;
      }
    }
  }
}

}  // namespace
}  // namespace gpu_platform::shims
