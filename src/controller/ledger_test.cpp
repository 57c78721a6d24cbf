// The lines of the ledger that the core adds: what becomes of the time of each GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/ledger.h"

namespace gpu_platform::controller {
namespace {

using base::minutes;
using base::seconds;
using model::LedgerKind;
using model::LedgerLine;
using model::NotBilled;
using model::RestKind;
using model::TaintEffect;
using model::TaintSource;
using testing::attempt;
using testing::kNoon;
using Lines = std::vector<LedgerLine>;

constexpr base::MicroUsd kPrice{5'500'000};
constexpr base::MicroUsd kHigherPrice{7'000'000};

model::Billing billing_at(base::MicroUsd per_hour) {
  model::Price price;
  price.gpu_type = "H100-80GB";
  price.per_hour = per_hour;
  model::Billing billing;
  billing.prices = {std::move(price)};
  billing.cpu = {base::MicroUsd(20'000), base::MicroUsd(3'000)};
  return billing;
}

// Milliseconds after noon.
std::int64_t after_noon(model::Millis at) {
  return at - model::millis_of(kNoon);
}

Lines of_kind(const Lines& lines, LedgerKind kind) {
  Lines found;
  for (const LedgerLine& line : lines) {
    if (line.kind == kind) found.push_back(line);
  }
  return found;
}

// "idle 0-60000 x7000": all rests of a GPU.
std::vector<std::string> rests_of(const Lines& lines, const std::string& uuid) {
  std::vector<std::string> found;
  for (const LedgerLine& line : of_kind(lines, LedgerKind::kRest)) {
    if (line.gpu_uuid != uuid) continue;
    found.push_back(fmt::format("{} {}-{} x{}", to_string(line.rest), after_noon(line.from),
                                after_noon(line.to), line.share.value()));
  }
  return found;
}

// "0 2000 60000 63000"
std::string times_of(const LedgerLine& line) {
  return fmt::format("{} {} {} {}", after_noon(line.from), after_noon(line.started),
                     after_noon(line.ended), after_noon(line.to));
}

// What the lines, the clock and the holders of a GPU tell of its time, in share-milliseconds.
std::int64_t told_of(const State& state, const model::Gpu& gpu, const Lines& lines,
                     base::Instant now) {
  const model::Millis until = model::millis_of(now);
  std::int64_t told = gpu.clock.rest.value() * (until - model::millis_of(gpu.clock.since));
  for (const LedgerLine& line : lines) {
    if (line.gpu_uuid == gpu.info.uuid) told += line.share.value() * (line.to - line.from);
  }
  for (const model::GpuHolder& holder : gpu.holders) {
    const model::Millis from = model::millis_of(find_attempt(state, holder.attempt)->requested_at);
    told += holder.share.value() * (until - from);
  }
  return told;
}

std::int64_t whole_time(base::Duration there) {
  return base::kWholeGpu.value() * base::whole_milliseconds(there);
}

// ---- lines of attempts, by what the core decides

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    policy_.billing = billing_at(kPrice);
    policy_.preempt_min_runtime = minutes(10);
    policy_.highest_user_priority = model::PriorityClass::kCritical;
  }

