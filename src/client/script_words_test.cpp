#include "client/script_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ShellWords, HaveQuotesAndBackslashes) {
  EXPECT_THAT(*shell_words(R"( --a="x y" 'b # c' d\ e f#g '' # h)"),
              ElementsAre("--a=x y", "b # c", "d e", "f#g", ""));
  EXPECT_THAT(*shell_words("\t-n\t2 \r"), ElementsAre("-n", "2"));
  EXPECT_THAT(*shell_words(R"(end\)"), ElementsAre(R"(end\)"));
  EXPECT_THAT(*shell_words(" # a comment"), IsEmpty());
  EXPECT_THAT(*shell_words(""), IsEmpty());
}

TEST(ShellWords, AreRefusedWithAQuoteThatIsNotClosed) {
  EXPECT_EQ(shell_words(R"(--a="x)").error().message, "a quote \" is not closed");
  EXPECT_EQ(shell_words("it's").error().message, "a quote ' is not closed");
}

TEST(OptionLines, StandBeforeTheFirstCommand) {
  const auto lines = option_lines(
      "#!/bin/sh\n#GPU -a 1\n\n# words\n##GPU -b\n#GPUS -c\n  #GPU -d\n#GPU\n#GPU # why\n"
      "#SBATCH -e\r\necho\n#GPU -f\n",
      {"#GPU", "#SBATCH"});
  ASSERT_EQ(lines->size(), 2U);
  EXPECT_EQ((*lines)[0].number, 2U);
  EXPECT_EQ((*lines)[0].mark, "#GPU");
  EXPECT_THAT((*lines)[0].words, ElementsAre("-a", "1"));
  EXPECT_EQ((*lines)[1].number, 10U);
  EXPECT_EQ((*lines)[1].mark, "#SBATCH");
  EXPECT_THAT((*lines)[1].words, ElementsAre("-e"));
}

TEST(OptionLines, AreRefusedByTheirNumber) {
  EXPECT_EQ(option_lines("#!/bin/sh\n#GPU 'a\n", {"#GPU"}).error().field, "line 2");
  EXPECT_TRUE(option_lines("#!/bin/sh\n#SBATCH 'a\n", {"#GPU"}));
}

TEST(Interpreters, HaveOneArgumentAtMost) {
  EXPECT_THAT(interpreter_of("#!/bin/bash\n"), ElementsAre("/bin/bash"));
  EXPECT_THAT(interpreter_of("#!/bin/bash"), ElementsAre("/bin/bash"));
  EXPECT_THAT(interpreter_of("#! /usr/bin/env  -S python3 -u \nx"),
              ElementsAre("/usr/bin/env", "-S python3 -u"));
  EXPECT_THAT(interpreter_of("#! \nx"), IsEmpty());
  EXPECT_THAT(interpreter_of("echo\n"), IsEmpty());
}

}  // namespace
}  // namespace gpu_platform::client
