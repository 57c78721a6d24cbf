#include "api/event_hub.h"

#include <gtest/gtest.h>

namespace gpu_platform::api {
namespace {

class EventHubTest : public testing::Test {
 protected:
  void publish(std::uint64_t seq, model::Event event) {
    const std::vector<model::EventRecord> records{
        {model::EventSeq(seq), base::Instant(1), std::move(event)}};
    auto snapshot = std::make_shared<controller::Snapshot>();
    snapshot->nodes = nodes_.freeze();
    hub_.published(snapshot, records, {});
  }
  std::vector<std::uint64_t> seqs_after(std::uint64_t seq, std::uint64_t job = 0,
                                        std::size_t most = 100) {
    std::vector<std::uint64_t> out;
    for (const ChangeRecord& record :
         hub_.after(model::EventSeq(seq), model::JobId(job), most).records) {
      out.push_back(record.seq.value);
    }
    return out;
  }

  base::PersistentMap<model::Node> nodes_;
  EventHub hub_{model::EventSeq(10), 4};
};

TEST_F(EventHubTest, RemembersChangesOfJobsAlone) {
  publish(11, model::JobSubmitted{model::JobId(1), {}});
  publish(12, model::NodeSeen{});
  publish(13, model::JobEnded{model::JobId(1)});
  EXPECT_EQ(seqs_after(10), (std::vector<std::uint64_t>{11, 13}));
  EXPECT_EQ(seqs_after(11), std::vector<std::uint64_t>{13});
  EXPECT_EQ(hub_.last_seq(), model::EventSeq(13));
}

TEST_F(EventHubTest, GoesOnWhereAFullAnswerEnded) {
  publish(11, model::JobEligible{model::JobId(1)});
  publish(12, model::JobEligible{model::JobId(2)});
  publish(13, model::JobEligible{model::JobId(1)});
  const auto first = hub_.after(model::EventSeq(10), {}, 2);
  EXPECT_EQ(first.upto, model::EventSeq(12));
  EXPECT_EQ(seqs_after(first.upto.value), std::vector<std::uint64_t>{13});
  EXPECT_EQ(seqs_after(10, 1), (std::vector<std::uint64_t>{11, 13}));
}

TEST_F(EventHubTest, SaysWhenSomethingWasMissed) {
  for (std::uint64_t seq = 11; seq <= 16; ++seq) publish(seq, model::JobEligible{model::JobId(1)});
  EXPECT_TRUE(hub_.after(model::EventSeq(9), {}, 9).missed);   // before this hub began
  EXPECT_TRUE(hub_.after(model::EventSeq(11), {}, 9).missed);  // 12 has fallen off
  EXPECT_FALSE(hub_.after(model::EventSeq(12), {}, 9).missed);
  EXPECT_EQ(seqs_after(12), (std::vector<std::uint64_t>{13, 14, 15, 16}));
  EXPECT_TRUE(hub_.after(model::EventSeq(17), {}, 9).missed);  // another journal's number
}

TEST_F(EventHubTest, WakesOnlyThoseConcerned) {
  int all = 0;
  int one = 0;
  int two = 0;
  const auto of_all = hub_.subscribe({}, [&] { ++all; });
  const auto of_one = hub_.subscribe(model::JobId(1), [&] { ++one; });
  auto of_two = hub_.subscribe(model::JobId(2), [&] { ++two; });
  publish(11, model::JobEligible{model::JobId(1)});
  publish(12, model::NodeSeen{});
  publish(13, model::JobEligible{model::JobId(2)});
  of_two.reset();
  publish(14, model::JobEligible{model::JobId(2)});
  EXPECT_EQ(all, 3);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(two, 1);
}

TEST_F(EventHubTest, WakesThoseWhoWaitForNodesWhenOneHasChanged) {
  int nodes = 0;
  int anything = 0;
  nodes_.put(1, {});
  auto of_nodes = hub_.subscribe_to(Topic::kNodes, [&] { ++nodes; });
  const auto of_anything = hub_.subscribe_to(Topic::kAnything, [&] { ++anything; });
  publish(11, model::JobEligible{model::JobId(1)});
  EXPECT_EQ(nodes, 1) << "what they were before is not known";
  publish(12, model::JobEligible{model::JobId(2)});
  EXPECT_EQ(nodes, 1);
  nodes_.find_mutable(1)->name = "n1";
  publish(13, model::NodeSeen{});
  publish(14, model::JobEligible{model::JobId(2)});
  EXPECT_EQ(nodes, 2);
  of_nodes.reset();
  nodes_.find_mutable(1)->name = "n2";
  publish(15, model::NodeSeen{});
  EXPECT_EQ(nodes, 2);
  EXPECT_EQ(anything, 5);
}

}  // namespace
}  // namespace gpu_platform::api