  void begin(model::NodeInfo info = testing::node_info("n1", 2)) {
    apply_policy();
    see(execution::NodeObserved{std::move(info)});
  }
  void apply_policy() {
    core_.apply_policy(policy_, "test", now_);
    advance();
  }
  void submit(model::JobSpec spec) {
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    advance();
  }
  void submit(std::uint32_t gpus, std::uint8_t priority = 5) {
    model::JobSpec spec = testing::spec(gpus);
    spec.priority = model::priority_of_number(priority);
    submit(std::move(spec));
  }
  void run(std::uint64_t job, std::uint32_t number = 1) {
    see(execution::Started{attempt(job, number), 5, now_});
  }
  void end(std::uint64_t job, std::uint32_t number = 1) {
    see(testing::ended(attempt(job, number), 0, now_));
    see(execution::Cleaned{attempt(job, number)});
  }
  // A victim obeys.
  void obey(std::uint64_t job) {
    execution::Ended ended;
    ended.attempt = attempt(job);
    ended.at = now_;
    ended.exit.signal = std::uint8_t{15};
    ended.reason = model::EndReason::kPreempted;
    see(ended);
    see(execution::Cleaned{attempt(job)});
  }
  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    advance();
  }
  void advance(base::Duration by = {}) {
    now_ = now_ + by;
    core_.advance(now_);
    const Batch batch = core_.take_batch();
    lines_.insert(lines_.end(), batch.ledger.begin(), batch.ledger.end());
    events_.insert(events_.end(), batch.events.begin(), batch.events.end());
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  Lines held() const { return of_kind(lines_, LedgerKind::kHeld); }
  base::MicroUsd price_of(const LedgerLine& line) const {
    const model::PriceEntry* const entry = core_.state().prices->find(line.price);
    return entry == nullptr ? base::MicroUsd(-1) : entry->price.per_hour;
  }
  void expect_balance() const {
    for (const model::Gpu& gpu : core_.state().nodes.find(1)->gpus) {
      EXPECT_EQ(told_of(core_.state(), gpu, lines_, now_), whole_time(now_ - kNoon))
          << gpu.info.uuid;
    }
  }

  model::Policy policy_;
  Core core_;
  base::Instant now_ = kNoon;
  Lines lines_;
  std::vector<model::EventRecord> events_;
};

TEST_F(LedgerTest, TellsAnAttemptFromItsRequestToItsRelease) {
  begin(testing::node_info("n1", 1));
  advance(minutes(1));
  model::JobSpec spec = testing::spec(1);
  spec.project = "llm";
  spec.labels = {{"stage", "eval"}};
  submit(spec);
  EXPECT_EQ(rests_of(lines_, "n1-0"), std::vector<std::string>{"idle 0-60000 x7000"});
  advance(seconds(2));
  run(1);
  advance(minutes(9));
  see(testing::ended(attempt(1), 0, now_));
  EXPECT_EQ(held(), Lines()) << "it still holds the GPU";
  advance(seconds(3));
  see(execution::Cleaned{attempt(1)});
  ASSERT_EQ(held().size(), 1U);
  const LedgerLine line = held()[0];
  EXPECT_EQ(times_of(line), "60000 62000 602000 605000");
  EXPECT_EQ(line.attempt, attempt(1));
  EXPECT_EQ(line.segment, 0U);
  EXPECT_EQ(line.node, "n1");
  EXPECT_EQ(line.gpu_uuid, "n1-0");
  EXPECT_EQ(line.gpu_type, "H100-80GB");
  EXPECT_EQ(line.share, base::kWholeGpu);
  EXPECT_EQ(line.user, "ann");
  EXPECT_EQ(line.project, "llm");
  EXPECT_EQ(line.job_name, "job");
  EXPECT_EQ(line.labels, spec.labels);
  EXPECT_EQ(line.not_billed, NotBilled::kBilled);
  EXPECT_EQ(price_of(line), kPrice);
  EXPECT_EQ(price_of(lines_[0]), kPrice) << "idle time has its price, too";
  advance(seconds(5));
  expect_balance();
}

