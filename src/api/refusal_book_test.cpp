#include "api/refusal_book.h"

#include <gtest/gtest.h>

namespace gpu_platform::api {
namespace {

// Keeps what is written, and answers at once.
class Written final : public CommandSink {
 public:
  void submit(model::Command command, Done done) override {
    for (auto& call : std::get<model::RecordCalls>(command.body).calls) {
      calls.push_back(std::move(call));
    }
    done(model::CommandReply{});
  }
  std::vector<model::AuditedCall> calls;
};

class Refusals : public ::testing::Test {
 protected:
  bool note(std::uint32_t uid) {
    model::AuditedCall call;
    call.by = {model::Door::kUnixSocket, "u" + std::to_string(uid), uid, 1};
    call.refusal = {"NOT_FOUND", "there is no job 7"};
    return book_.note(std::move(call), [this] { ++told_; });
  }
  std::uint64_t calls_told() const {
    std::uint64_t sum = 0;
    for (const auto& call : sink_.calls) sum += call.calls;
    return sum;
  }

  Written sink_;
  base::Instant now_{1'000'000'000'000};
  int told_ = 0;
  RefusalBook book_{sink_, {}, [this] { return now_; }};
};

TEST_F(Refusals, TheFirstOfAUserAreWrittenOneByOne) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(note(1001));
  EXPECT_EQ(sink_.calls.size(), 10u);
  EXPECT_EQ(told_, 10);
  EXPECT_FALSE(note(1001));
  EXPECT_TRUE(note(1002)) << "another user has a count of its own";
}

TEST_F(Refusals, AFloodIsOneEntryWithItsCount) {
  for (int i = 0; i < 100'000; ++i) note(1001);
  EXPECT_EQ(sink_.calls.size(), 10u);
  book_.tick();
  EXPECT_EQ(sink_.calls.size(), 10u) << "the window is not over";
  now_ = now_ + base::minutes(1);
  book_.tick();
  ASSERT_EQ(sink_.calls.size(), 11u);
  EXPECT_EQ(sink_.calls.back().calls, 99'990u);
  EXPECT_EQ(sink_.calls.back().by.uid, 1001u);
  EXPECT_TRUE(sink_.calls.back().since.is_set());
  EXPECT_TRUE(note(1001)) << "a new window";
  EXPECT_EQ(calls_told(), 100'001u);
}

TEST_F(Refusals, ManyUsersTogetherAreBoundedTooAndNoneIsForgotten) {
  for (std::uint32_t uid = 100'000; uid < 165'000; ++uid) note(uid);
  book_.finish();
  EXPECT_LE(sink_.calls.size(), 60u + 16u + 1u);
  EXPECT_EQ(calls_told(), 65'000u);
}

TEST_F(Refusals, OthersDoNotUseUpWhatIsRoots) {
  for (std::uint32_t uid = 1000; uid < 2000; ++uid) note(uid);
  EXPECT_TRUE(note(0));
  EXPECT_EQ(sink_.calls.back().by.uid, 0u);
}

TEST_F(Refusals, AClockThatWasSetBackStopsNothing) {
  for (int i = 0; i < 11; ++i) note(1001);
  now_ = base::Instant(1'000);
  EXPECT_TRUE(note(1001));
  EXPECT_EQ(calls_told(), 12u) << "what was counted is told";
}

}  // namespace
}  // namespace gpu_platform::api
