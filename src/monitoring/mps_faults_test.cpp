#include "monitoring/mps_faults.h"

#include <gtest/gtest.h>

namespace gpu_platform::monitoring {
namespace {

using base::milliseconds;
using base::seconds;
using Cause = MpsFaults::Cause;

constexpr model::AttemptId kFirstClient{model::JobId(1), 1};
constexpr model::AttemptId kSecondClient{model::JobId(2), 1};
constexpr model::AttemptId kThirdClient{model::JobId(3), 1};

const Cause kUnknownCulprit{};
const Cause kServerLost{.is_server_lost = true};

Cause fault_of(model::AttemptId culprit) {
  return {.culprit = culprit};
}

// Clients of one server that have run for an hour.
class MpsFaultsTest : public ::testing::Test {
 protected:
  MpsFaults::Client client(model::AttemptId attempt) const {
    return {attempt, server_, start_ + base::minutes(-60)};
  }
  base::Instant after(base::Duration time) const { return start_ + time; }
  void fail(model::AttemptId attempt, base::Duration at) {
    faults_.take_failure(client(attempt), after(at));
  }
  void name(model::AttemptId attempt, base::Duration at) {
    faults_.take_xid(client(attempt), after(at));
  }
  std::optional<Cause> cause(model::AttemptId attempt) const {
    return faults_.cause_of_failure(attempt);
  }

