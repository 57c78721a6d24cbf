#include "api/alert_calls.h"

#include <algorithm>
#include <future>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/fake_core_test.h"
#include "api/peers_test.h"
#include "os/clock.h"

namespace gpu_platform::api {
namespace {

using base::ErrorCode;

class FakeAlerts final : public AlertSource {
 public:
  std::vector<alerts::Alert> known;
  std::vector<alerts::Silence> made;
  std::string acknowledged;

  std::vector<alerts::Alert> alerts() const override { return known; }
  std::optional<alerts::Alert> find(const std::string& id) const override {
    const auto found = std::ranges::find(known, id, &alerts::Alert::fingerprint);
    return found == known.end() ? std::nullopt : std::optional(*found);
  }
  std::vector<alerts::Rule> rules() const override { return alerts::shipped_rules(); }
  std::vector<alerts::Silence> silences() const override { return made; }
  std::vector<AlertChannelView> channels() const override {
    AlertChannelView view;
    view.name = "chat";
    view.kind = "slack";
    view.waiting = 2;
    view.problem = "no answer";
    return {view};
  }
  base::Result<alerts::Silence> add_silence(alerts::Silence silence) override {
    silence.id = made.size() + 1;
    made.push_back(silence);
    return silence;
  }
  base::Result<alerts::Silence> end_silence(std::uint64_t id) override {
    const auto found = std::ranges::find(made, id, &alerts::Silence::id);
    alerts::Silence silence = *found;
    made.erase(found);
    return silence;
  }
  base::Result<alerts::Alert> acknowledge(const std::string& id, std::string by,
                                          std::string) override {
    acknowledged = id + " " + by;
    return *find(id);
  }
  void test(const std::string& channel, std::string,
            std::function<void(base::Status)> done) override {
    if (channel == "chat") return done({});
    done(base::fail(ErrorCode::kNotFound, "there is no channel " + channel, "name"));
  }
};

class AlertCallsTest : public testing::Test {
 protected:
  AlertCallsTest() {
    alerts_.known = {alert("a1", {{"node", "dgx-h100-1"}}, alerts::Severity::kCritical),
                     alert("a2", {{"job", job_}, {"user", "ada"}}, alerts::Severity::kWarning)};
    alerts_.known[1].rule = "GpuAllocatedIdle";
    access_.alerts = &alerts_;
  }
  static alerts::Alert alert(std::string id, alerts::Labels labels, alerts::Severity severity) {
    alerts::Alert made;
    made.fingerprint = std::move(id);
    made.rule = "GpuHot";
    made.state = alerts::State::kFiring;
    made.severity = severity;
    made.labels = std::move(labels);
    return made;
  }
  std::string listed(const Peer& peer, const v1::ListAlertsRequest& request = {}) {
    const auto page = calls_.list(request, peer);
    if (!page) return page.error().message;
    std::string ids;
    for (const v1::Alert& each : page->alerts()) ids += each.id() + " ";
    return ids;
  }
  // Returns what the call answers: "ok", or the refusal's code.
  template <class Answer, class Request>
  std::string outcome(void (AlertCalls::*call)(const Request&, const Peer&, Resume, Done<Answer>)
                          const,
                      const Request& request, const Peer& peer) {
    std::promise<std::string> answer;
    (calls_.*call)(
        request, peer, [](auto work) { work(); },
        [&](base::Result<Answer> result) {
          answer.set_value(result ? "ok" : std::string(to_string(result.error().code)));
        });
    return answer.get_future().get();
  }
  std::string acknowledge(const std::string& id, const Peer& peer) {
    v1::AcknowledgeAlertRequest request;
    request.set_id(id);
    return outcome(&AlertCalls::acknowledge, request, peer);
  }
  std::string silence(const std::string& name, const std::string& value, const Peer& peer,
                      double seconds = 3600) {
    v1::CreateSilenceRequest request;
    (*request.mutable_matchers())[name] = value;
    request.set_duration_seconds(seconds);
    return outcome(&AlertCalls::create_silence, request, peer);
  }
  std::string end_silence(const std::string& id, const Peer& peer) {
    v1::EndSilenceRequest request;
    request.set_id(id);
    return outcome(&AlertCalls::end_silence, request, peer);
  }
  // The actions that the audit trail has.
  std::vector<model::AuditAction> trail() const {
    std::vector<model::AuditAction> actions;
    for (const model::Command& command : core_.commands()) {
      const auto* const recorded = std::get_if<model::RecordCalls>(&command.body);
      if (recorded != nullptr) actions.push_back(recorded->calls.front().action);
    }
    return actions;
  }

