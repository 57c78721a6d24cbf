#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "base/prng.h"
#include "node/devices/device_program.h"
#include "node/devices/driver_list.h"

namespace gpu_platform::node {
namespace {

constexpr std::string_view kDriver535 =
    "Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n136 pts\n195 nvidia-frontend\n"
    "235 nvidia-caps\n236 nvidia-nvswitch\n237 nvidia-nvlink\n508 nvidia-uvm\n509 drm\n\n"
    "Block devices:\n  7 loop\n259 blkext\n";
constexpr std::string_view kDriver595 =
    "Character devices:\n  1 mem\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n"
    "234 nvidia-caps-imex-channels\n235 nvidia-caps\n511 nvidia-uvm\n\nBlock devices:\n  7 loop\n";
constexpr std::string_view kNoDriver =
    "Character devices:\n  1 mem\n136 pts\n\nBlock devices:\n  7 loop\n";

using Devices = std::vector<DeviceNumber>;
const Devices kHarmless = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}};

Devices with_harmless(const Devices& more) {
  Devices all = kHarmless;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(DeviceRules, JobGetsItsGpusAndTheControlNodes) {
  const Devices gpus = {{195, 3}, {195, 1}};
  const DeviceRules rules = device_rules({kDriver535}, gpus);
  EXPECT_EQ(rules.allowed, with_harmless({{195, 1}, {195, 3}, {195, 255}, {508, 0}, {508, 1}}));
  EXPECT_EQ(rules.guarded, (std::vector<std::uint32_t>{1, 195, 226, 235, 236, 237, 508}));
}

TEST(DeviceRules, ModeSettingIsForJobsWithGpusWhereTheSiteWantsIt) {
  EXPECT_EQ(device_rules({kNoDriver, true}, Devices{{195, 0}}).allowed,
            with_harmless({{195, 0}, {195, 254}, {195, 255}}));
  EXPECT_EQ(device_rules({kNoDriver, true}, {}).allowed, kHarmless);
}

TEST(DeviceError, OnlyGpusOfTheNodeAndTheirCapabilitiesAreGivenToJobs) {
  const std::vector<std::uint32_t> minors = {0, 3};
  EXPECT_EQ(error_in_devices(Devices{{195, 0}, {195, 3}, {235, 12}}, kDriver535, minors), "");
  for (const DeviceNumber odd : Devices{{195, 1},
                                        {195, 254},
                                        {195, 255},
                                        {1, 1},
                                        {8, 0},
                                        {508, 0},
                                        {235, 1},
                                        {236, 5},
                                        {10, 200}}) {
    EXPECT_EQ(error_in_devices(Devices{{195, 0}, odd}, kDriver535, minors),
              "device " + std::to_string(odd.major) + ":" + std::to_string(odd.minor) +
                  " is not a GPU of this node");
  }
}

TEST(DeviceError, WithoutADriverEveryNumberOfAGpuIsTaken) {
  EXPECT_EQ(error_in_devices(Devices{{195, 0}, {195, 247}}, kNoDriver, std::nullopt), "");
  EXPECT_NE(error_in_devices(Devices{{195, 248}}, kNoDriver, std::nullopt), "");
  EXPECT_NE(error_in_devices(Devices{{235, 12}}, kNoDriver, std::nullopt), "");
}

TEST(DeviceError, MinorIsReadFromWhatTheDriverSays) {
  EXPECT_EQ(parse_device_minor("Model: \t\t NVIDIA H100\nDevice Minor: \t 5\nIRQ: 3\n"), 5u);
  EXPECT_EQ(parse_device_minor("Model: 7\n"), std::nullopt);
  EXPECT_EQ(parse_device_minor("Device Minor: none\n"), std::nullopt);
}

TEST(DeviceRules, JobWithoutGpusGetsNoNodeOfNvidia) {
  for (const std::string_view devices : {kDriver535, kDriver595, kNoDriver}) {
    EXPECT_EQ(device_rules({devices}, {}).allowed, kHarmless);
  }
}

TEST(DeviceRules, DriversWithSeveralNamesForOneMajorAreRead) {
  const DeviceRules rules = device_rules({kDriver595}, Devices{{195, 0}});
  EXPECT_EQ(rules.allowed, with_harmless({{195, 0}, {195, 255}, {511, 0}, {511, 1}}));
  EXPECT_EQ(rules.guarded, (std::vector<std::uint32_t>{1, 195, 226, 234, 235, 511}));
}

TEST(DeviceRules, GpusAreGuardedBeforeTheirDriverIsLoaded) {
  EXPECT_EQ(device_rules({kNoDriver}, {}).guarded, (std::vector<std::uint32_t>{1, 195, 226}));
}

TEST(DeviceRules, OddTextGuardsWhatIsAlwaysGuarded) {
  for (const std::string_view text :
       {"", "\n\n", "Character devices:", "Character devices:\nnvidia-uvm 508\n508nvidia-uvm\n",
        "Block devices:\n508 nvidia-uvm\n", "508 nvidia-uvm\n",
        "Character devices:\n99999999999999 nvidia-uvm\n-1 nvidia-uvm\n508\n508 \n"}) {
    EXPECT_EQ(device_rules({text}, {}).guarded, (std::vector<std::uint32_t>{1, 195, 226})) << text;
  }
}

// Runs the program as the kernel would, for the instructions that it uses.
std::optional<std::uint64_t> run(const std::vector<bpf_insn>& program,
                                 const bpf_cgroup_dev_ctx& context) {
  std::uint64_t r[11] = {};
  for (std::size_t at = 0; at < program.size(); ++at) {
    const bpf_insn& i = program[at];
    const auto value = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm));
    switch (i.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        r[i.dst_reg] = i.off == 0   ? context.access_type
                       : i.off == 4 ? context.major
                                    : context.minor;
        break;
      case BPF_ALU64 | BPF_MOV | BPF_X:
        r[i.dst_reg] = r[i.src_reg];
        break;
      case BPF_ALU64 | BPF_MOV | BPF_K:
        r[i.dst_reg] = value;
        break;
      case BPF_ALU64 | BPF_AND | BPF_K:
        r[i.dst_reg] &= value;
        break;
      case BPF_ALU64 | BPF_RSH | BPF_K:
        r[i.dst_reg] >>= value;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        if (r[i.dst_reg] == value) at += static_cast<std::size_t>(i.off);
        break;
      case BPF_JMP | BPF_JNE | BPF_K:
        if (r[i.dst_reg] != value) at += static_cast<std::size_t>(i.off);
        break;
      case BPF_JMP | BPF_EXIT:
        return r[0];
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

bool contains(const auto& list, const auto& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

bool should_allow(const DeviceRules& rules, const bpf_cgroup_dev_ctx& context) {
  const DeviceNumber device{context.major, context.minor};
  if ((context.access_type & 0xffff) != BPF_DEVCG_DEV_CHAR) return false;
  if (((context.access_type >> 16) & BPF_DEVCG_ACC_MKNOD) != 0) return device == DeviceNumber{0, 0};
  return contains(rules.allowed, device) || !contains(rules.guarded, device.major);
}

TEST(DeviceProgram, DecidesAsTheRulesSay) {
  constexpr int kRounds = 20'000;
  base::Prng random(195);
  int allowed = 0;
  for (int round = 0; round < kRounds; ++round) {
    Devices gpus(random.below(9));
    for (DeviceNumber& gpu : gpus) gpu = {195, static_cast<std::uint32_t>(random.below(16))};
    const DeviceRules rules =
        device_rules({random.chance(1, 2) ? kDriver535 : kDriver595, random.chance(1, 2)}, gpus);
    constexpr std::uint32_t kMajors[] = {0, 1, 5, 7, 195, 226, 235, 508, 511};
    constexpr std::uint32_t kMinors[] = {0, 1, 2, 3, 7, 9, 15, 253, 254, 255};
    bpf_cgroup_dev_ctx context{};
    context.access_type = static_cast<std::uint32_t>(random.below(3) | random.below(8) << 16);
    context.major = kMajors[random.below(std::size(kMajors))];
    context.minor = kMinors[random.below(std::size(kMinors))];
    const bool expected = should_allow(rules, context);
    allowed += expected ? 1 : 0;
    EXPECT_EQ(run(assemble(rules), context), expected ? 1u : 0u)
        << context.access_type << " " << context.major << ":" << context.minor;
  }
  EXPECT_GT(allowed, kRounds / 20);
  EXPECT_LT(allowed, kRounds / 2);
}

TEST(DriverList, IsReadAgainOnceItIsASecondOld) {
  const std::string path = testing::TempDir() + "drivers." + std::to_string(getpid());
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  write("one");
  DriverList drivers(path);
  EXPECT_EQ(drivers.last(), "");
  EXPECT_EQ(drivers.text(5'000), "one");
  write("two");
  EXPECT_EQ(drivers.text(5'999), "one");
  EXPECT_EQ(drivers.text(6'000), "two");
  write("three");
  EXPECT_EQ(drivers.read_again(6'001), "three");
  EXPECT_EQ(drivers.last(), "three");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gpu_platform::node
