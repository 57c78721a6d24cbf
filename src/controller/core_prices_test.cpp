#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/price.h"

// These tests check who may change prices and correct the ledger, and what is refused.

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using base::MicroUsd;
using testing::kAdministrator;
using testing::kNoon;
using testing::kOwner;

class CorePrices : public ::testing::Test {
 protected:
  CorePrices() {
    core_.apply_policy({}, "test", kNoon);
    core_.take_batch();
  }

  static model::SetPrice price(std::string type, std::int64_t micros) {
    model::SetPrice command;
    command.price.gpu_type = std::move(type);
    command.price.per_hour = MicroUsd(micros);
    return command;
  }
  // "PERMISSION_DENIED per_gpu_hour"; empty: it is done.
  std::string refused(const model::Caller& by, auto body) {
    const auto reply = core_.command({by, std::move(body)}, kNoon, store::Headroom::kAmple);
    if (reply) return {};
    return std::string(to_string(reply.error().code)) + " " + reply.error().field;
  }

  Core core_;
};

TEST_F(CorePrices, AdministratorsSetAndWithdrawThem) {
  EXPECT_EQ(refused(kAdministrator, price("h100", 5'000'000)), "");
  const model::PriceEntry* const entry =
      core_.state().prices->at("H100-80GB", model::CapacityClass::kOnDemand, "n", kNoon);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->price.gpu_type, "H100");
  EXPECT_EQ(entry->by, kAdministrator.user);
  const std::uint32_t id = entry->id;
  EXPECT_EQ(refused(kAdministrator, model::WithdrawPrice{id}), "");
  EXPECT_EQ(refused(kAdministrator, model::WithdrawPrice{id}), "FAILED_PRECONDITION id");
  EXPECT_EQ(refused(kAdministrator, model::WithdrawPrice{99}), "NOT_FOUND id");
}

TEST_F(CorePrices, OthersChangeNothing) {
  EXPECT_EQ(refused(kOwner, price("H100", 1)), "PERMISSION_DENIED ");
  EXPECT_EQ(refused(kOwner, model::WithdrawPrice{1}), "PERMISSION_DENIED ");
  EXPECT_EQ(
      refused(kOwner, model::CorrectLedger{.user = "ann", .amount = MicroUsd(1), .text = "x"}),
      "PERMISSION_DENIED ");
  EXPECT_TRUE(core_.state().prices->entries.empty());
}

TEST_F(CorePrices, EachChangeIsInTheAuditTrail) {
  EXPECT_EQ(refused(kAdministrator, price("H100", 5'000'000)), "");
  model::SetPrice of_node = price("", 1);
  of_node.price.node = "attic-*";
  EXPECT_EQ(refused(kAdministrator, of_node), "");
  EXPECT_EQ(refused(kAdministrator, model::WithdrawPrice{1}), "");
  EXPECT_EQ(refused(kAdministrator,
                    model::CorrectLedger{.team = "vision", .amount = MicroUsd(-1), .text = "why"}),
            "");
  EXPECT_EQ(refused(kAdministrator, model::WithdrawPrice{1}), "FAILED_PRECONDITION id")
      << "changes nothing";
  std::vector<std::string> trail;
  for (const model::EventRecord& record : core_.take_batch().events) {
    const auto entry = model::audit_entry(record);
    if (!entry) continue;
    EXPECT_EQ(entry->call.by.user, kAdministrator.user);
    trail.push_back(fmt::format("{} {}", to_string(entry->call.action), entry->call.target));
  }
  EXPECT_EQ(trail, (std::vector<std::string>{"set_price H100", "set_price attic-*",
                                             "withdraw_price 1", "correct_ledger vision"}));
}

TEST_F(CorePrices, RefusesWhatIsNoPrice) {
  EXPECT_EQ(refused(kAdministrator, price("", 1)), "INVALID_ARGUMENT gpu_type");
  EXPECT_EQ(refused(kAdministrator, price("H1000", 1)), "INVALID_ARGUMENT gpu_type");
  EXPECT_EQ(refused(kAdministrator, price("H100", -1)), "INVALID_ARGUMENT per_gpu_hour");
  model::SetPrice past = price("H100", 1);
  past.price.from = kNoon + base::seconds(-1);
  EXPECT_EQ(refused(kAdministrator, past), "INVALID_ARGUMENT from");
  model::SetPrice backwards = price("H100", 1);
  backwards.price.from = kNoon + base::hours(2);
  backwards.price.until = kNoon + base::hours(1);
  EXPECT_EQ(refused(kAdministrator, backwards), "INVALID_ARGUMENT until");
  model::SetPrice over = price("H100", 1);
  over.price.until = kNoon;
  EXPECT_EQ(refused(kAdministrator, over), "INVALID_ARGUMENT until") << "it would never count";
  EXPECT_EQ(refused(kAdministrator, price("H100", model::kMaxPricePerHour.value() + 1)),
            "INVALID_ARGUMENT per_gpu_hour");
}

TEST_F(CorePrices, RefusesCorrectionsThatSayTooLittle) {
  using model::CorrectLedger;
  EXPECT_EQ(refused(kAdministrator, CorrectLedger{.amount = MicroUsd(1), .text = "why"}),
            "INVALID_ARGUMENT user");
  EXPECT_EQ(refused(kAdministrator, CorrectLedger{.user = "ann", .text = "why"}),
            "INVALID_ARGUMENT amount");
  EXPECT_EQ(refused(kAdministrator, CorrectLedger{.user = "ann", .amount = MicroUsd(1)}),
            "INVALID_ARGUMENT text");
  EXPECT_EQ(
      refused(kAdministrator, CorrectLedger{.user = "ann", .amount = MicroUsd(-1), .text = "why"}),
      "");
}

}  // namespace
}  // namespace gpu_platform::controller