  // What these actions were about.
  std::vector<std::string> targets() const {
    std::vector<std::string> targets;
    for (const model::Command& command : core_.commands()) {
      const auto* const recorded = std::get_if<model::RecordCalls>(&command.body);
      if (recorded != nullptr) targets.push_back(recorded->calls.front().target);
    }
    return targets;
  }

  FakeCore core_;
  std::string job_ = std::to_string(core_.add_job("ada", 1000).value);
  FakeAlerts alerts_;
  CoreAccess access_ = core_.access();
  CallContext context_{access_, {.version = "1.2.3"}};
  AlertCalls calls_{context_};
};

TEST_F(AlertCallsTest, TheAuditTrailSaysWhatASilenceIsAbout) {
  EXPECT_EQ(silence("node", "dgx-*", kRoot), "ok");
  EXPECT_EQ(targets(), std::vector<std::string>{"node=dgx-*"});
}

TEST_F(AlertCallsTest, AnAlertAboutAJobIsForThoseWhoSeeTheJob) {
  EXPECT_EQ(listed(kAda), "a1 a2 ");
  EXPECT_EQ(listed(kBob), "a1 ");
  EXPECT_EQ(listed(kRoot), "a1 a2 ");
  v1::GetAlertRequest request;
  request.set_id("a2");
  EXPECT_TRUE(calls_.get(request, kAda));
  const auto hidden = calls_.get(request, kBob);
  request.set_id("zz");
  const auto absent = calls_.get(request, kBob);
  ASSERT_FALSE(hidden);
  ASSERT_FALSE(absent);
  EXPECT_EQ(hidden.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
}

TEST_F(AlertCallsTest, TheListIsFilteredAndPaged) {
  v1::ListAlertsRequest request;
  request.set_severity(v1::ALERT_SEVERITY_CRITICAL);
  EXPECT_EQ(listed(kRoot, request), "a1 ");
  request = {};
  request.set_rule("GpuAll*");
  EXPECT_EQ(listed(kRoot, request), "a2 ");
  request = {};
  request.set_node("dgx-h100-1");
  EXPECT_EQ(listed(kRoot, request), "a1 ");
  request = {};
  request.add_states(v1::ALERT_STATE_RESOLVED);
  EXPECT_EQ(listed(kRoot, request), "");
  request = {};
  request.set_limit(1);
  const auto first = calls_.list(request, kRoot);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->alerts_size(), 1);
  request.set_page_token(first->next_page());
  EXPECT_EQ(listed(kRoot, request), "a2 ");
}

TEST_F(AlertCallsTest, PagesGoOnBehindOneOfSeveralEndsInASecond) {
  alerts::Alert over = alert("a1", {}, alerts::Severity::kWarning);
  over.state = alerts::State::kResolved;
  alerts_.known.clear();
  for (const int milliseconds : {900, 500, 100}) {
    over.resolved = base::Instant(base::hours(480'000).value()) + base::milliseconds(milliseconds);
    alerts_.known.push_back(over);
  }
  v1::ListAlertsRequest request;
  request.set_limit(1);
  int pages = 0;
  do {
    const auto page = calls_.list(request, kRoot);
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_EQ(page->alerts_size(), 1);
    request.set_page_token(page->next_page());
    ++pages;
  } while (!request.page_token().empty() && pages < 10);
  EXPECT_EQ(pages, 3);
}

TEST_F(AlertCallsTest, OwnersAcknowledgeAlertsOfTheirJobsAndOperatorsAll) {
  EXPECT_EQ(acknowledge("a2", kAda), "ok");
  EXPECT_EQ(alerts_.acknowledged, "a2 ada");
  EXPECT_EQ(acknowledge("a1", kAda), "PERMISSION_DENIED");
  EXPECT_EQ(acknowledge("a2", kBob), "NOT_FOUND");
  EXPECT_EQ(acknowledge("a1", kRoot), "ok");
  const std::vector<model::AuditAction> expected(2, model::AuditAction::kAcknowledge);
  EXPECT_EQ(trail(), expected) << "refusals are the door's to record";
}

TEST_F(AlertCallsTest, OwnersSilenceOneOfTheirJobsAndOperatorsAll) {
  EXPECT_EQ(silence("job", job_, kAda), "ok");
  EXPECT_EQ(silence("job", job_, kBob), "NOT_FOUND");
  EXPECT_EQ(silence("job", "*", kAda), "INVALID_ARGUMENT") << "no pattern";
  EXPECT_EQ(silence("node", "dgx-h100-1", kAda), "PERMISSION_DENIED");
  EXPECT_EQ(silence("node", "*", kRoot), "ok");
  EXPECT_EQ(silence("colour", "red", kRoot), "INVALID_ARGUMENT");
  ASSERT_EQ(alerts_.made.size(), 2U);
  EXPECT_EQ(alerts_.made[0].by, "ada");
  EXPECT_EQ(end_silence("2", kAda), "PERMISSION_DENIED");
  EXPECT_EQ(end_silence("9", kRoot), "NOT_FOUND");
  EXPECT_EQ(end_silence("1", kAda), "ok");
  EXPECT_EQ(end_silence("2", kRoot), "ok");
  EXPECT_TRUE(alerts_.made.empty());
}

TEST_F(AlertCallsTest, ASilenceOfAJobIsForThoseWhoSeeTheJob) {
  ASSERT_EQ(silence("job", job_, kAda), "ok");
  ASSERT_EQ(silence("job", "9*", kRoot), "ok");
  ASSERT_EQ(silence("node", "n1", kRoot), "ok");
  const auto shown = [&](const Peer& peer) {
    const auto page = calls_.silences({}, peer);
    std::string ids;
    for (const v1::Silence& each : page->silences()) ids += each.id() + " ";
    return ids;
  };
  EXPECT_EQ(shown(kRoot), "1 2 3 ");
  EXPECT_EQ(shown(kAda), "1 3 ");
  EXPECT_EQ(shown(kBob), "3 ");
  EXPECT_EQ(end_silence("1", kBob), "NOT_FOUND");
}

TEST_F(AlertCallsTest, ASilenceNamesAMemberOfAnArrayAsItsAlertsDo) {
  const std::uint64_t array = core_.add_array(3, "ada", 1000).value;
  ASSERT_EQ(silence("job", std::to_string(array + 1), kAda), "ok");
  ASSERT_EQ(silence("job", std::to_string(array), kAda), "ok");
  ASSERT_EQ(silence("job", fmt::format("{}_3", array), kAda), "ok");
  EXPECT_EQ(alerts_.made[0].matchers.at("job"), fmt::format("{}_2", array));
  EXPECT_EQ(alerts_.made[1].matchers.at("job"), std::to_string(array)) << "all of it";
  EXPECT_EQ(alerts_.made[2].matchers.at("job"), fmt::format("{}_3", array));
}

TEST_F(AlertCallsTest, AUserCannotTakeAllSilences) {
  for (int i = 0; i < 20; ++i) ASSERT_EQ(silence("job", job_, kAda), "ok");
  EXPECT_EQ(silence("job", job_, kAda), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(silence("job", job_, kRoot), "ok");
  EXPECT_EQ(end_silence("1", kAda), "ok");
  EXPECT_EQ(silence("job", job_, kAda), "ok");
}

TEST_F(AlertCallsTest, ASilenceHasOneEnd) {
  v1::CreateSilenceRequest request;
  (*request.mutable_matchers())["node"] = "n1";
  EXPECT_EQ(outcome(&AlertCalls::create_silence, request, kRoot), "INVALID_ARGUMENT");
  request.set_duration_seconds(60);
  request.mutable_until()->set_seconds(os::wall_now().unix_ns() / 1'000'000'000 + 60);
  EXPECT_EQ(outcome(&AlertCalls::create_silence, request, kRoot), "INVALID_ARGUMENT");
  request.clear_duration_seconds();
  EXPECT_EQ(outcome(&AlertCalls::create_silence, request, kRoot), "ok");
}

TEST_F(AlertCallsTest, RulesAndChannelsAreShownAndTried) {
  const auto rules = calls_.rules({});
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->rules_size(), static_cast<int>(alerts::shipped_rules().size()));
  EXPECT_EQ(rules->rules(0).name(), "GpuHot");
  EXPECT_EQ(rules->rules(0).unit(), "°C");
  EXPECT_EQ(rules->rules(0).origin(), "shipped");
  const auto channels = calls_.channels({});
  ASSERT_TRUE(channels);
  EXPECT_EQ(channels->channels(0).problem(), "no answer");
  v1::TestAlertChannelRequest request;
  request.set_name("chat");
  EXPECT_EQ(outcome(&AlertCalls::test, request, kRoot), "ok");
  request.set_name("none");
  EXPECT_EQ(outcome(&AlertCalls::test, request, kRoot), "NOT_FOUND");
}

TEST_F(AlertCallsTest, WithoutAWatchTheCallsSaySo) {
  access_.alerts = nullptr;
  const auto page = calls_.list({}, kRoot);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(acknowledge("a1", kRoot), "UNAVAILABLE");
}

}  // namespace
}  // namespace gpu_platform::api
