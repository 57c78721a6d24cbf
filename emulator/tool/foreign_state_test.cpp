#include <cstring>
#include <fstream>
#include <vector>

#include "tool/library_fixture.h"

// State files that are none, of another layout, or damaged: an error, never a crash.

namespace gpu_emulator {
namespace {

class ForeignState : public Library {
 protected:
  // The answers of the library and the tool about a file with these contents.
  struct Answers {
    Return library;
    std::string tool;
  };

  Answers answers_for(const std::string& bytes) {
    std::ofstream(state_path(), std::ios::binary | std::ios::trunc) << bytes;
    const Return result = find<decltype(nvmlInit_v2)>("nvmlInit_v2")();
    const auto file = StateFile::open(state_path(), StateFile::Access::kWrite);
    return {result, file ? "opened" : file.error().message};
  }

  // The bytes of a good state, changed.
  template <class Edit>
  std::string with(Edit edit) {
    std::ifstream in(state_path(), std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    edit(*reinterpret_cast<BoardState*>(bytes.data()));
    return std::string(bytes.begin(), bytes.end());
  }
};

TEST_F(ForeignState, OfAnotherKindIsNamedSo) {
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(200'000, 'x'),
                                   std::string(200'000, '\0')}) {
    const Answers answers = answers_for(bytes);
    EXPECT_EQ(answers.library, kLibRmVersionMismatch) << bytes.size();
    EXPECT_NE(answers.tool.find("is not the state of an emulated board"), std::string::npos)
        << answers.tool;
  }
}

TEST_F(ForeignState, OfAnOlderLayoutIsNamedSo) {
  const Answers shorter =
      answers_for(with([](BoardState& state) { state.version = 1; }).substr(0, 50'000));
  EXPECT_EQ(shorter.library, kLibRmVersionMismatch);
  EXPECT_NE(shorter.tool.find("has layout 1"), std::string::npos) << shorter.tool;
  EXPECT_NE(shorter.tool.find("gpu-emulator create"), std::string::npos) << shorter.tool;
}

TEST_F(ForeignState, ThatWouldLeadOutOfBoundsIsDamaged) {
  const std::vector<void (*)(BoardState&)> damages{
      [](BoardState& state) { state.gpu_count = 17; },
      [](BoardState& state) { state.numa_count = 99; },
      [](BoardState& state) { state.gpus[3].nvlink_count = 37; },
      [](BoardState& state) { state.gpus[3].numa_node = 2; },
      [](BoardState& state) { state.gpus[3].mig_profile_count = 9; },
      [](BoardState& state) { state.numa_nodes[0].socket = 1'000; },
      [](BoardState& state) { std::memset(state.gpus[0].name, 'x', sizeof state.gpus[0].name); },
      [](BoardState& state) { std::memset(state.board, 'x', sizeof state.board); },
      [](BoardState& state) { state.gpus[0].reserved_bytes = ~0ull; }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    open_board("dgx-h100");
    const Answers answers = answers_for(with(damages[i]));
    EXPECT_EQ(answers.library, kLibRmVersionMismatch) << "damage " << i;
    EXPECT_NE(answers.tool.find("damaged"), std::string::npos) << i << ": " << answers.tool;
  }
}

TEST_F(ForeignState, ThatIsNoFileIsRefused) {
  for (const char* path : {"/dev/zero", "/tmp"}) {
    setenv("GPU_EMULATOR_STATE", path, 1);
    EXPECT_NE(find<decltype(nvmlInit_v2)>("nvmlInit_v2")(), kSuccess) << path;
  }
}

// Any user may write the file while the library has it mapped: with any content, a call ends
// with an answer.
TEST_F(ForeignState, MayAppearUnderALibraryThatIsOpen) {
  initialise();
  const nvmlDevice_t device = gpu(0);
  {
    std::fstream raw(state_path(), std::ios::in | std::ios::out | std::ios::binary);
    raw.seekp(offsetof(BoardState, numa_nodes));
    raw << std::string(sizeof(BoardState) - offsetof(BoardState, numa_nodes), '\xff');
  }
  // Every call then finds an answer that is forced upon it, and work; those too are taken away.
  {
    std::fstream raw(state_path(), std::ios::in | std::ios::out | std::ios::binary);
    for (const std::size_t at : {offsetof(GpuState, answer), offsetof(GpuState, answer_delay_us),
                                 offsetof(GpuState, answer_work_us)}) {
      raw.seekp(static_cast<std::streamoff>(offsetof(BoardState, gpus) + at));
      raw << std::string(4, '\0');
    }
  }
  char text[96];
  unsigned value = 0;
  unsigned long words[64];

  EXPECT_NO_FATAL_FAILURE(find<decltype(nvmlDeviceGetName)>("nvmlDeviceGetName")(device, text, 96));
  EXPECT_LT(strnlen(text, sizeof text), sizeof text);
  EXPECT_EQ(find<decltype(nvmlDeviceGetCpuAffinity)>("nvmlDeviceGetCpuAffinity")(device, 64, words),
            kSuccess);
  EXPECT_EQ(
      find<decltype(nvmlDeviceGetNvLinkState)>("nvmlDeviceGetNvLinkState")(device, 36, &value),
      kInvalidArgument);
  EXPECT_EQ(find<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage")(device, &value),
            kSuccess);
  Memory memory{};
  EXPECT_EQ(find<decltype(nvmlDeviceGetMemoryInfo)>("nvmlDeviceGetMemoryInfo")(device, &memory),
            kSuccess);
}

}  // namespace
}  // namespace gpu_emulator
