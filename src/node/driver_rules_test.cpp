#include "node/driver_rules.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpu_platform::node {
namespace {

TEST(DriverRules, AllowWhatTheyNameAndNothingElse) {
  const std::string rules =
      "# for the operators\nallow reset   # of sick GPUs\n\n  allow\tcheck\r\n";
  EXPECT_EQ(refusal_of(rules, DriverVerb::kReset), "");
  EXPECT_EQ(refusal_of(rules, DriverVerb::kQuickCheck), "");
  EXPECT_EQ(refusal_of(rules, DriverVerb::kDeepCheck), "");
  EXPECT_EQ(refusal_of(rules, DriverVerb::kPower),
            "they do not allow it: add the line \"allow power\"");
  EXPECT_EQ(refusal_of("allow power", DriverVerb::kPower), "");
  EXPECT_NE(refusal_of("", DriverVerb::kReset), "");
  EXPECT_NE(refusal_of("# allow reset\n", DriverVerb::kReset), "");
}

TEST(DriverRules, WithALineThatIsNoneAllowNothing) {
  for (const char* line :
       {"deny power", "allow", "allow everything", "allow reset check", "reset"}) {
    const std::string why = refusal_of(std::string("allow reset\n") + line, DriverVerb::kReset);
    EXPECT_TRUE(why.starts_with("line 2 is no rule")) << line << ": " << why;
  }
}

class DriverRulesFile : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/driver_rules_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/driver.rules";
    std::ofstream(path_) << "allow reset\n";
    ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(DriverRulesFile, IsReadAndNamedWhereItRefuses) {
  EXPECT_EQ(refusal_of_file(path_, DriverVerb::kReset), "");
  EXPECT_TRUE(refusal_of_file(path_, DriverVerb::kPower).starts_with("the rules in " + path_));
  EXPECT_EQ(refusal_of_file(folder_ + "/none", DriverVerb::kReset),
            "this site has no rules for it: root writes \"allow reset\" into " + folder_ + "/none");
  EXPECT_NE(refusal_of_file("driver.rules", DriverVerb::kReset), "");
}

TEST_F(DriverRulesFile, ThatOthersCanWriteAllowsNothing) {
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_NE(refusal_of_file(path_, DriverVerb::kReset), "");
}

}  // namespace
}  // namespace gpu_platform::node