TEST_F(LedgerTest, EachAttemptHasLinesOfItsOwnAndOneThatNeverRanIsNotBilled) {
  begin();
  submit(1);
  advance(seconds(4));
  execution::Ended failed;
  failed.attempt = attempt(1);
  failed.at = now_;
  failed.reason = model::EndReason::kLaunchFailed;
  see(failed);
  advance(seconds(1));
  see(execution::Cleaned{attempt(1)});
  advance(minutes(1));
  advance();
  run(1, 2);
  advance(minutes(1));
  end(1, 2);
  const Lines lines = held();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(times_of(lines[0]), "0 5000 5000 5000");
  EXPECT_EQ(lines[0].not_billed, NotBilled::kPlatform);
  EXPECT_EQ(lines[1].attempt, attempt(1, 2));
  EXPECT_EQ(lines[1].ended - lines[1].started, 60'000);
  EXPECT_EQ(lines[1].not_billed, NotBilled::kBilled);
  expect_balance();
}

TEST_F(LedgerTest, AGpuThatIsKeptForAJobIsHeldUntilTheLastVictimHasGone) {
  begin();
  submit(1, 8);
  run(1);
  submit(1, 8);
  run(2);
  advance(minutes(11));
  submit(2, 3);
  advance(seconds(1));
  const std::uint32_t first =
      find_attempt(core_.state(), attempt(1))->allocation.nodes.at(0).grants.at(0).gpu_index;
  obey(1);
  advance(seconds(7));
  obey(2);
  EXPECT_EQ(find_attempt(core_.state(), attempt(3))->allocation.gpu_count(), 2U);
  EXPECT_EQ(rests_of(lines_, fmt::format("n1-{}", first)),
            std::vector<std::string>{"held 661000-668000 x7000"});
  ASSERT_EQ(held().size(), 2U);
  EXPECT_EQ(held()[0].not_billed, NotBilled::kBilled) << "its owner had chosen the class";
  expect_balance();
}

TEST_F(LedgerTest, PreemptedRunsAreFreeWhereTheSiteSaysSo) {
  model::Billing billing = billing_at(kPrice);
  billing.preempted_is_free = true;
  policy_.billing = std::move(billing);
  begin(testing::node_info("n1", 1));
  submit(1, 8);
  run(1);
  advance(minutes(11));
  submit(1, 3);
  advance(seconds(1));
  obey(1);
  ASSERT_EQ(held().size(), 1U);
  EXPECT_EQ(held()[0].not_billed, NotBilled::kPreempted);
  expect_balance();
}

TEST_F(LedgerTest, TwoHalvesOfAGpuAndWhatIsLeftOfIt) {
  policy_.sharing.is_on = true;
  model::NodeInfo info = testing::node_info("n1", 1);
  info.share_modes = {model::ShareMode::kTimeSlice, model::ShareMode::kMps};
  info.watches_gpu_memory = true;
  begin(std::move(info));
  model::JobSpec half = testing::spec(1);
  half.request.share_per_gpu = base::GpuShare(3500);
  advance(minutes(1));
  submit(half);
  run(1);
  advance(minutes(1));
  submit(half);
  run(2);
  advance(minutes(1));
  end(1);
  advance(minutes(1));
  end(2);
  const std::vector<std::string> rests = {"idle 0-60000 x7000", "idle 60000-120000 x3500",
                                          "idle 180000-240000 x3500"};
  EXPECT_EQ(rests_of(lines_, "n1-0"), rests);
  const Lines lines = held();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].share, base::GpuShare(3500));
  EXPECT_NE(lines[0].mode, model::ShareMode::kNone);
  EXPECT_EQ(times_of(lines[0]), "60000 60000 180000 180000");
  EXPECT_EQ(times_of(lines[1]), "120000 120000 240000 240000");
  expect_balance();
}

TEST_F(LedgerTest, LinesAreCutWhereThePriceChanges) {
  begin();
  advance(minutes(1));
  submit(1);
  advance(seconds(1));
  run(1);
  advance(minutes(10));
  policy_.billing = billing_at(kHigherPrice);
  apply_policy();
  advance(minutes(5));
  see(testing::ended(attempt(1), 0, now_));
  advance(seconds(2));
  see(execution::Cleaned{attempt(1)});
  const Lines lines = held();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(times_of(lines[0]), "60000 61000 661000 661000");
  EXPECT_EQ(times_of(lines[1]), "661000 661000 961000 963000");
  EXPECT_EQ(lines[0].segment, 0U);
  EXPECT_EQ(lines[1].segment, 1U);
  EXPECT_EQ(price_of(lines[0]), kPrice);
  EXPECT_EQ(price_of(lines[1]), kHigherPrice);
  submit(2);  // the other GPU was idle all the time
  const std::string other = lines[0].gpu_uuid == "n1-0" ? "n1-1" : "n1-0";
  const std::vector<std::string> rests = {"idle 0-661000 x7000", "idle 661000-963000 x7000"};
  EXPECT_EQ(rests_of(lines_, other), rests);
  expect_balance();
}

