#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "tool/library_fixture.h"

// Every function of the table on every board: that it is exported, and what it answers. The answers
// are those of nvml_answers.txt; nvml_calls.txt says how each function is called.

namespace gpu_emulator {
namespace {

struct Function {
  const char* name;
  unsigned since;
};

#define FUNCTION(name, since, answer) {#name, since},
constexpr Function kFunctions[] = {
#include "nvml/functions.inc"
};
#undef FUNCTION

constexpr auto kBoards =
    std::to_array<const char*>({"t4x4", "v100x8", "dgx-a100", "a100-pcie-x4", "l40s-x8", "dgx-h100",
                                "hgx-h200", "h200-single", "b200", "mixed"});

const std::map<int, std::string> kNames{{kSuccess, "success"},
                                        {kUninitialized, "uninitialized"},
                                        {kInvalidArgument, "invalid_argument"},
                                        {kNotSupported, "not_supported"},
                                        {kNoPermission, "no_permission"},
                                        {kNotFound, "not_found"},
                                        {kInsufficientSize, "insufficient_size"},
                                        {kTimeout, "timeout"},
                                        {kFunctionNotFound, "function_not_found"},
                                        {kArgumentVersionMismatch, "version_mismatch"}};

std::string name_of(int answer) {
  const auto found = kNames.find(answer);
  return found == kNames.end() ? fmt::format("{}", answer) : found->second;
}

std::map<std::string, std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    lines[line.substr(0, space)] = space < line.size() ? line.substr(space + 1) : "";
  }
  return lines;
}

class Answers : public Library {
 protected:
  using Argument = unsigned long long;
  static constexpr std::size_t kRoom = 64 * 1024;

  // Returns the function's answer to a call with these arguments.
  int call(const std::string& name, const std::string& letters) {
    rooms_.clear();
    std::array<Argument, 8> at{};
    std::size_t count = 0;
    std::istringstream words(letters);
    for (std::string word; words >> word && count < at.size();) at[count++] = argument(word);
    void* symbol = dlsym(library_, name.c_str());
    if (symbol == nullptr) return -1;
    using Any = int(Argument, Argument, Argument, Argument, Argument, Argument, Argument, Argument);
    return reinterpret_cast<Any*>(symbol)(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]);
  }

  void prepare() {
    find<decltype(nvmlDeviceGetCount_v2)>("nvmlDeviceGetCount_v2")(&gpus_);
    find<decltype(nvmlEventSetCreate)>("nvmlEventSetCreate")(&events_);
  }

 private:
  char* room() { return rooms_.emplace_back(kRoom, '\0').data(); }
  template <class T>
  Argument room_with(const T& value) {
    char* place = room();
    std::memcpy(place, &value, sizeof value);
    return reinterpret_cast<Argument>(place);
  }

  Argument argument(const std::string& word) {
    const StateFile file = state();
    const GpuState& first = file.state().gpus[0];
    switch (word[0]) {
      case 'd':
        return reinterpret_cast<Argument>(gpu(0));
      case 'D':
        return reinterpret_cast<Argument>(gpu(gpus_ - 1));
      case 'e':
        return reinterpret_cast<Argument>(events_);
      case 'n':
        return 0;
      case 'o':
        return reinterpret_cast<Argument>(room());
      case 'c':
        return room_with(64u);
      case 'v':
        return room_with(static_cast<unsigned>(std::stoul(word.substr(1), nullptr, 16)));
      case 'U':
        return room_with(first.uuid);
      case 'S':
        return room_with(first.serial);
      default:
        return of_board(word, first);
    }
  }

  Argument of_board(const std::string& word, const GpuState& first) {
    switch (word[0]) {
      case 'B': {
        PciInfo pci{};
        find<decltype(nvmlDeviceGetPciInfo_v3)>("nvmlDeviceGetPciInfo_v3")(gpu(0), &pci);
        return room_with(pci.bus_id);
      }
      case 'P': {
        PciInfo pci{};
        find<decltype(nvmlDeviceGetPciInfo_v3)>("nvmlDeviceGetPciInfo_v3")(gpu(0), &pci);
        return room_with(pci);
      }
      case 'p':
        return first.power_limit_max_mw;
      case 'w':
        return room_with(std::array<unsigned, 3>{0x0200000c, 0, first.power_limit_max_mw});
      case 's':
        return reinterpret_cast<Argument>(sample());
      case 'x':
        return room_with(GpmMetricsGet{1, 1, sample(), sample(), {{.metric_id = 1}}});
      case 'm':
        return first.clock_memory_max_mhz;
      case 'g':
        return first.clock_sm_max_mhz;
      default:
        return std::stoull(word);
    }
  }

  // Taken, where the board has GPM. The function that is called may free it.
  nvmlGpmSample_t sample() {
    nvmlGpmSample_t made = nullptr;
    EXPECT_EQ(find<decltype(nvmlGpmSampleAlloc)>("nvmlGpmSampleAlloc")(&made), kSuccess);
    find<decltype(nvmlGpmSampleGet)>("nvmlGpmSampleGet")(gpu(0), made);
    return made;
  }

  std::vector<std::string> rooms_;
  unsigned gpus_ = 0;
  nvmlEventSet_t events_ = nullptr;
};

