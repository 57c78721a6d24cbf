#include "api/price_calls.h"

#include <algorithm>
#include <future>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/fake_core_test.h"
#include "api/peers_test.h"
#include "os/clock.h"

namespace gpu_platform::api {
namespace {

// H100s cost 5.50 an hour since a day ago. Whether a caller may change that is the core's answer,
// of which the fake core has the same.
class PriceCallsTest : public testing::Test {
 protected:
  PriceCallsTest() {
    model::PriceBook prices;
    model::Billing billing;
    model::Price& listed = billing.prices.emplace_back();
    listed.gpu_type = "H100";
    listed.per_hour = base::MicroUsd(5'500'000);
    prices.follow(billing, yesterday_);
    core_.set_prices(std::move(prices));
  }

  static v1::SetPriceRequest price_of(const std::string& type, const std::string& amount) {
    v1::SetPriceRequest request;
    request.set_gpu_type(type);
    request.set_per_gpu_hour(amount);
    return request;
  }
  static v1::CorrectLedgerRequest correction_of(const std::string& amount) {
    v1::CorrectLedgerRequest request;
    request.set_team("vision");
    request.set_amount(amount);
    request.set_text("the filer was down");
    return request;
  }

  template <class Message, class Request>
  base::Result<Message> call(void (PriceCalls::*method)(const Request&, const Peer&, Resume,
                                                        Done<Message>) const,
                             const Request& request, const Peer& peer) {
    std::promise<base::Result<Message>> answer;
    (calls_.*method)(
        request, peer, [](auto work) { work(); },
        [&](base::Result<Message> made) { answer.set_value(std::move(made)); });
    return answer.get_future().get();
  }
  base::Result<v1::Price> set(const v1::SetPriceRequest& request, const Peer& peer) {
    return call<v1::Price>(&PriceCalls::set, request, peer);
  }
  base::Result<v1::Price> withdraw(std::uint32_t id, const Peer& peer) {
    v1::WithdrawPriceRequest request;
    request.set_id(id);
    return call<v1::Price>(&PriceCalls::withdraw, request, peer);
  }
  base::Result<v1::LedgerCorrection> correct(const v1::CorrectLedgerRequest& request,
                                             const Peer& peer) {
    return call<v1::LedgerCorrection>(&PriceCalls::correct, request, peer);
  }
  // "7 H100 5.00 root; ": each price that is listed. The time unset: as of now.
  std::string listed(base::Instant at = {}) const {
    v1::ListPricesRequest request;
    if (at.is_set()) to_proto(at, *request.mutable_at());
    std::string out;
    for (const v1::Price& price : calls_.list(request).prices()) {
      const std::string capacity = price.capacity().empty() ? "" : " " + price.capacity();
      out += std::to_string(price.id()) + " " + price.gpu_type() + capacity + " " +
             price.per_gpu_hour() + " " + price.set_by() + "; ";
    }
    return out;
  }
  // The refusal's code and field.
  template <class T>
  static std::string refused(const base::Result<T>& result) {
    if (result) return "accepted";
    return std::string(to_string(result.error().code)) + " " + result.error().field;
  }

