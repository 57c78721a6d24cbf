#include "cli/text/topology_text.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

// What a daemon says of two dgx-h100 (NVSwitch), a v100x8 (hybrid cube mesh) and an l40s-x8 (PCIe),
// and how that is drawn.
std::string fixture(std::string_view name) {
  std::ifstream file(fmt::format("{}/tests/fixtures/{}", GP_SOURCE_DIRECTORY, name));
  EXPECT_TRUE(file.is_open()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Json boards() {
  return *parse_object(fixture("topology.json"));
}

std::string drawn(const Json& document, std::size_t width) {
  return topology_page(*client::message_of<v1::GetTopologyResponse>(json_text(document)), width);
}

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

Json one_node(std::string_view more) {
  return *parse_object(fmt::format(R"({{"nodes":[{{"node":"n1","emulated":false,{}}}]}})", more));
}

TEST(Topology, IsDrawnAsMatrixAndTreeOfEachKindOfBoard) {
  EXPECT_EQ(drawn(boards(), 0), fixture("topology.txt"));
}

TEST(Topology, FitsTheTerminal) {
  Json wide = boards();
  Json& node = wide["nodes"][0];
  for (int i = 8; i < 16; ++i) {
    node["gpus"].push_back(node["gpus"][0]);
    node["gpus"].back()["index"] = i;
  }
  for (const std::size_t width : {60, 80, 100, 200}) {
    std::istringstream lines(drawn(wide, width));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(Topology, SplitsAMatrixThatIsTooWideAndShowsEveryPair) {
  const std::string page = drawn(boards(), 60);
  const std::size_t second = page.find("GPU  5");
  ASSERT_NE(second, std::string::npos) << page;
  EXPECT_TRUE(has(page.substr(second), "  0  NV18  NV18  NV18  0-55,112-167       0\n")) << page;
}

TEST(Topology, OfEqualNodesIsDrawnOnce) {
  Json many = Json::object();
  const Json dgx = boards()["nodes"][0];
  for (const int number : {10, 2, 1, 3, 12, 4}) {
    many["nodes"].push_back(dgx);
    many["nodes"].back()["node"] = fmt::format("dgx-{}", number);
    many["nodes"].back()["gpus"][0]["uuid"] = fmt::format("GPU-{}", number);
  }
  const std::string page = drawn(many, 0);
  EXPECT_TRUE(begins(page, "dgx-1 … dgx-4, dgx-10, dgx-12 (6 nodes, emulated)\n")) << page;
  EXPECT_EQ(page.find("NUMA node 0"), page.rfind("NUMA node 0"));
}

TEST(Topology, ShowsAddressesOnlyWhereAllOfAGroupShareThem) {
  Json two = Json::object();
  const Json dgx = boards()["nodes"][0];
  two["nodes"] = {dgx, dgx};
  two["nodes"][1]["gpus"][0]["pci_address"] = "00000000:ff:00.0";
  const std::string page = drawn(two, 0);
  EXPECT_TRUE(has(page, "GPU 0  H100-80GB\n")) << page;
  EXPECT_TRUE(has(page, "GPU 1  H100-80GB  00000000:43:00.0\n")) << page;
}

TEST(Topology, OfNodesThatDifferInALinkIsDrawnForEach) {
  Json two = Json::object();
  const Json dgx = boards()["nodes"][0];
  two["nodes"] = {dgx, dgx};
  two["nodes"][1]["links"][0]["link"] = "NV17";
  const std::string page = drawn(two, 0);
  EXPECT_NE(page.find("NUMA node 0"), page.rfind("NUMA node 0"));
}

TEST(Topology, SaysWhatIsNotKnown) {
  const std::string page =
      drawn(one_node(R"("numa_nodes":[],"gpus":[{"index":0,"type":"T4"},{"index":1,"type":"T4"}],)"
                     R"("links":[])"),
            0);
  EXPECT_EQ(page,
            "n1\n\n"
            "GPU  0  1  CPU AFFINITY  NUMA\n"
            "  0  X  ?  -                -\n"
            "  1  ?  X  -                -\n\n"
            "└─ NUMA node not known\n"
            "   ├─ GPU 0  T4\n"
            "   └─ GPU 1  T4\n\n"
            "Between two GPUs:\n"
            "  ?     not known\n");
}

TEST(Topology, OfANodeWithoutGpusIsItsTreeAlone) {
  EXPECT_EQ(drawn(one_node(R"("numa_nodes":[{"id":0,"socket":null,"cpus":"0-3",)"
                           R"("memory_bytes":null}],"gpus":[],"links":[])"),
                  0),
            "n1\n\n"
            "└─ socket not known\n"
            "   └─ NUMA node 0  CPUs 0-3\n");
}

TEST(Topology, KeepsGpusOfANumaNodeThatWasNotDescribed) {
  const std::string page = drawn(
      one_node(R"("numa_nodes":[],"gpus":[{"index":0,"type":"T4","numa_node":3}],"links":[])"), 0);
  EXPECT_TRUE(has(page, "└─ NUMA node 3\n   └─ GPU 0  T4\n")) << page;
}

constexpr std::string_view kSharedNode =
    R"("numa_nodes":[],"links":[],"gpus":[{"index":0,"type":"T4","parts":[],"free_share":1},)"
    R"({"index":1,"type":"T4","free_share":0.25,"parts":[)"
    R"({"job":"12","share":0.5,"mode":"TIME_SLICE"},{"job":"13","share":0.25,"mode":"TIME_SLICE"}]}])";

TEST(Topology, EndsWithTheGpusThatJobsShare) {
  const std::string page = drawn(one_node(kSharedNode), 0);
  const std::size_t shared = page.find("\nGPUs that jobs share:\n");
  ASSERT_NE(shared, std::string::npos) << page;
  const std::string table = page.substr(shared);
  EXPECT_TRUE(has(table, "12 (0.5), 13 (0.25)")) << page;
  EXPECT_TRUE(has(table, "time-slice")) << page;
  EXPECT_TRUE(has(table, "0.25\n")) << page;
  EXPECT_EQ(lines_in(table), 4U) << "a heading, the titles and one GPU\n" << page;
  EXPECT_FALSE(has(drawn(boards(), 0), "share"));
}

TEST_F(Cli, TopologyNamesTheJobsThatShareAGpu) {
  FakeServer server([](const Request& request) {
    if (begins(request.target, "/v1/jobs?")) {
      return json_answer(R"({"jobs":[{"id":"12","spec":{"user":"ada"}}]})");
    }
    return json_answer(json_text(one_node(kSharedNode)));
  });
  EXPECT_EQ(call(server, {"topology"}), 0);
  EXPECT_TRUE(has(out(), "12 ada (0.5), 13 (0.25)")) << out();
}

TEST_F(Cli, TopologyAsksForOneNodeOrAll) {
  FakeServer server([](const Request& request) {
    if (has(request.target, "elsewhere")) {
      return json_answer(
          R"({"status":404,"detail":"there is no node elsewhere","code":"NOT_FOUND","field":"node"})",
          404);
    }
    return json_answer(fixture("topology.json"));
  });
  EXPECT_EQ(call(server, {"topology"}), 0);
  EXPECT_EQ(out(), fixture("topology.txt"));
  EXPECT_EQ(call(server, {"topology", "--node", "elsewhere"}), 3);
  EXPECT_EQ(call(server, {"topology", "--json"}), 0);
  EXPECT_TRUE(out().ends_with(fixture("topology.json")));
  EXPECT_EQ(server.requests()[1], "GET /v1/topology?node=elsewhere");
}

}  // namespace
}  // namespace gpu_platform::cli
