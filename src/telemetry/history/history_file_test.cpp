#include "telemetry/history/history_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "telemetry/history/history_fixture.h"

namespace gpu_platform::telemetry {
namespace {

TEST_F(HistoryTest, SamplesAreAnsweredFromMemoryFromDiskAndAfterARestart) {
  open();
  feed(kNoon, 30, 2);
  const auto check = [&](const std::string& where) {
    for (int index = 0; index < 2; ++index) {
      const Series series =
          ask_one(power(), kNoon + base::seconds(10), kNoon + base::seconds(20), {}, index);
      ASSERT_EQ(series.points.size(), 10u) << where;
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(series.points[i].from, kNoon + base::seconds(10 + i)) << where;
        EXPECT_EQ(series.points[i].sum, watts(index, 10 + i)) << where;
        EXPECT_EQ(series.points[i].count, 1u) << where;
      }
    }
  };
  check("memory");
  file().flush();
  check("disk");
  feed(kNoon + base::seconds(30), 30, 2);
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::hours(1)).points.size(), 60u) << "both, once";
  close();  // writes
  open();
  check("restart");
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::hours(1)).points.size(), 60u);
  struct stat status{};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(HistoryTest, AnHourThatIsOverBecomesOneRowOfEachTierAndTheAnswersStay) {
  open();
  feed(kNoon, 1'800);
  file().flush();
  feed(kNoon + base::minutes(30), 1'800);
  file().flush();
  EXPECT_EQ(count("blocks"), 2) << "pieces";
  const auto minutes = [&] {
    return ask_one(power(), kNoon, kNoon + base::hours(1), base::minutes(1)).points;
  };
  const auto grown = [&] {
    return ask_one(energy(), kNoon, kNoon + base::hours(1), base::minutes(1)).whole().sum;
  };
  const std::vector<Point> before = minutes();
  ASSERT_EQ(before.size(), 60u);
  const std::int64_t grown_before = grown();
  EXPECT_EQ(grown_before, 5 * 3'599);

  set_now(kNoon + base::minutes(63));
  file().flush();
  EXPECT_EQ(count("blocks WHERE tier = 0 AND is_piece = 0"), 1);
  EXPECT_EQ(count("blocks WHERE tier = 1"), 1);
  EXPECT_EQ(count("blocks WHERE tier = 2"), 1);
  EXPECT_EQ(minutes(), before);
  EXPECT_EQ(grown(), grown_before);
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::hours(1)).points.size(), 3'600u);
}

TEST_F(HistoryTest, ADayThatIsOverBecomesOneRowOfMinutesAndOneOfQuarters) {
  open();
  const auto counts = [&] {
    return std::pair(count("blocks WHERE tier = 1"), count("blocks WHERE tier = 2"));
  };
  const auto points = [&](base::Duration step) {
    return ask_one(power(), kNoon, kNoon + base::hours(11), step).points;
  };
  for (int hour = 0; hour < 11; ++hour) {
    feed(kNoon + base::hours(hour), 60);
    set_now(kNoon + base::minutes(60 * hour + 63));
    file().flush();
  }
  EXPECT_EQ(counts(), std::pair(std::int64_t{11}, std::int64_t{11})) << "pieces";
  const std::vector<Point> minutes = points(base::minutes(1));
  const std::vector<Point> quarters = points(base::minutes(15));
  EXPECT_EQ(minutes.size(), 11u);
  EXPECT_EQ(quarters.size(), 11u);

  set_now(kNoon + base::minutes(12 * 60 + 3));
  file().flush();
  EXPECT_EQ(counts(), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(count("blocks WHERE tier > 0 AND is_piece = 1"), 0);
  EXPECT_EQ(points(base::minutes(1)), minutes);
  EXPECT_EQ(points(base::minutes(15)), quarters);
}

// A counter's growth between two hours belongs to the second one; nothing of it is lost at the
// seams of hours, of memory and disk, and of tiers.
TEST_F(HistoryTest, GrowthAddsUpOverTheSeams) {
  open();
  for (int hour = 0; hour < 3; ++hour) {
    for (int part = 0; part < 4; ++part) {
      feed(kNoon + base::minutes(60 * hour + 15 * part), 900);
      set_now(kNoon + base::minutes(60 * hour + 15 * (part + 1)));
      if (hour < 2 || part < 3) file().flush();
    }
  }
  const base::Instant end = kNoon + base::hours(3);
  for (const base::Duration step :
       {base::seconds(1), base::minutes(1), base::minutes(15), base::hours(1)}) {
    const Series series = ask_one(energy(), kNoon, end, step);
    EXPECT_EQ(series.whole().sum, 5 * (3 * 3'600 - 1)) << step.value();
    EXPECT_EQ(series.whole().count, 3u * 3'600) << step.value();
    EXPECT_EQ(series.points.size(), static_cast<std::size_t>((end - kNoon).value() / step.value()));
  }
}

TEST_F(HistoryTest, SamplesThatComeLateAreInThePointsOnce) {
  open();
  feed(kNoon, 1'800);
  set_now(kNoon + base::minutes(65));
  file().flush();
  // The clock was set back to half past twelve.
  feed(kNoon + base::minutes(30), 600);
  const auto counted = [&] {
    return ask_one(power(), kNoon, kNoon + base::hours(1), base::minutes(1)).whole().count;
  };
  EXPECT_EQ(counted(), 2'400u) << "in memory";
  file().flush();
  const Series series = ask_one(power(), kNoon, kNoon + base::hours(1), base::minutes(1));
  EXPECT_EQ(series.points.size(), 40u);
  EXPECT_EQ(series.whole().count, 2'400u);
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::hours(1)).points.size(), 2'400u);
  EXPECT_EQ(count("blocks WHERE tier = 0"), 1);
}

TEST_F(HistoryTest, TimesFarAheadAreClampedAndToldOnce) {
  open();
  file().take(reading(kNoon + base::hours(24 * 400)));
  file().take(reading(kNoon + base::hours(24 * 500)));
  file().flush();
  const base::Instant tomorrow = now() + base::hours(24);
  EXPECT_EQ(ask_one(power(), tomorrow, tomorrow + base::seconds(1)).points.size(), 2u);
  EXPECT_EQ(
      std::ranges::count_if(lines(), [](const auto& line) { return line.contains("a day ahead"); }),
      1);
}

TEST_F(HistoryTest, WhatIsOldGoesTierByTier) {
  bounds_.keep_samples = base::hours(2);
  bounds_.keep_minutes = base::hours(24);
  open();
  feed(kNoon, 120);
  for (int hour = 1; hour <= 5; ++hour) {
    set_now(kNoon + base::hours(hour) + base::minutes(5));
    file().take(reading(now()));
    file().flush();
  }
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(2)).step, base::minutes(1));
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(2)).whole().count, 120u);
  for (int hour = 6; hour <= 60; ++hour) {
    set_now(kNoon + base::hours(hour) + base::minutes(5));
    file().take(reading(now()));
    file().flush();
  }
  const Series left = ask_one(power(), kNoon, kNoon + base::minutes(15));
  EXPECT_EQ(left.step, base::minutes(15));
  EXPECT_EQ(left.whole().count, 120u);
}

TEST_F(HistoryTest, AClockThatIsYearsAheadForAWhileCostsNothing) {
  open();
  feed(kNoon, 60);
  file().flush();
  set_now(kNoon + base::hours(24 * 3'000));
  file().flush();
  set_now(kNoon + base::minutes(2));
  file().flush();
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(1)).points.size(), 60u);
}

TEST_F(HistoryTest, PercentilesOfADayComeFromQuarters) {
  open();
  for (int hour = 0; hour < 24; ++hour) {
    for (int minute = 0; minute < 60; ++minute) {
      file().take(reading(kNoon + base::minutes(60 * hour + minute)));
    }
    set_now(kNoon + base::minutes(60 * (hour + 1) + 3));
    file().flush();
  }
  const std::vector<Series> series = ask({.subjects = {gpu(0)},
                                          .metrics = {power()},
                                          .from = kNoon,
                                          .to = kNoon + base::hours(24),
                                          .step = base::hours(1),
                                          .wants_spread = true});
  ASSERT_EQ(series.size(), 1u);
  ASSERT_TRUE(series.front().spread);
  EXPECT_EQ(series.front().spread->count(), 24u * 60);
  EXPECT_FALSE(series.front().is_spread_wide);
  EXPECT_EQ(series.front().points.size(), 24u);
}

// The rows of days that are over have a sum of all their distributions.
TEST_F(HistoryTest, PercentilesOfDaysAreThoseOfTheirSamples) {
  open();
  std::vector<base::Instant> times;
  const auto feed_one = [&](base::Instant at) {
    file().take(reading(at));
    times.push_back(at);
  };
  const auto expect_right = [&](base::Instant from, base::Instant to) {
    Distribution expected;
    for (const base::Instant at : times) {
      if (at >= from && at < to) expected.add(watts(0, (at - kNoon).value() / 1'000'000'000));
    }
    const std::vector<Series> series = ask({.subjects = {gpu(0)},
                                            .metrics = {power(), energy(), temperature()},
                                            .from = from,
                                            .to = to,
                                            .step = base::hours(1),
                                            .wants_spread = true});
    ASSERT_EQ(series.size(), 3u);
    EXPECT_EQ(series.front().whole().count, expected.count());
    ASSERT_TRUE(series.front().spread);
    EXPECT_EQ(*series.front().spread, expected);
  };
  const base::Instant end = kNoon + base::hours(72);
  for (int hour = 0; hour < 72; ++hour) {
    for (int i = 0; i < 12; ++i) {
      feed_one(kNoon + base::hours(hour) + base::seconds(300 * i + hour));
    }
    set_now(kNoon + base::minutes(60 * (hour + 1) + 3));
    file().flush();
  }
  EXPECT_EQ(count("names WHERE name = 'power_watts.sum'"), 1);
  expect_right(kNoon, end);
  expect_right(kNoon + base::hours(5), kNoon + base::hours(40));
  expect_right(kNoon + base::hours(12), kNoon + base::hours(60));

  // A sample that comes late makes the row of its day anew.
  feed_one(kNoon + base::hours(20) + base::seconds(7));
  file().flush();
  expect_right(kNoon, end);
  EXPECT_EQ(count("blocks WHERE tier = 2 AND is_piece = 0"), 3);
}

TEST_F(HistoryTest, TheFileStaysWithinItsBoundAndLosesTheOldestSamplesFirst) {
  bounds_.max_bytes = base::kMiB * 4;
  open();
  base::Prng prng(7);
  const auto random_reading = [&](base::Instant at) {
    std::vector<Frame> frames;
    for (int i = 0; i < 8; ++i) {
      // Numbers without order take eight bytes each.
      const auto number = [&] { return static_cast<std::int64_t>(prng.next() >> 1); };
      Frame frame{gpu(i), at, {{temperature(), number()}, {power(), number()}}};
      std::ranges::sort(frame.values, {}, &Value::metric);
      frames.push_back(std::move(frame));
    }
    return frames_of(std::move(frames));
  };
  // In all 5.5 MB of samples.
  for (int minute = 0; minute < 12 * 60; ++minute) {
    for (int second = 0; second < 60; ++second) {
      file().take(random_reading(kNoon + base::seconds(60 * minute + second)));
    }
    if (minute % 10 != 9) continue;
    set_now(kNoon + base::minutes(minute + 1));
    file().flush();
    EXPECT_LE(file().coverage().bytes, std::uint64_t{4} << 20) << "minute " << minute;
  }
  set_now(kNoon + base::hours(12) + base::minutes(5));
  file().flush();
  const HistoryCoverage coverage = file().coverage();
  EXPECT_LE(coverage.bytes, std::uint64_t{4} << 20);
  EXPECT_EQ(coverage.problem, "");
  ASSERT_TRUE(coverage.raw_since && coverage.minutes_since);
  EXPECT_GT(*coverage.raw_since, kNoon + base::hours(1)) << "samples went";
  EXPECT_LE(*coverage.minutes_since, *coverage.raw_since);
  // The points of samples that are gone are there.
  const Series series = ask_one(power(), *coverage.raw_since + base::hours(-1), *coverage.raw_since,
                                base::minutes(1));
  EXPECT_FALSE(series.points.empty());
}

TEST_F(HistoryTest, SummariesOfManyJobsDoNotTakeTheRoomOfTheReadings) {
  bounds_.max_bytes = base::kMiB * 4;
  open();
  file().put("alert/a", "1");
  file().take(reading(kNoon));
  // In all 6 MB.
  for (int job = 1; job <= 3'000; ++job) {
    file().put(fmt::format("use/{}.1", job), std::string(2'000, 'x'));
  }
  set_now(kNoon + base::minutes(1));
  file().flush();

  EXPECT_LE(file().coverage().bytes, std::uint64_t{4} << 20);
  EXPECT_TRUE(file().coverage().raw_since) << "the readings stay";
  EXPECT_TRUE(file().get("use/3000.1"));
  EXPECT_FALSE(file().get("use/999.1")) << "the order is that of the numbers";
  EXPECT_EQ(file().get("alert/a"), "1");
  const std::size_t summaries = file().all(std::string(kSummaryNotes)).size();
  EXPECT_GT(summaries, 200u) << "no more go than must";
  EXPECT_LT(summaries, 1'500u);
}

TEST_F(HistoryTest, FramesThatDoNotFitIntoMemoryAreDroppedAndCounted) {
  OpenFrames frames(1'000);
  const Frames one = reading(kNoon);
  ASSERT_GT(bytes_of(one), 100u);
  while (frames.dropped() == 0) frames.add(one);
  const std::size_t kept = frames.after(0)->size();
  EXPECT_LE(kept * bytes_of(one), 1'000u);
  EXPECT_GT((kept + 1) * bytes_of(one), 1'000u);
}

TEST_F(HistoryTest, AReaderFindsEachBatchOnceWhileItIsWritten) {
  OpenFrames frames(1 << 20);
  frames.start_after(7);
  frames.add(reading(kNoon));
  EXPECT_EQ(frames.begin().number, 8u);
  frames.add(reading(kNoon + base::seconds(1)));
  EXPECT_EQ(frames.after(7)->size(), 2u) << "not on disk yet";
  EXPECT_EQ(frames.after(8)->size(), 1u) << "on disk, and still here";
  frames.written();
  EXPECT_EQ(frames.after(8)->size(), 1u);
  EXPECT_FALSE(frames.after(7)) << "has left between the looks at disk and memory";
}

TEST_F(HistoryTest, NotesAreReadAtOnceAndStay) {
  open();
  file().put("alert/a", "1");
  file().put("alert/b", "2");
  file().put("use/1.1", std::string("\0x", 2));
  EXPECT_EQ(file().get("alert/a"), "1");
  file().flush();
  file().put("alert/a", "3");
  file().remove("alert/b");
  EXPECT_EQ(file().get("alert/b"), std::nullopt);
  EXPECT_EQ(file().all("alert/").size(), 1u);
  open();
  EXPECT_EQ(file().get("alert/a"), "3");
  EXPECT_EQ(file().get("use/1.1"), std::string("\0x", 2));
  const std::vector<Notes::Note> all = file().all("");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "alert/a");
  EXPECT_EQ(all[1].name, "use/1.1");
}

TEST_F(HistoryTest, WindowsThatAreNoneAreRefusedByField) {
  open();
  const auto field = [&](base::Instant from, base::Instant to, base::Duration step) {
    const auto answer = file().query(
        {.subjects = {gpu(0)}, .metrics = {power()}, .from = from, .to = to, .step = step});
    return answer ? "" : answer.error().field;
  };
  EXPECT_EQ(field(kNoon, kNoon, {}), "to");
  EXPECT_EQ(field(kNoon, kNoon + base::hours(24 * 4'000), {}), "from");
  EXPECT_EQ(field(kNoon, kNoon + base::hours(1), base::seconds(-1)), "step");
  EXPECT_EQ(field(kNoon, kNoon + base::hours(1), {}), "");
}

TEST_F(HistoryTest, AGpuThatMovedIsFoundWhereverItWas) {
  open();
  Frame elsewhere = reading(kNoon)->front();
  elsewhere.subject.node = "other";
  file().take(frames_of({elsewhere}));
  file().take(reading(kNoon + base::seconds(1)));
  file().flush();
  Subject anywhere = gpu(0);
  anywhere.node.clear();
  const std::vector<Series> series = ask({.subjects = {anywhere},
                                          .metrics = {power()},
                                          .from = kNoon,
                                          .to = kNoon + base::minutes(1)});
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series.front().points.size(), 2u);
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(1)).points.size(), 1u);
}

TEST_F(HistoryTest, TheStartSaysHowFarItReaches) {
  open();
  EXPECT_TRUE(has_line("how far it reaches is known after two hours"));
  for (int hour = 0; hour < 50; ++hour) {
    file().take(reading(kNoon + base::hours(hour)));
    set_now(kNoon + base::hours(hour) + base::minutes(5));
    file().flush();
  }
  open();
  EXPECT_TRUE(has_line("it reaches back 2 days in samples, 30 days in minutes and 730 days"))
      << testing::PrintToString(lines());
}

// Each answer has every sample up to the newest that was taken before the question, once.
TEST_F(HistoryTest, ReadersSeeEachSampleOnceWhileOneWrites) {
  open();
  std::atomic<int> taken{0};
  std::atomic<bool> has_ended{false};
  std::latch begun(2);
  const auto look = [&] {
    begun.count_down();
    while (!has_ended) {
      const int before = taken;
      const Series series = ask_one(power(), kNoon, kNoon + base::hours(2));
      EXPECT_GE(series.points.size(), static_cast<std::size_t>(before));
      EXPECT_LE(series.points.size(), static_cast<std::size_t>(taken) + 1);
      const Series minutes = ask_one(power(), kNoon, kNoon + base::hours(2), base::minutes(1));
      EXPECT_GE(minutes.whole().count, static_cast<std::uint32_t>(before));
    }
  };
  std::thread first(look);
  std::thread second(look);
  begun.wait();
  for (int i = 0; i < 400; ++i) {
    file().take(reading(kNoon + base::seconds(i)));
    ++taken;
    if (i % 20 == 19) file().flush();
  }
  has_ended = true;
  first.join();
  second.join();
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::hours(2)).points.size(), 400u);
}

}  // namespace
}  // namespace gpu_platform::telemetry
