#include "alerts/alert_book.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "alerts/alerts_fixture.h"

namespace gpu_platform::alerts {
namespace {

class AlertBookTest : public testing::Test {
 protected:
  static AlertBook::Settings settings() {
    AlertBook::Settings settings;
    settings.rules = shipped_rules();
    for (Rule& rule : settings.rules) rule.hold = {};
    settings.channels = {"chat"};
    return settings;
  }
  static Fact heat(std::shared_ptr<const Subject> subject, std::int64_t value) {
    return fact(Signal::kGpuTemperature, std::move(subject), value);
  }
  void see(AlertBook& book, const std::string& node, int gpus, std::int64_t value,
           base::Duration at, const std::string& rack = {}) {
    std::vector<Fact> facts;
    for (int i = 0; i < gpus; ++i) facts.push_back(heat(gpu_subject(node, i, rack), value));
    book.take("node " + node, facts, moment(at));
  }
  // What outlives a daemon.
  void keep(AlertBook& book) {
    for (AlertBook::Note& note : book.take_changes()) {
      if (note.bytes) {
        notes_.insert_or_assign(note.name, note);
      } else {
        notes_.erase(note.name);
      }
    }
  }
  AlertBook restarted(base::Duration at, AlertBook::Settings with = settings()) {
    AlertBook book(std::move(with));
    std::vector<AlertBook::Note> notes;
    for (const auto& [name, note] : notes_) notes.push_back(note);
    EXPECT_EQ(book.restore(notes, moment(at)), 0U);
    return book;
  }
  static Silence silence(std::string name, std::string pattern, base::Duration until) {
    Silence made;
    made.matchers = {{std::move(name), std::move(pattern)}};
    made.until = moment(until).at;
    made.by = "ann";
    return made;
  }

  std::map<std::string, AlertBook::Note> notes_;
};

TEST_F(AlertBookTest, OneNodeIsOneMessageAndItsEndAnother) {
  AlertBook book(settings());
  see(book, "n1", 8, 87, {});
  EXPECT_TRUE(book.due(moment(base::seconds(4))).empty()) << "others of the group may follow";
  ASSERT_TRUE(book.next());
  EXPECT_EQ(*book.next(), moment(base::seconds(5)).steady);
  const auto first = book.due(moment(base::seconds(5)));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].group, "node n1");
  EXPECT_EQ(first[0].firing.size(), 8U);
  see(book, "n1", 8, 60, base::seconds(30));
  EXPECT_TRUE(book.due(moment(base::seconds(34))).empty()) << "another may begin";
  const auto second = book.due(moment(base::seconds(35)));
  ASSERT_EQ(second.size(), 1U) << "that all is over does not wait for five minutes";
  EXPECT_TRUE(second[0].firing.empty());
  EXPECT_EQ(second[0].resolved.size(), 8U);
  EXPECT_TRUE(book.due(moment(base::hours(5))).empty());
  EXPECT_FALSE(book.next());
}

TEST_F(AlertBookTest, AnAdditionAndTheEndOfAPartOfItsGroupWaitForTheInterval) {
  AlertBook book(settings());
  const auto of_two = [&](std::int64_t first, std::int64_t second, base::Duration at) {
    book.take("node n1",
              std::vector{heat(gpu_subject("n1", 0), first), heat(gpu_subject("n1", 1), second)},
              moment(at));
  };
  of_two(87, 60, {});
  ASSERT_EQ(book.due(moment(base::seconds(5))).size(), 1U);
  of_two(87, 87, base::seconds(30));
  EXPECT_TRUE(book.due(moment(base::seconds(60))).empty());
  of_two(60, 87, base::seconds(60));
  EXPECT_TRUE(book.due(moment(base::seconds(304))).empty());
  const auto both = book.due(moment(base::seconds(305)));
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].firing.size(), 1U);
  EXPECT_EQ(both[0].resolved.size(), 1U);
  of_two(60, 60, base::seconds(310));
  EXPECT_EQ(book.due(moment(base::seconds(315))).size(), 1U);
}

