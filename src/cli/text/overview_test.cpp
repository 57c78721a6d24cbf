#include "cli/text/overview.h"

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/text.h"
#include "cli/words/known_options.h"

namespace gpu_platform::cli {

namespace {

std::size_t widest_line(const std::string& page) {
  std::size_t widest = 0;
  for (const std::string& line : parts_between(page, '\n')) {
    widest = std::max(widest, display_width(line));
  }
  return widest;
}

const std::vector<OtherCommand> kOthers = {
    {"serve", "Run the daemon in the foreground.", {}},
    {"polish", "Polish the GPUs until they shine, a command that no section of the page has.", {}}};

TEST(Overview, HasEachCommandInASectionAndFitsTheTerminal) {
  const std::string page = short_overview({all_commands(), kOthers, {}});
  EXPECT_LE(widest_line(page), 80U) << page;
  for (const Command& command : all_commands()) {
    const std::string_view second = second_word(command.text.name);
    const std::string_view shown = second.empty() ? first_word(command.text.name) : second;
    EXPECT_NE(page.find(shown), std::string::npos) << command.text.name;
  }
  const std::size_t rest = page.find("\nMore:\n");
  ASSERT_NE(rest, std::string::npos);
  EXPECT_EQ(page.substr(rest, 13), "\nMore:\n  api ") << "a command without a section";
  EXPECT_NE(page.find("polish", rest), std::string::npos);
  EXPECT_LT(page.find("serve "), rest);
}

TEST(Overview, InFullHasALineForEachCommand) {
  const std::vector<Alias> aliases = {{"logs", "jobs", "logs"}};
  const std::string page = full_overview({all_commands(), kOthers, aliases});
  for (const Command& command : all_commands()) {
    EXPECT_NE(page.find(std::string("\n  ") + std::string(command.text.name) + " "),
              std::string::npos)
        << command.text.name;
  }
  EXPECT_NE(page.find("the same as jobs logs"), std::string::npos);
}

class Help : public Cli {};

TEST_F(Help, OfACommandShowsWhatMostNeedAndTheRestOnRequest) {
  EXPECT_EQ(call({"submit", "--help"}), 0);
  const std::string common = out();
  EXPECT_LE(widest_line(common.substr(common.find("Usage:"))), 80U) << common;
  EXPECT_NE(common.find("--gpus N"), std::string::npos);
  EXPECT_EQ(common.find("--strict-numa"), std::string::npos);
  EXPECT_NE(common.find(" more options: gpu-platform submit --help --all\n"), std::string::npos);
  EXPECT_EQ(call({"submit", "--help", "--all"}), 0);
  const std::string all = out().substr(common.size());
  for (const auto* flag : {"--gpus N", "--strict-numa", "--ca-file FILE"}) {
    EXPECT_NE(all.find(flag), std::string::npos) << flag;
  }
  EXPECT_LT(all.find("--gpus N"), all.find("More options:"));
  EXPECT_GT(all.find("--strict-numa"), all.find("More options:"));
}

TEST_F(Help, OfAllCommandsIsAskedForInBothWays) {
  EXPECT_EQ(call({"help", "--all"}), 0);
  const std::string page = out();
  EXPECT_NE(page.find("\n  jobs describe "), std::string::npos) << page;
  EXPECT_EQ(call({"--help", "--all"}), 0);
  EXPECT_EQ(out().substr(page.size()), page);
}

TEST_F(Help, NamesTheGroupOfACommandThatIsTypedWithoutIt) {
  EXPECT_EQ(call({"wait", "42"}), 2);
  EXPECT_NE(err().find("unknown command 'wait'; did you mean 'jobs wait'?"), std::string::npos)
      << err();
}

}  // namespace

}  // namespace gpu_platform::cli
