#include "cli/screen/watch_keys.h"

#include <gtest/gtest.h>

#include "cli/screen/screen.h"

namespace gpu_platform::cli {
namespace {

using Mode = WatchKeys::Mode;

void type(WatchKeys& keys, std::string_view text) {
  for (const char key : text) keys.take(key);
}

TEST(WatchKeys, SortFilterAndHelp) {
  WatchKeys keys;
  type(keys, "s");
  EXPECT_EQ(keys.arrangement().order, WatchOrder::kLeastBusy);
  type(keys, "sss");
  EXPECT_EQ(keys.arrangement().order, WatchOrder::kNode) << "round and round";
  type(keys, "?");
  EXPECT_EQ(keys.mode(), Mode::kHelp);
  type(keys, "q");
  EXPECT_EQ(keys.mode(), Mode::kTable);
  EXPECT_FALSE(keys.is_ended()) << "the key only left the page";
  type(keys, "/adq");
  EXPECT_EQ(keys.prompt(), "show only what has (only Enter: all): adq") << "q is a letter here";
  keys.take(kKeyBackspace);
  type(keys, "a");
  EXPECT_EQ(keys.arrangement().filter, "") << "not before Enter";
  keys.take(kKeyEnter);
  EXPECT_EQ(keys.arrangement().filter, "ada");
  EXPECT_EQ(keys.mode(), Mode::kTable);
  type(keys, "q");
  EXPECT_TRUE(keys.is_ended());
}

TEST(WatchKeys, SortTheTableThatTheyAreFor) {
  WatchKeys keys;
  EXPECT_EQ(keys.pane(), WatchPane::kGpus);
  keys.take(kKeyTab);
  EXPECT_EQ(keys.pane(), WatchPane::kJobs);
  type(keys, "ss");
  EXPECT_EQ(keys.arrangement().job_order, WatchJobOrder::kLeastBusy);
  EXPECT_EQ(keys.arrangement().order, WatchOrder::kNode) << "that of the GPUs stays";
  type(keys, "sss");
  EXPECT_EQ(keys.arrangement().job_order, WatchJobOrder::kId) << "round and round";
  keys.take(kKeyTab);
  EXPECT_EQ(keys.pane(), WatchPane::kGpus);
}

TEST(WatchKeys, TurnGraphsOffAndChooseNodesOrGpus) {
  WatchKeys keys;
  EXPECT_TRUE(keys.arrangement().has_graphs);
  type(keys, "g");
  EXPECT_FALSE(keys.arrangement().has_graphs);
  type(keys, "g");
  EXPECT_TRUE(keys.arrangement().has_graphs);
  type(keys, "n");
  EXPECT_EQ(keys.arrangement().unit, WatchUnit::kGpu);
  type(keys, "n");
  EXPECT_EQ(keys.arrangement().unit, WatchUnit::kNode);
  type(keys, "n");
  EXPECT_EQ(keys.arrangement().unit, WatchUnit::kWhatFits);
  type(keys, "/gn");
  keys.take(kKeyEnter);
  EXPECT_TRUE(keys.arrangement().has_graphs) << "letters of a text are no commands";
  EXPECT_EQ(keys.arrangement().filter, "gn");
}

TEST(WatchKeys, CancelOnlyWhatIsConfirmed) {
  WatchKeys keys;
  type(keys, "x");
  keys.take(kKeyEnter);
  EXPECT_EQ(keys.mode(), Mode::kTable) << "no id, no question";
  type(keys, "x42");
  keys.take(kKeyEnter);
  EXPECT_EQ(keys.prompt(), "cancel job 42? y or n");
  type(keys, "n");
  EXPECT_EQ(keys.take_cancelled(), std::nullopt);
  type(keys, "x40_3");
  keys.take(kKeyEnter);
  type(keys, "y");
  EXPECT_EQ(keys.take_cancelled(), "40_3");
  EXPECT_EQ(keys.take_cancelled(), std::nullopt) << "once";
}

}  // namespace
}  // namespace gpu_platform::cli