TEST_F(AlertBookTest, WhatComesAndGoesIsToldAtMostTwiceInAnInterval) {
  AlertBook book(settings());
  std::size_t messages = 0;
  for (int second = 0; second < 1'200; ++second) {
    if (second % 30 == 0) {
      see(book, "n1", 1, second % 60 == 0 ? 87 : 60, base::seconds(second));
    }
    messages += book.due(moment(base::seconds(second))).size();
  }
  EXPECT_GE(messages, 4U) << "in each of the four intervals it is told";
  EXPECT_LE(messages, 8U);
}

TEST_F(AlertBookTest, AnEndThatANewBeginOvertookIsNotToldAfterARestart) {
  AlertBook first(settings());
  const auto of_two = [&](AlertBook& book, std::int64_t value, base::Duration at) {
    book.take("node n1",
              std::vector{heat(gpu_subject("n1", 0), value), heat(gpu_subject("n1", 1), 87)},
              moment(at));
  };
  of_two(first, 87, {});
  ASSERT_EQ(first.due(moment(base::seconds(5))).size(), 1U);
  of_two(first, 60, base::seconds(30));
  of_two(first, 87, base::seconds(60));
  ASSERT_EQ(first.due(moment(base::seconds(305))).size(), 1U);
  keep(first);
  AlertBook second = restarted(base::minutes(6));
  of_two(second, 87, base::minutes(6));
  EXPECT_TRUE(second.due(moment(base::minutes(20))).empty()) << "both fire, and were told";
}

TEST_F(AlertBookTest, TheEndOfAStormIsToldAtOnce) {
  AlertBook book(settings());
  for (int node = 0; node < 20; ++node) see(book, "n" + std::to_string(node), 8, 87, {});
  ASSERT_EQ(book.due(moment(base::seconds(5))).size(), 1U);
  for (int node = 0; node < 19; ++node) {
    see(book, "n" + std::to_string(node), 8, 60, base::seconds(30));
  }
  EXPECT_TRUE(book.due(moment(base::seconds(40))).empty()) << "one node is still hot";
  see(book, "n19", 8, 60, base::seconds(50));
  const auto over = book.due(moment(base::seconds(55)));
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].resolved.size() + over[0].more, 160U);
}

TEST_F(AlertBookTest, AlertmanagerIsToldEachChangeAtOnceAndWhatFiresAgainAndAgain) {
  AlertBook::Settings with = settings();
  with.manners = {{"chat", Manner::kAtOnce}};
  AlertBook first(with);
  see(first, "n1", 1, 87, {});
  const auto fired = first.due(moment({}));
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_FALSE(fired[0].is_repeated);
  EXPECT_TRUE(first.due(moment(base::seconds(59))).empty());
  const auto again = first.due(moment(base::seconds(60)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].is_repeated);
  EXPECT_EQ(again[0].firing.size(), 1U);
  EXPECT_NE(again[0].key, fired[0].key);
  keep(first);

  AlertBook second = restarted(base::seconds(70), with);
  ASSERT_EQ(second.due(moment(base::seconds(70))).size(), 1U) << "Alertmanager may be new, too";
  see(second, "n1", 1, 60, base::seconds(71));
  const auto over = second.due(moment(base::seconds(71)));
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].resolved.size(), 1U);
  EXPECT_TRUE(second.due(moment(base::hours(1))).empty()) << "what is over is not repeated";
}

