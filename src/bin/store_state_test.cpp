#include "bin/store_state.h"

#include <gtest/gtest.h>

#include "bin/folder_fixture.h"
#include "model/job_spec.h"

namespace gpu_platform::bin {
namespace {

model::EventRecord submitted(std::uint64_t seq, std::uint64_t job, const std::string& environment) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->user = "ann";
  spec->command = {"true"};
  spec->environment_ref = environment;
  model::JobSubmitted event;
  event.job = model::JobId(job);
  event.spec = std::move(spec);
  return {model::EventSeq(seq), base::Instant(static_cast<std::int64_t>(seq)), std::move(event)};
}

store::StateSource source_of(std::vector<model::EventRecord> records) {
  return {{},
          [records = std::move(records)](const store::StateSource::Visit& visit) -> base::Status {
            for (const model::EventRecord& record : records) TRY(visit(record));
            return {};
          }};
}

TEST(StoreState, EnvironmentsOfJobsThatHaveNotEndedAreNeeded) {
  const auto needed = needed_environments(
      source_of({submitted(1, 1, "mine"), submitted(2, 2, {}), submitted(3, 3, "other")}));
  ASSERT_TRUE(needed) << needed.error().message;
  EXPECT_EQ(*needed, (std::map<std::string, model::JobId>{{"mine", model::JobId(1)},
                                                          {"other", model::JobId(3)}}));
}

TEST(StoreState, AGapBetweenEventsIsALoss) {
  const auto needed = needed_environments(source_of({submitted(1, 1, "a"), submitted(3, 2, "b")}));
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().code, base::ErrorCode::kDataLoss);
  EXPECT_EQ(needed.error().message, "event 3 follows event 1");
}

TEST(StoreState, EveryEventIsAskedForItsLines) {
  std::vector<std::uint64_t> visited;
  const auto visit = [&](model::EventSeq seq, std::span<const model::LedgerLine>) {
    visited.push_back(seq.value);
    return base::Status{};
  };
  EXPECT_TRUE(made_lines(source_of({submitted(1, 1, {}), submitted(2, 2, {})}), visit));
  EXPECT_EQ(visited, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_FALSE(made_lines(source_of({submitted(1, 1, {}), submitted(3, 2, {})}), visit));
}

model::LedgerLine rest_of_a_gpu(model::Millis from, model::Millis to, std::int64_t share) {
  model::LedgerLine line;
  line.kind = model::LedgerKind::kRest;
  line.node = "n1";
  line.gpu_uuid = "GPU-1";
  line.gpu_type = "H100-80GB";
  line.share = base::GpuShare(share);
  line.from = line.started = line.ended = from;
  line.to = to;
  return line;
}

TEST(StoreState, BooksThatDoNotBalanceAreNamed) {
  model::EventRecord later = submitted(1, 1, {});
  later.at = base::Instant(base::seconds(1).value());
  const store::StateSource source = source_of({later});
  std::vector<model::LedgerLine> lines = {rest_of_a_gpu(0, 10, 7000), rest_of_a_gpu(10, 20, 7000)};
  const auto visit_all = [&](const store::Ledger::Visit& visit) -> base::Status {
    for (const model::LedgerLine& line : lines) TRY(visit(line));
    return {};
  };
  const auto right = unbalanced_books(source, visit_all);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_EQ(*right, std::vector<std::string>());
  lines[1].share = base::GpuShare(3500);
  const auto wrong = unbalanced_books(source, visit_all);
  ASSERT_TRUE(wrong) << wrong.error().message;
  ASSERT_FALSE(wrong->empty());
  EXPECT_NE(wrong->front().find("GPU-1"), std::string::npos) << wrong->front();
  lines.clear();
  EXPECT_EQ(*unbalanced_books(source, visit_all), std::vector<std::string>());
}

TEST(StoreState, TheLastJobWithOutputIsThatOfAnyEngine) {
  const TestFolder folder;
  EXPECT_FALSE(last_job_with_output(folder.path()).valid());
  folder.write("node/output/0/12/1", "x");
  folder.write("kubernetes/output/1/1007/1", "x");
  EXPECT_EQ(last_job_with_output(folder.path()), model::JobId(1007));
}

}  // namespace
}  // namespace gpu_platform::bin
