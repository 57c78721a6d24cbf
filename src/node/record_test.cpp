#include "node/record.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::node {
namespace {

Beginning a_beginning() {
  return {{model::JobId(42), 1}, "boot", 4711, 815, 1000, "/sys/fs/cgroup/gpu-platform-x/42-1"};
}

EndRecord an_end() {
  EndRecord end;
  end.kind = EndKind::kSignalled;
  end.value = 9;
  end.cause = EndCause::kStopped;
  end.stop_code = 200;
  end.at = base::Instant(1'700'000'000'000'000'000);
  end.cpu_time = base::milliseconds(15);
  end.peak_memory = base::kGiB;
  end.detail = "detail";
  return end;
}

void put(std::string& file, const SlotBytes& slot) {
  file.replace(slot.offset, slot.bytes.size(), slot.bytes);
}

std::string whole_file() {
  std::string file = encode_new_record(a_beginning());
  put(file, encode_slot(StartedRecord{4712, base::Instant(5), 77}));
  put(file, encode_slot(an_end()));
  put(file, encode_slot(CleanedRecord{base::Instant(6), "exit code 1"}));
  return file;
}

TEST(Record, IsWrittenWholeAtTheBeginning) {
  const std::string file = encode_new_record(a_beginning());
  EXPECT_EQ(file.size(), kRecordSize);
  const Record record = decode_record(file);
  EXPECT_EQ(record.beginning, a_beginning());
  EXPECT_FALSE(record.started || record.end || record.cleaned);
}

TEST(Record, EachSlotIsReadBackWithoutTouchingTheOthers) {
  const std::string file = whole_file();
  EXPECT_EQ(file.size(), kRecordSize);
  const Record record = decode_record(file);
  EXPECT_EQ(record.beginning, a_beginning());
  EXPECT_EQ(record.started, (StartedRecord{4712, base::Instant(5), 77}));
  EXPECT_EQ(record.end, an_end());
  EXPECT_EQ(record.cleaned, (CleanedRecord{base::Instant(6), "exit code 1"}));
}

TEST(Record, AnEndAtTheTimeLimitSaysWhichItWas) {
  EndRecord end = an_end();
  end.cause = EndCause::kTimeLimit;
  end.time_limit = base::milliseconds(1500);
  std::string file = encode_new_record(a_beginning());
  put(file, encode_slot(end));
  EXPECT_EQ(decode_record(file).end, end);
}

TEST(Record, ShortFileSaysNothing) {
  const std::string file = whole_file();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kRecordSize - 1}) {
    const Record record = decode_record(std::string_view(file).substr(0, size));
    EXPECT_FALSE(record.beginning || record.started || record.end || record.cleaned);
  }
}

TEST(Record, LongDetailIsCut) {
  EndRecord end = an_end();
  end.detail = std::string(10'000, 'x');
  std::string file = encode_new_record(a_beginning());
  put(file, encode_slot(end));
  ASSERT_EQ(file.size(), kRecordSize);
  const Record record = decode_record(file);
  ASSERT_TRUE(record.end.has_value());
  EXPECT_EQ(record.end->detail, std::string(1024, 'x'));
}

TEST(Record, LongFailureOfAnEpilogIsCut) {
  std::string file = encode_new_record(a_beginning());
  put(file, encode_slot(CleanedRecord{base::Instant(6), std::string(10'000, 'x')}));
  ASSERT_EQ(file.size(), kRecordSize);
  EXPECT_EQ(decode_record(file).cleaned, (CleanedRecord{base::Instant(6), std::string(160, 'x')}));
}

// A slot is read as it was written or not at all.
TEST(RecordFuzz, DamagedSlotsReadAsAbsent) {
  base::Prng random(7);
  const std::string file = whole_file();
  const Record truth = decode_record(file);
  int damaged_slots = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = file;
    const std::size_t at = random.below(kRecordSize);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + random.below(255)));
    const Record record = decode_record(bytes);
    damaged_slots += !record.beginning + !record.started + !record.end + !record.cleaned;
    EXPECT_TRUE(!record.beginning || record.beginning == truth.beginning) << at;
    EXPECT_TRUE(!record.started || record.started == truth.started) << at;
    EXPECT_TRUE(!record.end || record.end == truth.end) << at;
    EXPECT_TRUE(!record.cleaned || record.cleaned == truth.cleaned) << at;
  }
  EXPECT_GT(damaged_slots, 100);
}

TEST(Notice, EveryKindComesBackAsItWas) {
  for (const auto kind : {Notice::Kind::kStarted, Notice::Kind::kStopping, Notice::Kind::kEnded,
                          Notice::Kind::kCleaned}) {
    Notice notice;
    notice.kind = kind;
    notice.attempt = {model::JobId(UINT64_MAX), UINT32_MAX};
    notice.ended_too = kind == Notice::Kind::kCleaned;
    notice.epilog_failed = notice.ended_too;
    if (kind == Notice::Kind::kStarted)
      notice.started = {UINT32_MAX, base::Instant(INT64_MAX), UINT64_MAX};
    if (kind == Notice::Kind::kEnded || notice.ended_too) {
      notice.end = an_end();
      notice.end.detail.clear();
      notice.end.at = base::Instant(INT64_MIN);
      notice.end.cpu_time = base::Duration(INT64_MIN);
      notice.end.peak_memory = base::Bytes(INT64_MIN);
      notice.has_detail = true;
    }
    const std::string frame = encode_notice(notice);
    EXPECT_EQ(frame.size(), kNoticeSize);
    EXPECT_EQ(decode_notice(frame), notice);
  }
}

TEST(NoticeFuzz, RandomFramesDoNoHarm) {
  base::Prng random(11);
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    // Random bytes are refused nearly always, so every other frame is a good one that was damaged.
    std::string frame(kNoticeSize, '\0');
    if (round % 2 == 0) {
      for (char& c : frame) c = static_cast<char>(random.below(256));
      frame[0] = static_cast<char>(random.below(kNoticeSize + 8));
      frame[1] = 1;
    } else {
      Notice good;
      good.kind = static_cast<Notice::Kind>(random.below(5));
      good.attempt = {model::JobId(1 + random.below(1'000'000)), 1};
      good.ended_too = random.chance(1, 2);
      if (good.kind == Notice::Kind::kEnded || good.ended_too) {
        good.end = an_end();
        good.end.detail.clear();
      }
      frame = encode_notice(good);
      frame[random.below(frame.size())] = static_cast<char>(random.below(256));
    }
    const auto notice = decode_notice(frame);
    if (!notice) continue;
    ++accepted;
    const std::string again = encode_notice(*notice);
    const auto twice = decode_notice(again);
    ASSERT_TRUE(twice.has_value()) << round;
    EXPECT_EQ(*twice, *notice) << round;
  }
  EXPECT_GT(accepted, 1'000);
  EXPECT_FALSE(decode_notice("short").has_value());
}

}  // namespace
}  // namespace gpu_platform::node
