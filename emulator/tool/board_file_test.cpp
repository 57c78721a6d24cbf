#include "tool/board_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace gpu_emulator {
namespace {

std::string dgx_text() {
  std::ifstream in(BOARDS_DIR "/dgx-h100.yaml");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The board with one piece of its text replaced.
std::string dgx_with(const std::string& from, const std::string& to) {
  std::string text = dgx_text();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Line of the first occurrence of `what` in the board.
int line_of(const std::string& what) {
  const std::string text = dgx_text();
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + text.find(what), '\n'));
}

TEST(BoardFile, EveryBoardThatWeShipIsValidAndNamedAfterItsFile) {
  int boards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BOARDS_DIR)) {
    const auto board = load_board(entry.path());
    ASSERT_TRUE(board) << board.error().message;
    EXPECT_EQ(board->name, entry.path().stem());
    ++boards;
  }
  EXPECT_GE(boards, 1);
}

TEST(BoardFile, OfTheMachineUnderQemuIsValid) {
  const auto board = load_board(MACHINE_BOARD);

  ASSERT_TRUE(board) << board.error().message;
  EXPECT_EQ(board->host.cpus(), 2u);
}

TEST(BoardFile, DescribesADgxH100) {
  const auto board = parse_board(dgx_text(), "dgx");

  ASSERT_TRUE(board) << board.error().message;
  EXPECT_EQ(board->gpus.size(), 8u);
  EXPECT_EQ(board->host.cpus(), 224u);
  EXPECT_EQ(board->host.memory_bytes, std::uint64_t{2} << 40);
  EXPECT_EQ(board->cuda_version, 12040u);
  EXPECT_EQ(board->models[0].memory_bytes, std::uint64_t{81559} << 20);
  std::uint32_t links = 0;
  for (const NvSwitch& nvswitch : board->switches) links += nvswitch.links_per_gpu;
  EXPECT_EQ(links, 18u);
}

struct Mistake {
  const char* from;  // text of the board
  const char* to;    // what it is replaced with
  const char* at;    // text on the line that the error names
  const char* words;
};

class BoardMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(BoardMistake, IsNamedWithItsLineAndField) {
  const Mistake& mistake = GetParam();

  const auto board = parse_board(dgx_with(mistake.from, mistake.to), "b.yaml");

  ASSERT_FALSE(board);
  const std::string place = fmt::format("b.yaml:{}: ", line_of(mistake.at));
  EXPECT_TRUE(board.error().message.starts_with(place))
      << board.error().message << "\nwanted " << place;
  EXPECT_NE(board.error().message.find(mistake.words), std::string::npos) << board.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BoardMistake,
    ::testing::Values(
        Mistake{"  sockets: 2", "  sockets: 0", "sockets: 2", "host.sockets: \"0\" is not allowed"},
        Mistake{"  sockets: 2", "  sokets: 2", "sockets: 2",
                "host.sokets: unknown field; allowed are sockets, cores_per_socket"},
        Mistake{"  memory: 2TiB", "  memory: plenty", "memory: 2TiB", "host.memory"},
        Mistake{"brand: nvidia", "brand: acme", "brand: nvidia",
                "models[0].brand: \"acme\" is not allowed; one of quadro, tesla"},
        Mistake{"mig: off", "mig: maybe", "mig: off", "unsupported, off, on"},
        Mistake{"mig: off", "mig: [off]", "mig: off", "a single value is needed"},
        Mistake{"compute_capability: 9.0", "compute_capability: nine", "compute_capability",
                "two numbers with a dot"},
        Mistake{"power_idle_watts: 71", "power_idle_watts: 701", "power_idle_watts",
                "a number from 1 to 700"},
        Mistake{"reserved_memory: 551MiB", "reserved_memory: 100GiB", "reserved_memory",
                "must be less than memory"},
        Mistake{"pci: \"00000000:43:00.0\"", "pci: \"zz:43:00.0\"", "00000000:43:00.0",
                "gpus[1].pci: \"zz:43:00.0\" is not a PCI address"},
        Mistake{"pci: \"00000000:43:00.0\"", "pci: \"00000000:1b:00.0\"", "00000000:43:00.0",
                "gpus[1].pci: must be greater"},
        Mistake{"{model: h100, pci: \"00000000:df", "{model: a100, pci: \"00000000:df",
                "00000000:df", "gpus[7].model: \"a100\" is not allowed; one of h100 is"},
        Mistake{"numa_node: 1, pcie_path: [bridge-d8", "numa_node: 2, pcie_path: [bridge-d8",
                "bridge-d8", "gpus[7].numa_node: \"2\" is not allowed; a number from 0 to 1 is"},
        Mistake{"    ecc: on\n", "    ecc: on\n    ecc: off\n", "# Banks whose",
                "models[0].ecc: given twice"},
        Mistake{"    ecc: on\n", "", "- id: h100", "models[0].ecc: missing"},
        Mistake{"nvlink: 4.0", "nvlink: none", "nvlink_ports: 18", "give both"},
        Mistake{"nvlink_ports: 18", "nvlink_ports: 17",
                "fabric:", "GPU 0 would use 18 links and has 17"},
        Mistake{"gpu_links: []", "gpu_links: [{gpus: [0, 8], links: 1}]", "gpu_links",
                "nvlink.gpu_links[0].gpus: numbers of GPUs are needed, from 0 to 7"},
        Mistake{"gpu_links: []", "gpu_links: [{gpus: [3, 3], links: 1}]", "gpu_links",
                "the lower of two numbers comes first"},
        Mistake{"starts: [0, 4]", "starts: [0, 5]", "starts: [0, 4]",
                "models[0].mig_profiles[4].starts: a memory slice from 0 to 4 is needed"},
        Mistake{"mig: off\n", "mig: unsupported\n", "- {profile: 1_slice,",
                "empty where it is unsupported"}));

TEST(BoardFile, ThatIsNoYamlIsRefusedWithItsLine) {
  const auto board = parse_board("board: x\ndriver: {\n", "b.yaml");

  ASSERT_FALSE(board);
  EXPECT_TRUE(board.error().message.starts_with("b.yaml:")) << board.error().message;
}

TEST(BoardFile, ThatIsEmptyOrNoMapIsRefused) {
  for (const char* text : {"", "[]", "5", "\n\n# nothing\n"}) {
    const auto board = parse_board(text, "b.yaml");
    ASSERT_FALSE(board) << text;
    EXPECT_NE(board.error().message.find("a map with the fields board"), std::string::npos)
        << board.error().message;
  }
}

TEST(NumaNodes, HaveTheCpusThatLinuxWouldGiveThem) {
  BoardHost host;
  host.sockets = 2;
  host.cores_per_socket = 4;
  host.threads_per_core = 2;
  host.numa_nodes_per_socket = 2;

  EXPECT_EQ(cpus_of_numa_node(host, 0), (std::vector<std::uint32_t>{0, 1, 8, 9}));
  EXPECT_EQ(cpus_of_numa_node(host, 3), (std::vector<std::uint32_t>{6, 7, 14, 15}));
}

}  // namespace
}  // namespace gpu_emulator
