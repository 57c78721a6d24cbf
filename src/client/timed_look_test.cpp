#include "client/timed_look.h"

#include <future>

#include <gtest/gtest.h>

namespace gpu_platform::client {
namespace {

TEST(TimedLook, ReturnsWhatWasFound) {
  EXPECT_EQ(timed_look([](const std::string& path) { return path.size(); }, "/etc"), 4U);
}

TEST(TimedLook, GivesUpOnWhatDoesNotAnswer) {
  const auto answers = std::make_shared<std::promise<void>>();
  const auto waited = answers->get_future().share();
  const auto look = [waited](const std::string&) {
    waited.wait();
    return 1;
  };
  EXPECT_EQ(timed_look(look, "/hangs", std::chrono::milliseconds(20)), std::nullopt);
  answers->set_value();
}

}  // namespace
}  // namespace gpu_platform::client
