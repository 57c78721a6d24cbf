#include "shims/views/job_gres.h"

#include <gtest/gtest.h>

#include "client/answer.h"

namespace gpu_platform::shims {
namespace {

v1::Job job_on(const std::string& nodes, const std::string& gpus) {
  return *client::message_of<v1::Job>(
      R"({"id":"7","state":"RUNNING","cpus":6,"memory_bytes":2147483648,"gpus":[)" + gpus +
      R"(],"attempts":[{"nodes":[)" + nodes + R"(]}],"spec":{}})");
}

std::vector<NodeView> nodes() {
  NodeView node;
  node.gpus = {{"H100-80GB", 8, {}}};
  std::vector<NodeView> all;
  for (const char* name : {"n1", "n2", "n10"}) {
    node.name = name;
    all.push_back(node);
  }
  return all;
}

std::string lines_of(const v1::Job& job) {
  std::string text;
  for (const GresLine& line : gres_lines(parts_of(job, nodes())))
    text += line.nodes + " " + line.cpus + " " + std::to_string(line.memory_mib) + " " + line.gres +
            "\n";
  return text;
}

TEST(JobGres, NodesThatAreAlikeShareALine) {
  const v1::Job job =
      job_on(R"("n10","n2")", R"({"node":"n10","index":0},{"node":"n10","index":1},)"
                              R"({"node":"n2","index":0},{"node":"n2","index":1})");
  EXPECT_EQ(lines_of(job), "n[2,10] 0-2 1024 gpu:H100-80GB:2(IDX:0-1)\n");
  EXPECT_EQ(gres_of_job(parts_of(job, nodes())), "gpu:H100-80GB:4");
}

TEST(JobGres, NodesThatDifferHaveLinesOfTheirOwn) {
  const v1::Job job = job_on(R"("n1","n2")", R"({"node":"n1","index":0},{"node":"n1","index":2},)"
                                             R"({"node":"n2","index":4},{"node":"n2","index":5})");
  EXPECT_EQ(lines_of(job),
            "n1 0-2 1024 gpu:H100-80GB:2(IDX:0,2)\nn2 0-2 1024 gpu:H100-80GB:2(IDX:4-5)\n");
}

TEST(JobGres, WithoutGpusThereIsNone) {
  const v1::Job job = job_on(R"("n1")", "");
  EXPECT_EQ(lines_of(job), "n1 0-5 2048 \n");
  EXPECT_EQ(gres_of_job(parts_of(job, nodes())), "(null)");
  EXPECT_TRUE(
      parts_of(*client::message_of<v1::Job>(R"({"state":"QUEUED","spec":{}})"), {}).empty());
}

TEST(JobGres, ATypeThatIsNotKnownIsLeftOut) {
  const v1::Job job = job_on(R"("m1")", R"({"node":"m1","index":3})");
  EXPECT_EQ(gres_of(parts_of(job, nodes()).front()), "gpu:1(IDX:3)");
}

}  // namespace
}  // namespace gpu_platform::shims
