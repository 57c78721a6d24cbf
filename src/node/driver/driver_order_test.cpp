#include "node/driver/driver_order.h"

#include <gtest/gtest.h>

#include "node/driver/plain_text.h"

namespace gpu_platform::node {
namespace {

std::optional<DriverOrder> parse(const std::vector<std::string_view>& arguments) {
  return parse_driver_order(arguments);
}

TEST(DriverOrder, IsReadFromTheArguments) {
  const auto reset = parse({"reset", "--limit-ms", "5000", "GPU-1", "GPU-2"});
  ASSERT_TRUE(reset.has_value());
  EXPECT_EQ(reset->verb, DriverVerb::kReset);
  EXPECT_EQ(reset->limit_ms, 5000U);
  EXPECT_EQ(reset->gpus, (std::vector<std::string>{"GPU-1", "GPU-2"}));
  EXPECT_FALSE(reset->is_emulated());
  const auto power = parse({"power", "--limit-ms", "1", "--watts", "300", "GPU-1"});
  ASSERT_TRUE(power.has_value());
  EXPECT_EQ(power->watts, 300U);
  const auto emulated = parse({"quick-check", "--limit-ms", "1", "--library", "/l/nvml",
                               "--nvidia-smi", "/b/nvidia-smi", "GPU-1"});
  ASSERT_TRUE(emulated.has_value());
  EXPECT_TRUE(emulated->is_emulated());
}

TEST(DriverOrder, ThatTheLauncherDoesNotGiveIsNone) {
  EXPECT_FALSE(parse({}));
  EXPECT_FALSE(parse({"reset"}));
  EXPECT_FALSE(parse({"erase", "--limit-ms", "1", "GPU-1"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1"}));
  EXPECT_FALSE(parse({"reset", "GPU-1"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "0", "GPU-1"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1x", "GPU-1"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1", "--watts", "300", "GPU-1"}));
  EXPECT_FALSE(parse({"power", "--limit-ms", "1", "GPU-1"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1", "--shell"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1", "--library", "nvml", "GPU-1"}));
}

// Only together, so that no real GPU is asked through a library that another user named.
TEST(DriverOrder, NamesLibraryAndProgramOfABoardTogether) {
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1", "--library", "/l", "GPU-1"}));
  EXPECT_FALSE(parse({"reset", "--limit-ms", "1", "--nvidia-smi", "/s", "GPU-1"}));
}

TEST(PlainLine, IsOneLineOfPlainCharactersOfBoundedLength) {
  EXPECT_EQ(plain_line("GPU 0 was reset.\nAll done.\n"), "GPU 0 was reset.; All done.");
  EXPECT_EQ(plain_line("Not reset:\n  GPU 0: Unknown Error\n\n"),
            "Not reset: GPU 0: Unknown Error");
  EXPECT_EQ(plain_line("\n\na\x1b[1m\r\n\n\nb"), "a?[1m; b");
  EXPECT_EQ(plain_line("abcdef", 3), "abc");
  EXPECT_EQ(plain_line(""), "");
}

}  // namespace
}  // namespace gpu_platform::node
