#include "api/convert/job_change.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gpu_platform::api {
namespace {

TEST(LimitSignal, IsASignalAndSecondsBeforeTheLimit) {
  const auto read = [](std::string_view text) {
    const auto signal = to_limit_signal(text);
    EXPECT_TRUE(signal) << text;
    return signal.value_or(model::LimitSignal());
  };
  EXPECT_EQ(read("USR1@120"), (model::LimitSignal{SIGUSR1, base::seconds(120)}));
  EXPECT_EQ(read("sigusr1"), (model::LimitSignal{SIGUSR1, base::seconds(60)}));
  EXPECT_EQ(read("10@1"), (model::LimitSignal{10, base::seconds(1)}));
  EXPECT_EQ(limit_signal_text(read("SIGTERM@5")), "TERM@5");
  EXPECT_EQ(read("B:USR1@120"), (model::LimitSignal{SIGUSR1, base::seconds(120), true}));
  EXPECT_EQ(limit_signal_text(read("B:10")), "B:USR1@60");
}

TEST(LimitSignal, OfAnotherFormIsRefusedWithTheRightOne) {
  for (const char* bad :
       {"", "@5", "USR1@", "USR1@0", "USR1@65536", "USR1@5@5", "65@1", "0@1", "KILL", "9@5",
        "STOP@5", "B:", "B:KILL", "b:USR1", "R:USR1", "USR1 @5", "-1@5"}) {
    const auto signal = to_limit_signal(bad);
    ASSERT_FALSE(signal) << bad;
    EXPECT_EQ(signal.error().field, "limit_signal");
    EXPECT_NE(signal.error().message.find("USR1@120"), std::string::npos) << bad;
  }
}

TEST(ActOnJobs, AreTheCallersUnlessSomebodyElseOrAllAreNamed) {
  const model::Caller ada{"ada", 1000, false};
  v1::ActOnJobsRequest request;
  request.set_action(v1::JOB_ACTION_HOLD);
  request.set_name("train-*");
  EXPECT_EQ(to_model(request, ada)->which.user, "ada");
  request.set_user("bob");
  EXPECT_EQ(to_model(request, ada)->which.user, "bob");
  request.clear_user();
  request.set_all(true);
  EXPECT_EQ(to_model(request, ada)->which.user, std::nullopt);
}

TEST(ActOnJobs, WithoutAnyBoundAreRefused) {
  v1::ActOnJobsRequest request;
  request.set_action(v1::JOB_ACTION_CANCEL);
  const auto refused = to_model(request, {"ada", 1000, false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "all");
}

}  // namespace
}  // namespace gpu_platform::api
