#include "hardware/host_file/host_file.h"

#include <gtest/gtest.h>

namespace gpu_platform::hardware {
namespace {

constexpr const char* kDgx = R"({
  "version": 1, "board": "dgx-h100", "host_name": "n1", "sockets": 2, "memory_bytes": 2199023255552,
  "numa_nodes": [
    {"id": 1, "socket": 1, "cpus": "56-111,168-223", "memory_bytes": 1099511627776},
    {"id": 0, "socket": 0, "cpus": "0-55,112-167", "memory_bytes": 1099511627776}],
  "something_newer": true})";

TEST(HostFile, DescribesTheBoardsHost) {
  const auto host = parse_host_file(kDgx, "host.json", "boot");

  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(host->name, "n1");
  EXPECT_EQ(host->boot_id, "boot");
  EXPECT_EQ(host->cpus.size(), 224u);
  EXPECT_EQ(host->cpus.back(), 223u);
  EXPECT_EQ(host->memory, base::kGiB * 2048);
  ASSERT_EQ(host->numa_nodes.size(), 2u);
  EXPECT_EQ(host->numa_nodes[0].id, 0u);
  EXPECT_EQ(host->numa_nodes[1].cpus.front(), 56u);
  EXPECT_EQ(host->numa_nodes[1].socket, 1u);
  EXPECT_EQ(host->sockets, 2u);
  EXPECT_EQ(host->cores, std::nullopt) << "the file does not tell";
}

TEST(HostFile, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "not a JSON object"},
      {"[]", "not a JSON object"},
      {R"({"version": 2})", "version 2"},
      {R"({"version": 1})", "host_name"},
      {R"({"version": 1, "host_name": 5})", "host_name"},
      {R"({"version": 1, "host_name": "n", "memory_bytes": -1})", "memory_bytes"},
      {R"({"version": 1, "host_name": "n", "memory_bytes": 1})", "numa_nodes"},
      {R"({"version": 1, "host_name": "n", "memory_bytes": 1, "numa_nodes": [3]})", "numa_nodes"},
      {R"({"version": 1, "host_name": "n", "memory_bytes": 1,
           "numa_nodes": [{"id": 0, "cpus": "x", "memory_bytes": 1}]})",
       "list of CPUs"},
      {R"({"version": 1, "host_name": "n", "memory_bytes": 1,
           "numa_nodes": [{"id": 0, "cpus": "0-3", "memory_bytes": 1},
                          {"id": 1, "cpus": "3-4", "memory_bytes": 1}]})",
       "two NUMA nodes"},
  };
  for (const auto& [text, words] : cases) {
    const auto host = parse_host_file(text, "host.json", "boot");
    ASSERT_FALSE(host) << text;
    EXPECT_NE(host.error().message.find(words), std::string::npos) << host.error().message;
  }
}

TEST(HostFile, ThatIsMissingIsAnError) {
  EXPECT_FALSE(open_host_file("/nonexistent/host.json", "boot")->describe());
}

}  // namespace
}  // namespace gpu_platform::hardware