  const base::Instant now_ = os::wall_now();
  const base::Instant yesterday_ = now_ + base::hours(-24);
  FakeCore core_;
  CoreAccess access_{.commands = core_,
                     .snapshots = core_,
                     .archive = core_,
                     .outputs = core_,
                     .users = core_.users};
  CallContext context_{access_, {.version = "1"}};
  PriceCalls calls_{context_};
};

TEST_F(PriceCallsTest, AnAdminSetsAPriceAndGetsItBack) {
  const auto price = set(price_of("H100", "4.9"), kRoot);
  ASSERT_TRUE(price) << price.error().message;
  EXPECT_EQ(price->gpu_type(), "H100");
  EXPECT_EQ(price->per_gpu_hour(), "4.90");
  EXPECT_EQ(price->set_by(), kRoot.caller.user);
  EXPECT_FALSE(price->has_until());
  EXPECT_EQ(listed(), std::to_string(price->id()) + " H100 4.90 root; " +
                          std::to_string(price->id() + 1) + " H100 spot 1.47 root; ");
}

TEST_F(PriceCallsTest, AWithdrawnPriceIsAnsweredWithItsEndAndTheListCountsAgain) {
  const auto price = set(price_of("H100", "4.9"), kRoot);
  ASSERT_TRUE(price);
  const auto ended = withdraw(price->id(), kRoot);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->id(), price->id());
  EXPECT_TRUE(ended->has_until());
  EXPECT_EQ(listed().find("4.90"), std::string::npos) << listed();
  EXPECT_NE(listed().find("H100 5.50"), std::string::npos) << listed();
  EXPECT_EQ(refused(withdraw(99, kRoot)), "NOT_FOUND id");
}

TEST_F(PriceCallsTest, APriceGivenForSpotStandsInPlaceOfTheDerivedOne) {
  v1::SetPriceRequest spot = price_of("H100", "2");
  spot.set_capacity("spot");
  const auto price = set(spot, kRoot);
  ASSERT_TRUE(price) << price.error().message;
  EXPECT_NE(listed().find(" H100 spot 2.00 root; "), std::string::npos) << listed();
  EXPECT_EQ(listed().find("spot 1.65"), std::string::npos) << listed();
  EXPECT_NE(listed(yesterday_ + base::hours(1)).find("spot 1.65"), std::string::npos);
}

TEST_F(PriceCallsTest, OthersThanAdminsChangeNothing) {
  const std::string before = listed();
  EXPECT_EQ(refused(set(price_of("H100", "1"), kAda)), "PERMISSION_DENIED ");
  EXPECT_EQ(refused(withdraw(1, kAda)), "PERMISSION_DENIED ");
  EXPECT_EQ(refused(correct(correction_of("-1"), kAda)), "PERMISSION_DENIED ");
  EXPECT_EQ(listed(), before);
}

TEST_F(PriceCallsTest, BadInputIsRefusedByItsField) {
  for (const char* const amount :
       {"", "-5", "abc", "1e3", "0.1234567", "5,50", "5.50 USD", "99999999999999999999"}) {
    EXPECT_EQ(refused(set(price_of("H100", amount), kRoot)), "INVALID_ARGUMENT per_gpu_hour")
        << amount;
  }
  v1::SetPriceRequest odd = price_of("H100", "1");
  odd.set_capacity("cheap");
  EXPECT_EQ(refused(set(odd, kRoot)), "INVALID_ARGUMENT capacity");
  EXPECT_EQ(refused(set(price_of("X1", "1"), kRoot)), "INVALID_ARGUMENT gpu_type");
  for (const char* const amount : {"", "abc", "--5", "1.2345678"}) {
    EXPECT_EQ(refused(correct(correction_of(amount), kRoot)), "INVALID_ARGUMENT amount") << amount;
  }
}

TEST_F(PriceCallsTest, ACorrectionIsAnsweredAsItWasMade) {
  const auto made = correct(correction_of("-12.5"), kRoot);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->amount(), "-12.50");
  EXPECT_EQ(made->team(), "vision");
  EXPECT_EQ(made->text(), "the filer was down");
  const auto commands = core_.commands();
  const auto* const command = std::get_if<model::CorrectLedger>(&commands.back().body);
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->amount, base::MicroUsd(-12'500'000));
}

TEST_F(PriceCallsTest, AreListedAsTheyCountedThen) {
  EXPECT_EQ(listed(yesterday_ + base::hours(-1)), "") << "none was known";
  v1::SetPriceRequest later = price_of("H100", "6");
  to_proto(now_ + base::hours(48), *later.mutable_from());
  ASSERT_TRUE(set(later, kRoot));
  const std::string then = "1 H100 5.50 ; 2 H100 spot 1.65 ; ";
  EXPECT_EQ(listed(yesterday_ + base::hours(1)), then);
  EXPECT_EQ(listed(), then + "3 H100 6.00 root; 4 H100 spot 1.80 root; ") << "with what is to come";
  EXPECT_EQ(listed(now_ + base::hours(49)), "3 H100 6.00 root; 4 H100 spot 1.80 root; ");
}

TEST_F(PriceCallsTest, TypesWithoutAPriceAreNamed) {
  EXPECT_TRUE(calls_.list({}).unpriced().empty());
  v1::ListPricesRequest before;
  to_proto(yesterday_ + base::hours(-1), *before.mutable_at());
  const auto answer = calls_.list(before);
  ASSERT_EQ(answer.unpriced_size(), 1);
  EXPECT_EQ(answer.unpriced(0), "H100-80GB");
  EXPECT_EQ(answer.currency(), "USD");
}

TEST_F(PriceCallsTest, InstancesAreThoseOfTheCatalogue) {
  const auto instances = calls_.instances({});
  const auto found = std::ranges::find(instances.instances(), "p5.48xlarge", &v1::Instance::name);
  ASSERT_NE(found, instances.instances().end());
  EXPECT_EQ(found->provider(), "aws");
  EXPECT_EQ(found->gpu_type(), "H100-80GB");
  EXPECT_EQ(found->gpus(), 8U);
}

}  // namespace
}  // namespace gpu_platform::api
