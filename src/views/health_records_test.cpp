#include "views/health_records.h"

#include <gtest/gtest.h>

#include "model/node_lookup.h"

namespace gpu_platform::views {
namespace {

using model::Evidence;
using Names = std::vector<std::string_view>;

Evidence piece(std::uint64_t job, std::string user, std::string program) {
  Evidence evidence;
  evidence.at = evidence.last = base::Instant(1) + base::seconds(static_cast<std::int64_t>(job));
  evidence.code = 13;
  evidence.job = model::JobId(job);
  evidence.user = std::move(user);
  evidence.program = std::move(program);
  return evidence;
}

// Two nodes of two GPUs. "a-0" and "b-1" had job 7 of ann's, "a-1" had job 8 of bob's.
controller::Snapshot site() {
  controller::Snapshot snapshot;
  for (const char* name : {"a", "b"}) {
    model::Node node;
    node.id = model::NodeId(name[0] == 'a' ? 1 : 2);
    node.name = name;
    node.gpus.resize(2);
    for (std::size_t i = 0; i < 2; ++i) {
      node.gpus[i].info.uuid = std::string(name) + "-" + std::to_string(i);
    }
    snapshot.nodes.put(node.id.value, node);
  }
  snapshot.nodes.find_mutable(1)->gpus[0].evidence =
      std::vector{piece(7, "ann", "train"), piece(9, "ann", "train")};
  snapshot.nodes.find_mutable(1)->gpus[1].evidence = std::vector{piece(8, "bob", "train")};
  snapshot.nodes.find_mutable(2)->gpus[1].evidence = std::vector{piece(7, "ann", "train")};
  Evidence condition;
  condition.kind = model::EvidenceKind::kNodeCondition;
  snapshot.nodes.find_mutable(2)->evidence = std::vector{condition};
  snapshot.nodes_by_name = model::nodes_by_name(snapshot.nodes);
  return snapshot;
}

TEST(HealthRecords, FindTheEvidenceOfGpusAndNodes) {
  const controller::Snapshot snapshot = site();
  const HealthRecords records(snapshot);
  EXPECT_EQ(records.of_gpu("a-0").size(), 2U);
  EXPECT_TRUE(records.of_gpu("b-0").empty());
  EXPECT_TRUE(records.of_gpu("elsewhere").empty());
  EXPECT_TRUE(records.of_node("a").empty());
  EXPECT_EQ(records.of_node("b").size(), 1U);
  EXPECT_EQ(records.gpus_of_node("b"), (Names{"b-0", "b-1"}));
  EXPECT_TRUE(records.gpus_of_node("elsewhere").empty());
}

TEST(HealthRecords, FindTheGpusThatHadAJobOrAProgram) {
  const controller::Snapshot snapshot = site();
  const HealthRecords records(snapshot);
  EXPECT_EQ(records.gpus_with_job(model::JobId(7)), (Names{"a-0", "b-1"}));
  EXPECT_TRUE(records.gpus_with_job(model::JobId(70)).empty());
  EXPECT_EQ(records.gpus_with_program("ann", "train"), (Names{"a-0", "b-1"}));
  EXPECT_EQ(records.gpus_with_program("bob", "train"), Names{"a-1"});
}

TEST(HealthRecords, HideNamesAndKeepApartWhatWasApart) {
  const controller::Snapshot snapshot = site();
  const HealthRecords records(snapshot, [](const Evidence& seen) { return seen.user == "ann"; });
  const Evidence& hidden = records.of_gpu("a-0")[0];
  EXPECT_NE(hidden.user, "ann");
  EXPECT_NE(hidden.program, "train");
  EXPECT_EQ(records.of_gpu("b-1")[0].user, hidden.user) << "the same user stays the same";
  EXPECT_EQ(records.of_gpu("a-1")[0].user, "bob");
  EXPECT_EQ(records.gpus_with_program(hidden.user, hidden.program), (Names{"a-0", "b-1"}));
  EXPECT_TRUE(records.gpus_with_program("ann", "train").empty());
}

}  // namespace
}  // namespace gpu_platform::views