// "success; not_supported: t4x4 v100x8": the answer of most boards, then the others'.
std::string in_short(const std::vector<int>& answers) {
  std::map<int, std::string> boards;
  std::map<int, int> counts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    boards[answers[i]] += fmt::format(" {}", kBoards[i]);
    ++counts[answers[i]];
  }
  const int usual =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  std::string text = name_of(usual);
  for (const auto& [answer, names] : boards) {
    if (answer != usual) text += fmt::format("; {}:{}", name_of(answer), names);
  }
  return text;
}

TEST_F(Answers, AreThoseOfTheTableForEveryFunctionAndBoard) {
  if (geteuid() != 0) GTEST_SKIP() << "the table is what root is answered";
  const auto calls = lines_of(TOOL_DIR "/nvml_calls.txt");
  std::map<std::string, std::vector<int>> answers;
  for (const char* board : kBoards) {
    open_board(board);
    initialise();
    prepare();
    for (const auto& [name, letters] : calls) answers[name].push_back(call(name, letters));
  }

  const auto expected = lines_of(TOOL_DIR "/nvml_answers.txt");
  std::string all;
  for (const auto& [name, of_boards] : answers) {
    const std::string text = in_short(of_boards);
    all += fmt::format("{} {}\n", name, text);
    const auto found = expected.find(name);
    EXPECT_EQ(text, found == expected.end() ? "" : found->second) << name;
  }
  EXPECT_EQ(expected.size(), answers.size());
  if (HasFailure()) {
    const std::string path = ::testing::TempDir() + "nvml_answers.txt";
    std::ofstream(path) << all;
    ADD_FAILURE() << path << " has what was answered";
  }
}

TEST_F(Answers, ComeFromEveryFunctionOfTheNewestHeader) {
  const auto calls = lines_of(TOOL_DIR "/nvml_calls.txt");
  for (const Function& function : kFunctions) {
    EXPECT_NE(dlsym(library_, function.name), nullptr) << function.name;
    const std::string_view name = function.name;
    EXPECT_TRUE(name == "nvmlErrorString" || name == "nvmlShutdown" ||
                calls.contains(function.name))
        << name;
  }
}

// A program that looks symbols up must not find those of newer drivers; `gpu-emulator env` names
// the library of the board's branch.
TEST(Branches, ExportWhatTheirHeaderHas) {
  for (const unsigned branch : {535u, 550u, 570u, 580u}) {
    const std::string path =
        fmt::format("{}/branch-{}/libnvidia-ml.so.1",
                    std::filesystem::path(EMULATED_NVML).parent_path().string(), branch);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    for (const Function& function : kFunctions) {
      EXPECT_EQ(dlsym(library, function.name) != nullptr, function.since <= branch)
          << branch << " " << function.name;
    }
    dlclose(library);
  }
}

// The rule, for each function that a board's driver is too old for.
TEST_F(Answers, AreFunctionNotFoundWhereTheDriverIsOlderThanTheFunction) {
  const auto calls = lines_of(TOOL_DIR "/nvml_calls.txt");
  for (const char* board : {"t4x4", "dgx-h100", "l40s-x8", "b200"}) {
    open_board(board);
    initialise();
    prepare();
    const unsigned branch = state().state().driver_major;
    for (const Function& function : kFunctions) {
      const auto letters = calls.find(function.name);
      if (letters == calls.end()) continue;
      const int answer = call(function.name, letters->second);
      EXPECT_EQ(answer == kFunctionNotFound, function.since > branch)
          << board << " " << function.name;
    }
  }
}

}  // namespace
}  // namespace gpu_emulator