  MpsFaults faults_;
  const MpsFaults::Server server_{"GPU-0", 1000};
  const base::Instant start_ = base::Instant() + base::hours(1000);
};

// ---- the driver names a client

TEST_F(MpsFaultsTest, TheClientThatTheDriverNamesIsAtFault) {
  name(kFirstClient, seconds(0));
  fail(kSecondClient, milliseconds(50));
  fail(kFirstClient, milliseconds(60));
  fail(kThirdClient, seconds(20));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
  EXPECT_EQ(cause(kSecondClient), fault_of(kFirstClient));
  EXPECT_EQ(cause(kThirdClient), fault_of(kFirstClient));
}

TEST_F(MpsFaultsTest, TheDriverMayNameItAfterTheFailures) {
  fail(kSecondClient, seconds(0));
  fail(kFirstClient, milliseconds(20));
  name(kFirstClient, milliseconds(130));
  EXPECT_EQ(cause(kSecondClient), fault_of(kFirstClient));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
}

// The driver cleans up after the clients that the fault has ended.
TEST_F(MpsFaultsTest, OfSeveralThatAreNamedTogetherTheFirstIsAtFault) {
  name(kFirstClient, seconds(0));
  name(kSecondClient, milliseconds(10));
  fail(kFirstClient, milliseconds(50));
  fail(kSecondClient, milliseconds(50));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
  EXPECT_EQ(cause(kSecondClient), fault_of(kFirstClient));
}

TEST_F(MpsFaultsTest, AFailureLongAfterItIsTheClientsOwn) {
  name(kFirstClient, seconds(0));
  fail(kFirstClient, seconds(1));
  fail(kSecondClient, MpsFaults::kEndsWithin + seconds(1));
  EXPECT_EQ(cause(kSecondClient), std::nullopt);
}

TEST_F(MpsFaultsTest, OneThatIsNamedSoonAfterAnotherFailureIsAtFaultAllTheSame) {
  fail(kThirdClient, seconds(0));
  fail(kFirstClient, seconds(10));
  fail(kSecondClient, seconds(10));
  name(kFirstClient, seconds(10) + milliseconds(130));
  EXPECT_EQ(cause(kThirdClient), std::nullopt);
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
  EXPECT_EQ(cause(kSecondClient), fault_of(kFirstClient));
}

// ---- no client is named

TEST_F(MpsFaultsTest, AFailureThatIsAloneIsTheClientsOwn) {
  fail(kFirstClient, seconds(0));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
}

TEST_F(MpsFaultsTest, FailuresThatOverlapAreHeldAgainstNoClient) {
  fail(kFirstClient, seconds(0));
  fail(kSecondClient, milliseconds(400));
  EXPECT_EQ(cause(kFirstClient), kUnknownCulprit);
  EXPECT_EQ(cause(kSecondClient), kUnknownCulprit);
}

TEST_F(MpsFaultsTest, ALaterFailureIsNotTheClientsOwnAndTheFirstIs) {
  fail(kFirstClient, seconds(0));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
  fail(kSecondClient, seconds(20));
  EXPECT_EQ(cause(kSecondClient), kUnknownCulprit);
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
}

// Half a minute after the first one it is over, whatever has failed meanwhile.
TEST_F(MpsFaultsTest, AFaultIsNotProlongedByItsVictims) {
  fail(kFirstClient, seconds(0));
  fail(kSecondClient, seconds(20));
  fail(kThirdClient, seconds(40));
  EXPECT_EQ(cause(kThirdClient), std::nullopt);
}

TEST_F(MpsFaultsTest, ARepeatedFailureIsOne) {
  fail(kFirstClient, seconds(0));
  fail(kFirstClient, milliseconds(100));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
}

// A job that fails again and again by itself has no victim in its next attempt.
TEST_F(MpsFaultsTest, OneThatHasBegunSinceIsNoVictim) {
  fail(kFirstClient, seconds(0));
  faults_.take_failure({{kFirstClient.job, 2}, server_, after(seconds(3))}, after(seconds(5)));
  EXPECT_EQ(cause({kFirstClient.job, 2}), std::nullopt);
}

TEST_F(MpsFaultsTest, OtherServersHaveNoPartInIt) {
  name(kFirstClient, seconds(0));
  fail(kFirstClient, seconds(0));
  for (const MpsFaults::Server& other :
       {MpsFaults::Server{"GPU-1", 1000}, MpsFaults::Server{"GPU-0", 1001}}) {
    faults_.take_failure({{model::JobId(9), other.uid}, other, after(seconds(-9))},
                         after(milliseconds(10)));
    EXPECT_EQ(cause({model::JobId(9), other.uid}), std::nullopt);
  }
}

// ---- the server was lost

TEST_F(MpsFaultsTest, TheLossOfTheServerIsNoClientsFault) {
  faults_.take_loss(server_, after(seconds(0)));
  fail(kFirstClient, seconds(2));
  EXPECT_EQ(cause(kFirstClient), kServerLost);
}

TEST_F(MpsFaultsTest, TheLossMayBeToldAfterTheFailure) {
  fail(kFirstClient, seconds(0));
  faults_.take_loss(server_, after(milliseconds(300)));
  EXPECT_EQ(cause(kFirstClient), kServerLost);
}

TEST_F(MpsFaultsTest, AClientThatTheDriverNamesIsAtFaultForTheLossToo) {
  name(kFirstClient, seconds(0));
  faults_.take_loss(server_, after(milliseconds(300)));
  fail(kFirstClient, milliseconds(400));
  fail(kSecondClient, milliseconds(400));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
  EXPECT_EQ(cause(kSecondClient), fault_of(kFirstClient));
}

// The keeper may end the server of a client that is slow to end.
TEST_F(MpsFaultsTest, ALossSomeTimeAfterItClearsNoCulprit) {
  name(kFirstClient, seconds(0));
  fail(kFirstClient, seconds(9));
  faults_.take_loss(server_, after(seconds(10)));
  EXPECT_EQ(cause(kFirstClient), std::nullopt);
}

// ---- what is kept

TEST_F(MpsFaultsTest, OnlyTheLatestFaultsAreKept) {
  name(kFirstClient, seconds(0));
  fail(kSecondClient, seconds(1));
  for (std::uint32_t uid = 1; uid < MpsFaults::kMaxFaults; ++uid) {
    faults_.take_loss({"GPU-1", uid}, after(seconds(2)));
  }
  EXPECT_EQ(cause(kSecondClient), fault_of(kFirstClient));
  faults_.take_loss({"GPU-2", 1}, after(seconds(2)));
  EXPECT_EQ(cause(kSecondClient), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::monitoring