TEST_F(AlertBookTest, AlertmanagerIsToldEveryAlertOfAStorm) {
  AlertBook::Settings with = settings();
  with.manners = {{"chat", Manner::kAtOnce}};
  AlertBook book(with);
  for (int node = 0; node < 1'250; ++node) see(book, "n" + std::to_string(node), 8, 87, {});
  const auto told = [&](base::Duration at) {
    std::size_t count = 0;
    for (const Notification& each : book.due(moment(at))) {
      EXPECT_LE(each.firing.size(), 50U);
      EXPECT_EQ(each.more, 0U);
      count += each.firing.size();
    }
    return count;
  };
  EXPECT_EQ(told({}), 10'000U);
  EXPECT_EQ(told(base::minutes(1)), 10'000U);
}

TEST_F(AlertBookTest, OwnersAreToldOfTheirOwnJobsAlone) {
  AlertBook::Settings with = settings();
  with.manners = {{"chat", Manner::kByOwner}};
  AlertBook book(with);
  see(book, "n1", 1, 87, {});
  std::vector<Fact> idle;
  for (int job = 0; job < 30; ++job) {
    const std::string user = job < 2 ? "ann" : "u" + std::to_string(job);
    Subject subject{std::to_string(job), {{"job", std::to_string(job)}, {"user", user}}};
    idle.push_back(fact(Signal::kIdleAllocation, std::make_shared<const Subject>(subject), 1));
  }
  book.take("jobs", idle, moment({}));
  std::map<std::string, std::size_t> told;
  for (const Notification& each : book.due(moment(base::seconds(5)))) {
    EXPECT_TRUE(told.emplace(each.user, each.firing.size()).second);
    for (const Alert& alert : each.firing) EXPECT_EQ(alert.labels.at("user"), each.user);
  }
  EXPECT_EQ(told.size(), 29U) << "one message to each, and none without an owner";
  EXPECT_EQ(told["ann"], 2U);
}

TEST_F(AlertBookTest, AReloadThatTurnsAChannelToOwnersMixesNone) {
  AlertBook book(settings());
  std::vector<Fact> idle;
  for (const char* const user : {"ann", "bob"}) {
    Subject subject{user, {{"job", "1"}, {"user", user}}};
    idle.push_back(fact(Signal::kIdleAllocation, std::make_shared<const Subject>(subject), 1));
  }
  book.take("jobs", idle, moment({}));
  AlertBook::Settings with = settings();
  with.manners = {{"chat", Manner::kByOwner}};
  book.set(with, moment(base::seconds(1)));
  const auto told = book.due(moment(base::seconds(6)));
  ASSERT_EQ(told.size(), 2U);
  for (const Notification& each : told) EXPECT_EQ(each.firing.size(), 1U);
}

TEST_F(AlertBookTest, OneRackIsOneMessage) {
  AlertBook book(settings());
  for (int node = 0; node < 40; ++node) see(book, "n" + std::to_string(node), 8, 87, {}, "r7");
  const auto messages = book.due(moment(base::seconds(5)));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].group, "rack r7");
  EXPECT_EQ(messages[0].firing.size(), 50U);
  EXPECT_EQ(messages[0].more, 40U * 8 - 50);
}

TEST_F(AlertBookTest, AStormOfTenThousandGpusIsAHandfulOfMessages) {
  AlertBook book(settings());
  std::size_t messages = 0;
  std::uint64_t told = 0;
  // The nodes fail over ten minutes, and each is seen once more.
  for (int node = 0; node < 1250; ++node) {
    const base::Duration at = base::milliseconds(480 * node);
    see(book, "n" + std::to_string(node), 8, 87, at);
    for (const Notification& each : book.due(moment(at))) {
      ++messages;
      told += each.firing.size() + each.more;
    }
  }
  for (const Notification& each : book.due(moment(base::minutes(30)))) {
    ++messages;
    told += each.firing.size() + each.more;
  }
  EXPECT_EQ(told, 10'000U) << "each is told once";
  EXPECT_LE(messages, 40U);
  EXPECT_GE(messages, 2U);
}

TEST_F(AlertBookTest, NothingIsToldTwiceAndEndsAreToldAfterAKill) {
  AlertBook first(settings());
  see(first, "n1", 1, 87, {});
  keep(first);
  const auto fired = first.due(moment(base::seconds(5)));
  ASSERT_EQ(fired.size(), 1U);
  keep(first);

  AlertBook second = restarted(base::minutes(1));
  see(second, "n1", 1, 87, base::minutes(1));
  EXPECT_TRUE(second.due(moment(base::minutes(20))).empty()) << "it was told";
  see(second, "n1", 1, 50, base::minutes(21));
  keep(second);

  AlertBook third = restarted(base::minutes(22));
  see(third, "n1", 1, 50, base::minutes(22));
  const auto over = third.due(moment(base::minutes(23)));
  ASSERT_EQ(over.size(), 1U);
  ASSERT_EQ(over[0].resolved.size(), 1U);
  EXPECT_EQ(over[0].resolved[0].fingerprint, fired[0].firing[0].fingerprint);
  keep(third);

  AlertBook fourth = restarted(base::minutes(30));
  EXPECT_TRUE(fourth.due(moment(base::hours(1))).empty());
  ASSERT_EQ(fourth.alerts(moment(base::hours(1)).at).size(), 1U) << "it is listed";
}

TEST_F(AlertBookTest, ANewsThatWasNotSentBeforeAKillHasTheSameKeyAfterIt) {
  AlertBook first(settings());
  see(first, "n1", 2, 87, {});
  keep(first);
  const auto lost = first.due(moment(base::seconds(5)));
  AlertBook second = restarted(base::minutes(1));
  see(second, "n1", 2, 87, base::minutes(1));
  const auto again = second.due(moment(base::minutes(2)));
  ASSERT_EQ(lost.size(), 1U);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].key, lost[0].key);
}