TEST_F(LedgerTest, AJobWithoutGpusHasALineOfItsNode) {
  begin();
  model::JobSpec spec = testing::spec(0);
  spec.request.cpus = 2;
  spec.request.memory = base::kGiB * 3 + base::Bytes(1);
  submit(spec);
  run(1);
  advance(minutes(1));
  end(1);
  ASSERT_EQ(lines_.size(), 1U);
  const LedgerLine& line = lines_[0];
  EXPECT_EQ(line.kind, LedgerKind::kHeld);
  EXPECT_EQ(line.node, "n1");
  EXPECT_EQ(line.gpu_uuid, "");
  EXPECT_EQ(line.share, base::GpuShare());
  EXPECT_EQ(line.cpus, 2U);
  EXPECT_EQ(line.memory_mib, 3073);
  EXPECT_EQ(line.core_hour, base::MicroUsd(20'000));
  EXPECT_EQ(line.gib_hour, base::MicroUsd(3'000));
  EXPECT_EQ(times_of(line), "0 0 60000 60000");
}

TEST_F(LedgerTest, TheSameEventsMakeTheSameLines) {
  begin();
  submit(1, 8);
  run(1);
  advance(minutes(11));
  submit(2, 3);
  advance(seconds(1));
  obey(1);
  run(2);
  advance(minutes(3));
  end(2);
  State again;
  OwnOutbox outbox;
  for (const model::EventRecord& record : events_) apply(again, record, outbox);
  EXPECT_EQ(outbox.ledger, lines_);
  EXPECT_EQ(state_hash(again), state_hash(core_.state()));
  EXPECT_EQ(again.accounts_since, kNoon);
  const auto decoded = decode_state(encode_state(again));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->accounts_since, kNoon);
  EXPECT_EQ(decoded->nodes.find(1)->gpus.at(0).clock, again.nodes.find(1)->gpus.at(0).clock);
}

// ---- what becomes of a GPU that no attempt holds, by single events

class RestTest : public ::testing::Test {
 protected:
  RestTest() {
    model::Policy policy;
    policy.billing = billing_at(kPrice);
    happens(0, model::PolicyApplied{policy, "test"});
    happens(0, model::NodeSeen{model::NodeId(1), testing::node_info("n1", 2), true});
  }

  // So many seconds after noon.
  void happens(std::int64_t second, model::Event event) {
    now_ = std::max(now_, kNoon + seconds(second));
    apply(state_,
          {model::EventSeq(state_.seq.value + 1), kNoon + seconds(second), std::move(event)},
          {departed_, lines_});
    EXPECT_EQ(check_invariants(state_), std::vector<std::string>());
  }
  void taint(std::int64_t second, TaintSource source, TaintEffect effect) {
    happens(second, taint_event(source, effect, 0));
  }
  void lift(std::int64_t second, TaintSource source) {
    model::TaintChanged event = taint_event(source, TaintEffect::kOut, 0);
    event.is_lifted = true;
    happens(second, event);
  }
  static model::TaintChanged taint_event(TaintSource source, TaintEffect effect,
                                         std::optional<std::uint32_t> gpu) {
    return {model::NodeId(1), gpu, {source, effect, "why", "root", {}}, false};
  }
  void expect_balance(std::uint32_t gpu, std::int64_t seen_at = 0) const {
    EXPECT_EQ(told_of(state_, state_.nodes.find(1)->gpus.at(gpu), lines_, now_),
              whole_time(now_ - kNoon - seconds(seen_at)));
  }
  std::vector<std::string> rests(const std::string& uuid = "n1-0") const {
    return rests_of(lines_, uuid);
  }

  State state_;
  std::vector<model::Job> departed_;
  Lines lines_;
  base::Instant now_;
};

TEST_F(RestTest, EachPartyThatKeepsAGpuFromWorkHasItsKind) {
  struct Case {
    TaintSource source;
    TaintEffect effect;
    std::string kind;
  };
  const Case cases[] = {{TaintSource::kOperator, TaintEffect::kOut, "offline"},
                        {TaintSource::kDriver, TaintEffect::kOut, "offline"},
                        {TaintSource::kReset, TaintEffect::kOut, "resetting"},
                        {TaintSource::kOperator, TaintEffect::kNoNewWork, "draining"},
                        {TaintSource::kHealth, TaintEffect::kNoNewWork, "draining"},
                        {TaintSource::kHealth, TaintEffect::kDegraded, "degraded"},
                        {TaintSource::kProcesses, TaintEffect::kAvoided, "others"},
                        {TaintSource::kCluster, TaintEffect::kAvoided, "others"}};
  std::int64_t second = 0;
  std::vector<std::string> expected;
  for (const Case& each : cases) {
    taint(second + 10, each.source, each.effect);
    lift(second + 30, each.source);
    expected.push_back(fmt::format("idle {}-{} x7000", second * 1000, (second + 10) * 1000));
    expected.push_back(
        fmt::format("{} {}-{} x7000", each.kind, (second + 10) * 1000, (second + 30) * 1000));
    second += 30;
  }
  EXPECT_EQ(rests(), expected);
  EXPECT_EQ(rests("n1-1"), std::vector<std::string>()) << "it was idle all the time";
  expect_balance(0);
  expect_balance(1);
}

TEST_F(RestTest, TheWorstOfTwoPartiesCounts) {
  taint(10, TaintSource::kProcesses, TaintEffect::kAvoided);
  taint(20, TaintSource::kHealth, TaintEffect::kDegraded);
  taint(30, TaintSource::kOperator, TaintEffect::kNoNewWork);
  taint(40, TaintSource::kDriver, TaintEffect::kOut);
  lift(50, TaintSource::kOperator);
  lift(60, TaintSource::kDriver);
  lift(70, TaintSource::kHealth);
  lift(80, TaintSource::kProcesses);
  const std::vector<std::string> expected = {
      "idle 0-10000 x7000",         "others 10000-20000 x7000",  "degraded 20000-30000 x7000",
      "draining 30000-40000 x7000", "offline 40000-60000 x7000", "degraded 60000-70000 x7000",
      "others 70000-80000 x7000"};
  EXPECT_EQ(rests(), expected);
  expect_balance(0);
}

TEST_F(RestTest, ANodeThatIsLostOrDrainsTakesItsGpusAlong) {
  happens(10, taint_event(TaintSource::kOperator, TaintEffect::kNoNewWork, std::nullopt));
  happens(20, taint_event(TaintSource::kConnection, TaintEffect::kOut, std::nullopt));
  model::TaintChanged back = taint_event(TaintSource::kConnection, TaintEffect::kOut, std::nullopt);
  back.is_lifted = true;
  happens(30, back);
  const std::vector<std::string> expected = {"idle 0-10000 x7000", "draining 10000-20000 x7000",
                                             "offline 20000-30000 x7000"};
  EXPECT_EQ(rests("n1-0"), expected);
  EXPECT_EQ(rests("n1-1"), expected);
  expect_balance(0);
}

TEST_F(RestTest, AReservationThatBeginsAndEndsWithoutAnEventCutsIdleTime) {
  model::Reservation reservation;
  reservation.name = "service";
  reservation.begin = kNoon + seconds(100);
  reservation.end = kNoon + seconds(200);
  reservation.maintenance = true;
  reservation.parts = {{model::NodeId(1), 1, false}};
  happens(10, model::ReservationMade{reservation});
  // The daemon was away at its end.
  happens(250, model::ReservationEnded{"service", ""});
  taint(300, TaintSource::kOperator, TaintEffect::kOut);
  const std::vector<std::string> expected = {"idle 0-100000 x7000", "reserved 100000-200000 x7000",
                                             "idle 200000-250000 x7000",
                                             "idle 250000-300000 x7000"};
  EXPECT_EQ(rests(), expected);
  expect_balance(0);
  expect_balance(1);
}

TEST_F(RestTest, AReservationThatIsCancelledWasOneUntilThen) {
  model::Reservation reservation;
  reservation.name = "service";
  reservation.begin = kNoon + seconds(100);
  reservation.end = kNoon + seconds(200);
  reservation.maintenance = true;
  reservation.parts = {{model::NodeId(1), 3, true}};
  happens(10, model::ReservationMade{reservation});
  happens(150, model::ReservationEnded{"service", "root"});
  const std::vector<std::string> expected = {"idle 0-100000 x7000", "reserved 100000-150000 x7000"};
  EXPECT_EQ(rests("n1-0"), expected);
  EXPECT_EQ(rests("n1-1"), expected);
}

TEST_F(RestTest, AGpuWhosePlaceGoesToAnotherEndsWithItsTimeTold) {
  taint(10, TaintSource::kDriver, TaintEffect::kOut);
  model::NodeInfo info = testing::node_info("n1", 2);
  info.gpus.erase(info.gpus.begin());
  happens(20, model::NodeSeen{model::NodeId(1), info, true});
  info.gpus.push_back(info.gpus[0]);
  info.gpus[1].uuid = "new";
  happens(30, model::NodeSeen{model::NodeId(1), info, true});
  ASSERT_EQ(state_.nodes.find(1)->gpus.at(0).info.uuid, "new");
  EXPECT_EQ(rests("n1-0").back(), "offline 20000-30000 x7000");
  std::int64_t told = 0;
  for (const LedgerLine& line : lines_) {
    if (line.gpu_uuid == "n1-0") told += line.share.value() * (line.to - line.from);
  }
  EXPECT_EQ(told, whole_time(seconds(30)));
  taint(40, TaintSource::kOperator, TaintEffect::kOut);
  EXPECT_EQ(rests("new"), std::vector<std::string>{"idle 30000-40000 x7000"});
  expect_balance(0, 30);
  expect_balance(1);
}

TEST_F(RestTest, AnotherClassOfTheNodeBeginsAnotherInterval) {
  model::NodeInfo info = testing::node_info("n1", 2);
  info.capacity = model::CapacityClass::kSpot;
  happens(10, model::NodeSeen{model::NodeId(1), info, true});
  taint(20, TaintSource::kOperator, TaintEffect::kOut);
  ASSERT_EQ(rests("n1-0").size(), 2U);
  EXPECT_EQ(lines_.front().capacity, model::CapacityClass::kOnDemand);
  EXPECT_EQ(lines_.back().capacity, model::CapacityClass::kSpot);
  expect_balance(0);
}

TEST_F(RestTest, NoLineIsOfLessThanAMillisecondOrOfATimeThatRunsBackwards) {
  taint(10, TaintSource::kOperator, TaintEffect::kOut);
  lift(10, TaintSource::kOperator);
  EXPECT_EQ(rests(), std::vector<std::string>{"idle 0-10000 x7000"});
  happens(-3600, model::StoreRepaired{});
  taint(20, TaintSource::kOperator, TaintEffect::kOut);
  const std::vector<std::string> expected = {"idle 0-10000 x7000", "idle 10000-20000 x7000"};
  EXPECT_EQ(rests(), expected);
  expect_balance(0);
}

TEST_F(RestTest, ACorrectionIsALineOfItsOwn) {
  happens(60, model::LedgerCorrected{.team = "physics",
                                     .amount = base::MicroUsd(-12'500'000),
                                     .text = "the switch was down",
                                     .by = "root"});
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_EQ(lines_[0].kind, LedgerKind::kCorrection);
  EXPECT_EQ(times_of(lines_[0]), "60000 60000 60000 60000");
  EXPECT_EQ(lines_[0].team, "physics");
  EXPECT_EQ(lines_[0].amount, base::MicroUsd(-12'500'000));
  EXPECT_EQ(lines_[0].text, "the switch was down");
  EXPECT_EQ(lines_[0].by, "root");
}

}  // namespace
}  // namespace gpu_platform::controller