TEST_F(AlertBookTest, ASilenceSendsNothingAndWhatLastsIsToldAtItsEnd) {
  AlertBook book(settings());
  const auto made = book.add(silence("node", "n*", base::hours(1)), moment({}));
  ASSERT_TRUE(made) << made.error().message;
  see(book, "n1", 1, 87, base::minutes(1));
  EXPECT_TRUE(book.due(moment(base::minutes(30))).empty());
  EXPECT_EQ(book.alerts(moment(base::minutes(30)).at)[0].silence, made->id);
  see(book, "x1", 1, 87, base::minutes(31));
  EXPECT_EQ(book.due(moment(base::minutes(32))).size(), 1U) << "it is about others";
  EXPECT_TRUE(book.due(moment(base::hours(1))).empty()) << "its group waits";
  EXPECT_TRUE(book.silences(moment(base::hours(1)).at).empty());
  const auto late = book.due(moment(base::hours(1) + base::seconds(5)));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].group, "node n1");
}

TEST_F(AlertBookTest, ASilenceOutlivesTheDaemonAndIsEndedByHand) {
  AlertBook first(settings());
  const auto made = first.add(silence("rule", "Gpu*", base::hours(9)), moment({}));
  ASSERT_TRUE(made);
  keep(first);
  AlertBook second = restarted(base::minutes(1));
  see(second, "n1", 1, 87, base::minutes(1));
  EXPECT_TRUE(second.due(moment(base::minutes(2))).empty());
  EXPECT_EQ(second.end_silence(99, moment(base::minutes(2))).error().code,
            base::ErrorCode::kNotFound);
  ASSERT_TRUE(second.end_silence(made->id, moment(base::minutes(2))));
  EXPECT_EQ(second.due(moment(base::minutes(3))).size(), 1U);
  keep(second);
  EXPECT_FALSE(notes_.contains("silence/1"));
}

TEST_F(AlertBookTest, TheEndIsToldDuringASilenceIfTheBeginWas) {
  AlertBook book(settings());
  see(book, "n1", 1, 87, {});
  ASSERT_EQ(book.due(moment(base::seconds(5))).size(), 1U);
  ASSERT_TRUE(book.add(silence("node", "n1", base::hours(9)), moment(base::minutes(1))));
  see(book, "n1", 1, 50, base::minutes(2));
  ASSERT_EQ(book.due(moment(base::minutes(10))).size(), 1U);
}

TEST_F(AlertBookTest, ASilenceKnowsSeveritiesInAnyCase) {
  Alert alert;
  alert.severity = Severity::kWarning;
  const base::Instant now = moment({}).at;
  for (const char* const pattern : {"warning", "WARNING", "warn*"}) {
    EXPECT_TRUE(silences(silence("severity", pattern, base::hours(1)), alert, now)) << pattern;
  }
  EXPECT_FALSE(silences(silence("severity", "critical", base::hours(1)), alert, now));
}

TEST_F(AlertBookTest, ASilenceOfAnArrayIsAboutItsMembers) {
  Alert alert;
  const auto is_silenced = [&](const std::string& job, const std::string& pattern) {
    alert.labels = {{"job", job}};
    return silences(silence("job", pattern, base::hours(1)), alert, moment({}).at);
  };
  EXPECT_TRUE(is_silenced("40_3", "40"));
  EXPECT_TRUE(is_silenced("40_3", "40_3"));
  EXPECT_TRUE(is_silenced("40", "40"));
  EXPECT_FALSE(is_silenced("40_3", "4"));
  EXPECT_FALSE(is_silenced("401", "40"));
  EXPECT_FALSE(is_silenced("40_31", "40_3"));
}

TEST_F(AlertBookTest, SilencesAreChecked) {
  AlertBook book(settings());
  const auto field = [&](Silence made) {
    const auto added = book.add(std::move(made), moment({}));
    return added ? "accepted" : added.error().field;
  };
  EXPECT_EQ(field({}), "matchers");
  EXPECT_EQ(field(silence("nod", "x", base::hours(1))), "matchers");
  EXPECT_EQ(field(silence("node", "", base::hours(1))), "matchers");
  EXPECT_EQ(field(silence("node", "x", {})), "until");
  EXPECT_EQ(field(silence("node", "x", base::hours(24 * 400))), "until");
}

TEST_F(AlertBookTest, RoutesChooseChannelsBySeverityTeamAndRule) {
  AlertBook::Settings with = settings();
  with.channels = {"chat", "mail", "pager"};
  with.routes = {{.least = Severity::kCritical, .team = {}, .rules = {}, .channels = {"pager"}},
                 {.least = {}, .team = {}, .rules = {"GpuH*"}, .channels = {"chat"}},
                 {.least = {}, .team = "vision", .rules = {}, .channels = {"mail"}}};
  AlertBook book(with);
  see(book, "n1", 1, 95, {});
  std::map<std::string, std::size_t> told;
  for (const Notification& each : book.due(moment(base::seconds(5)))) {
    told[each.channel] = each.firing.size();
  }
  EXPECT_EQ(told, (std::map<std::string, std::size_t>{{"chat", 1}, {"pager", 1}}));
  Subject job{"7", {{"job", "7"}, {"team", "vision"}, {"user", "ann"}}};
  book.take("jobs",
            std::vector{fact(Signal::kIdleAllocation, std::make_shared<const Subject>(job), 1)},
            moment(base::minutes(1)));
  const auto idle = book.due(moment(base::minutes(2)));
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(idle[0].channel, "mail");
}

TEST_F(AlertBookTest, AnAlertIsAcknowledgedWhileItLasts) {
  AlertBook book(settings());
  see(book, "n1", 1, 87, {});
  const auto now = moment(base::seconds(5)).at;
  const std::string id = book.alerts(now).front().fingerprint;
  const auto done = book.acknowledge(id, "ann", "on my way", now);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->acknowledged_by, "ann");
  see(book, "n1", 1, 50, base::minutes(2));
  EXPECT_EQ(book.acknowledge(id, "ann", "", now).error().code,
            base::ErrorCode::kFailedPrecondition);
  EXPECT_EQ(book.acknowledge("nothing", "ann", "", now).error().code, base::ErrorCode::kNotFound);
}

TEST_F(AlertBookTest, WhatWasResolvedIsListedForAWeek) {
  AlertBook book(settings());
  see(book, "n1", 1, 87, {});
  see(book, "n1", 1, 50, base::minutes(1));
  keep(book);
  book.due(moment(base::hours(24)));
  EXPECT_EQ(book.alerts(moment(base::hours(24)).at).size(), 1U);
  book.due(moment(base::hours(24 * 8)));
  EXPECT_TRUE(book.alerts(moment(base::hours(24 * 8)).at).empty());
  keep(book);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(AlertBookTest, DamagedNotesAreCountedAndTheOthersCount) {
  AlertBook book(settings());
  EXPECT_EQ(
      book.restore(std::vector<AlertBook::Note>{{"alert/x", "odd"}, {"silence/1", ""}}, moment({})),
      2U);
  EXPECT_TRUE(book.alerts(moment({}).at).empty());
}

}  // namespace
}  // namespace gpu_platform::alerts
