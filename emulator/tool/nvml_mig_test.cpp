#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "tool/commands.h"
#include "tool/mig_commands.h"
#include "tool/mig_fixture.h"

// MIG through the library: modes, handles, error codes, and what programs see of instances.

namespace gpu_emulator {
namespace {

// Ids of profiles, as nvidia-smi has them, and numbers of profiles of compute instances.
constexpr unsigned kOneSlice = 19;
constexpr unsigned kOneSliceMedia = 20;
constexpr unsigned kTwoSlices = 14;
constexpr unsigned kThreeSlices = 9;
constexpr unsigned kSevenSlices = 0;
constexpr unsigned kComputeOfOne = 0;
constexpr unsigned kComputeOfThree = 2;

class NvmlMig : public MigLibrary {
 protected:
  std::string capability(const std::string& name) const {
    std::ifstream in(root_ + "/emulated/n1/proc/driver/nvidia/capabilities/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::vector<ProcessInfo> processes_of(nvmlDevice_t device) {
    std::vector<ProcessInfo> found(kMaxProcesses);
    unsigned count = kMaxProcesses;
    EXPECT_EQ(find<decltype(nvmlDeviceGetComputeRunningProcesses_v3)>(
                  "nvmlDeviceGetComputeRunningProcesses_v3")(device, &count, found.data()),
              kSuccess);
    found.resize(count);
    return found;
  }
  // A process that stays on the instance until it is cleared.
  void start_work(const InstanceId& id, std::uint64_t bytes) {
    ASSERT_TRUE(state().load(0, 4'194'303, bytes, 50, StateFile::Presence::kLingering, id));
  }
  nvmlReturn_t by_uuid(const std::string& uuid, nvmlDevice_t* device) {
    return find<decltype(nvmlDeviceGetHandleByUUID)>("nvmlDeviceGetHandleByUUID")(uuid.c_str(),
                                                                                  device);
  }
};

TEST_F(NvmlMig, ModeOfAmpereWaitsForAResetWhileAnotherProgramHasTheDriverOpen) {
  const int other = ::open(state_path().c_str(), O_RDONLY | O_CLOEXEC);
  struct flock held{};
  held.l_type = F_RDLCK;
  held.l_whence = SEEK_SET;
  held.l_start = off_t{1} << 40;  // what every program that has NVML initialised holds
  held.l_len = 1;
  ASSERT_EQ(::fcntl(other, F_OFD_SETLK, &held), 0);
  nvmlReturn_t status = kUnknown;

  EXPECT_EQ(set_mode(1, &status, 1), kSuccess);
  EXPECT_EQ(status, kInUse);
  EXPECT_EQ(mode(1), std::pair(0U, 1U));
  ASSERT_TRUE(state().change(1, reset_gpu));
  EXPECT_EQ(mode(1), std::pair(1U, 1U));
  ::close(other);
  EXPECT_EQ(set_mode(0, &status, 1), kSuccess);
  EXPECT_EQ(status, kSuccess);
  EXPECT_EQ(mode(1), std::pair(0U, 0U));
}

TEST_F(NvmlMig, ModeOfHopperWaitsForWorkAlone) {
  open_board("dgx-h100");
  initialise();
  nvmlReturn_t status = kUnknown;
  ASSERT_TRUE(state().load(0, 4'194'303, 1, 0, StateFile::Presence::kLingering));

  EXPECT_EQ(set_mode(1, &status), kSuccess);
  EXPECT_EQ(status, kInUse);
  EXPECT_EQ(mode(), std::pair(0U, 1U));
  ASSERT_TRUE(state().clear(0));
  EXPECT_EQ(set_mode(1, &status), kSuccess);
  EXPECT_EQ(status, kSuccess);
  EXPECT_EQ(mode(), std::pair(1U, 1U));
  EXPECT_EQ(set_mode(2, &status), kInvalidArgument);
  EXPECT_EQ(set_mode(1, nullptr), kInvalidArgument);
}

TEST_F(NvmlMig, BoardsWithoutMigSupportNoneOfIt) {
  for (const char* board : {"t4x4", "v100x8", "l40s-x8"}) {
    open_board(board);
    initialise();
    nvmlReturn_t status = kUnknown;
    nvmlGpuInstance_t made = nullptr;
    EXPECT_EQ(set_mode(1, &status), kNotSupported) << board;
    EXPECT_EQ(create(kOneSlice, &made), kNotSupported) << board;
  }
}

TEST_F(NvmlMig, ModeIsNotSwitchedOffUnderInstances) {
  make_device(kOneSlice, kComputeOfOne);
  nvmlReturn_t status = kUnknown;

  EXPECT_EQ(set_mode(0, &status), kSuccess);

  EXPECT_EQ(status, kInUse);
  EXPECT_EQ(mode(), std::pair(1U, 0U));
}

TEST_F(NvmlMig, CreationsAnswerWhatIsWrong) {
  nvmlGpuInstance_t made = nullptr;
  nvmlGpuInstance_t second = nullptr;

  EXPECT_EQ(create(77, &made), kInvalidArgument);
  EXPECT_EQ(create(kOneSlice, nullptr), kInvalidArgument);
  EXPECT_EQ(create_at(kThreeSlices, 0, 3, &made), kInvalidArgument) << "four memory slices";
  EXPECT_EQ(create_at(kThreeSlices, 2, 4, &made), kInvalidArgument);
  EXPECT_EQ(create_at(kThreeSlices, 4, 4, &made), kSuccess);
  EXPECT_EQ(create_at(kOneSlice, 6, 1, &second), kInsufficientResources);
  EXPECT_EQ(create(kSevenSlices, &second), kInsufficientResources);
  EXPECT_EQ(create(kOneSliceMedia, &second), kSuccess);
  EXPECT_EQ(create(kOneSliceMedia, &second), kInsufficientResources);
  EXPECT_EQ(remaining(kOneSlice), 3U);
  EXPECT_EQ(info_of(made).placement.start, 4U);
  EXPECT_EQ(info_of(made).placement.size, 4U);
  EXPECT_EQ(info_of(made).profile_id, kThreeSlices);
  EXPECT_EQ(info_of(made).device, gpu(0));
}

TEST_F(NvmlMig, HandlesDieWithTheirInstances) {
  nvmlGpuInstance_t made = nullptr;
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(create(kTwoSlices, &made), kSuccess);
  ASSERT_EQ(create_compute(made, 1, &compute), kSuccess);
  const nvmlDevice_t device = mig_device(0);

  EXPECT_EQ(destroy(made), kInUse);
  EXPECT_EQ(destroy(compute), kSuccess);
  EXPECT_EQ(destroy(compute), kInvalidArgument);
  EXPECT_EQ(destroy(made), kSuccess);
  EXPECT_EQ(destroy(made), kInvalidArgument);
  unsigned value = 0;
  EXPECT_EQ(
      find<decltype(nvmlDeviceGetGpuInstanceId)>("nvmlDeviceGetGpuInstanceId")(device, &value),
      kInvalidArgument);
  EXPECT_EQ(remaining(kOneSlice), 7U);
}

TEST_F(NvmlMig, DevicesAreFoundByIndexAndUuid) {
  const InstanceId first = make_device(kThreeSlices, kComputeOfThree);
  make_device(kThreeSlices, kComputeOfThree);
  const nvmlDevice_t device = mig_device(1);
  nvmlDevice_t found = nullptr;
  unsigned value = 0;

  EXPECT_EQ(first.gpu_instance, 2U) << "made first, counted by its id";
  EXPECT_EQ(by_uuid(text_of("nvmlDeviceGetUUID", device), &found), kSuccess);
  EXPECT_EQ(found, device);
  EXPECT_EQ(by_uuid("MIG-00000000-0000-0000-0000-000000000000", &found), kNotFound);
  EXPECT_EQ(text_of("nvmlDeviceGetName", device), "NVIDIA A100-SXM4-80GB MIG 3g.40gb");
  EXPECT_EQ(
      find<decltype(nvmlDeviceIsMigDeviceHandle)>("nvmlDeviceIsMigDeviceHandle")(device, &value),
      kSuccess);
  EXPECT_EQ(value, 1U);
  EXPECT_EQ(
      find<decltype(nvmlDeviceGetGpuInstanceId)>("nvmlDeviceGetGpuInstanceId")(device, &value),
      kSuccess);
  EXPECT_EQ(value, 2U);
  EXPECT_EQ(find<decltype(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)>(
                "nvmlDeviceGetDeviceHandleFromMigDeviceHandle")(device, &found),
            kSuccess);
  EXPECT_EQ(found, gpu(0));
  EXPECT_EQ(find<decltype(nvmlDeviceGetMigDeviceHandleByIndex)>(
                "nvmlDeviceGetMigDeviceHandleByIndex")(gpu(0), 2, &found),
            kNotFound);
  EXPECT_EQ(find<decltype(nvmlDeviceGetMigDeviceHandleByIndex)>(
                "nvmlDeviceGetMigDeviceHandleByIndex")(gpu(1), 0, &found),
            kNotSupported)
      << "MIG is off there";
}

TEST_F(NvmlMig, TheSameInstanceGetsTheSameUuidAgain) {
  make_device(kSevenSlices, 4);
  const std::string uuid = text_of("nvmlDeviceGetUUID", mig_device(0));
  ASSERT_TRUE(state().change_instances(0, [](GpuState& to) {
    drop_instance(to, {0, kNoId});
    return MigResult::kDone;
  }));

  make_device(kSevenSlices, 4);

  EXPECT_EQ(text_of("nvmlDeviceGetUUID", mig_device(0)), uuid);
}

TEST_F(NvmlMig, DevicesTellTheirOwnMemoryProcessesAndEngines) {
  const InstanceId id = make_device(kOneSlice, kComputeOfOne);
  make_device(kOneSlice, kComputeOfOne);
  start_work(id, std::uint64_t{1} << 30);
  nvmlDevice_t busy = mig_device(0);
  nvmlDevice_t idle = mig_device(1);
  if (processes_of(busy).empty()) std::swap(busy, idle);
  MemoryV2 memory{};
  memory.version = kMemoryV2Version;
  DeviceAttributes attributes{};
  Utilization rates{};

  ASSERT_EQ(processes_of(busy).size(), 1U);
  EXPECT_EQ(processes_of(busy)[0].gpu_instance_id, id.gpu_instance);
  EXPECT_EQ(processes_of(busy)[0].compute_instance_id, 0U);
  EXPECT_TRUE(processes_of(idle).empty());
  EXPECT_EQ(processes_of(gpu(0)).size(), 1U);
  const auto read = find<decltype(nvmlDeviceGetMemoryInfo_v2)>("nvmlDeviceGetMemoryInfo_v2");
  EXPECT_EQ(read(busy, &memory), kSuccess);
  EXPECT_EQ(memory.total, 9856ULL << 20);
  EXPECT_EQ(memory.used, 1ULL << 30);
  EXPECT_EQ(read(idle, &memory), kSuccess);
  EXPECT_EQ(memory.used, 0U);
  EXPECT_EQ(
      find<decltype(nvmlDeviceGetAttributes_v2)>("nvmlDeviceGetAttributes_v2")(busy, &attributes),
      kSuccess);
  EXPECT_EQ(attributes.multiprocessor_count, 14U);
  EXPECT_EQ(attributes.gpu_instance_slice_count, 1U);
  EXPECT_EQ(attributes.compute_instance_slice_count, 1U);
  EXPECT_EQ(attributes.memory_size_mib, 9856U);
  const auto utilization =
      find<decltype(nvmlDeviceGetUtilizationRates)>("nvmlDeviceGetUtilizationRates");
  EXPECT_EQ(utilization(busy, &rates), kNotSupported);
  EXPECT_EQ(utilization(gpu(0), &rates), kNotSupported);
  EXPECT_FALSE(
      state().load(0, 4'194'302, std::uint64_t{9} << 30, 0, StateFile::Presence::kLingering, id))
      << "more than the instance has left";
}

TEST_F(NvmlMig, SmallerComputeInstancesAreNamedByTheirSlices) {
  nvmlGpuInstance_t made = nullptr;
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(create(kThreeSlices, &made), kSuccess);
  ASSERT_EQ(create_compute(made, kComputeOfOne, &compute), kSuccess);
  ComputeInstanceProfileInfoV2 info{};
  info.version = version_of<ComputeInstanceProfileInfoV2>(2);

  EXPECT_EQ(text_of("nvmlDeviceGetName", mig_device(0)), "NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb");
  const auto profile = find<decltype(nvmlGpuInstanceGetComputeInstanceProfileInfoV)>(
      "nvmlGpuInstanceGetComputeInstanceProfileInfoV");
  EXPECT_EQ(profile(made, kComputeOfOne, 0, &info), kSuccess);
  EXPECT_STREQ(info.name, "MIG 1c.3g.40gb");
  EXPECT_EQ(info.instance_count, 3U);
  EXPECT_EQ(profile(made, 3, 0, &info), kNotSupported);
  EXPECT_EQ(profile(made, 99, 0, &info), kInvalidArgument);
  EXPECT_EQ(profile(made, kComputeOfOne, 1, &info), kInvalidArgument);
  info.version = 1;
  EXPECT_EQ(profile(made, kComputeOfOne, 0, &info), kArgumentVersionMismatch);
}

TEST_F(NvmlMig, EveryChangeIsAnEvent) {
  nvmlEventSet_t set = nullptr;
  EventData event{};
  ASSERT_EQ(find<decltype(nvmlEventSetCreate)>("nvmlEventSetCreate")(&set), kSuccess);
  ASSERT_EQ(find<decltype(nvmlDeviceRegisterEvents)>("nvmlDeviceRegisterEvents")(
                gpu(0), kMigConfigChange | 0x8, set),
            kSuccess);
  const auto wait = find<decltype(nvmlEventSetWait_v2)>("nvmlEventSetWait_v2");

  const InstanceId id = make_device(kOneSlice, kComputeOfOne);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(wait(set, &event, 10'000), kSuccess);
    EXPECT_EQ(event.event_type, kMigConfigChange);
  }
  ASSERT_TRUE(inject(root_, {.fault = Fault::kXid,
                             .gpu = "n1:0",
                             .value = 31,
                             .instance = fmt::format("{}/0", id.gpu_instance)}));
  EXPECT_EQ(wait(set, &event, 10'000), kSuccess);
  EXPECT_EQ(event.event_data, 31U);
  EXPECT_EQ(event.gpu_instance_id, id.gpu_instance);
  EXPECT_EQ(event.compute_instance_id, 0U);
}

TEST_F(NvmlMig, CapabilityFilesFollowTheInstances) {
  const InstanceId id = make_device(kTwoSlices, 1);
  EXPECT_EQ(id.gpu_instance, 5U);

  EXPECT_EQ(capability("gpu0/mig/gi5/access"),
            "DeviceFileMinor: 48\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
  EXPECT_EQ(capability("gpu0/mig/gi5/ci0/access"),
            "DeviceFileMinor: 49\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
  EXPECT_EQ(capability("mig/config"),
            "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n");
  ASSERT_TRUE(change_mig(root_, {.change = MigChange::kDestroy, .gpu = "n1:0", .instance = "5"}));
  EXPECT_FALSE(
      std::filesystem::exists(root_ + "/emulated/n1/proc/driver/nvidia/capabilities/gpu0/mig/gi5"));
}

TEST_F(NvmlMig, InjectedFailuresLeaveAGpuInstanceWithoutComputeInstance) {
  ASSERT_TRUE(inject(root_, {.fault = Fault::kMigComputeFails, .gpu = "n1:0", .value = 1}));
  nvmlGpuInstance_t made = nullptr;
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(create(kOneSlice, &made), kSuccess);

  EXPECT_EQ(create_compute(made, kComputeOfOne, &compute), kUnknown);
  EXPECT_EQ(create_compute(made, kComputeOfOne, &compute), kSuccess) << "one alone failed";
}

TEST_F(NvmlMig, InstancesAreMadeAndVanishBehindTheBackOfPrograms) {
  const auto made =
      change_mig(root_, {.change = MigChange::kCreate, .gpu = "n1:0", .profile = "1g.10gb@6"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, fmt::format("13/0 {}\n", text_of("nvmlDeviceGetUUID", mig_device(0))));
  start_work({13, 0}, 1);
  EXPECT_EQ(processes_of(gpu(0)).size(), 1U);

  ASSERT_TRUE(change_mig(root_, {.change = MigChange::kDestroy, .gpu = "n1:0", .instance = "13"}));

  EXPECT_TRUE(processes_of(gpu(0)).empty());
  EXPECT_EQ(remaining(kOneSlice), 7U);
  EXPECT_FALSE(change_mig(root_, {.change = MigChange::kDestroy, .gpu = "n1:0", .instance = "13"}));
}

TEST_F(NvmlMig, InstancesOutliveProgramsButNoReboot) {
  make_device(kOneSlice, kComputeOfOne);
  const std::string uuid = text_of("nvmlDeviceGetUUID", mig_device(0));
  dlclose(std::exchange(library_, nullptr));
  library_ = dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library_, nullptr);
  initialise();
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(by_uuid(uuid, &found), kSuccess) << "another program finds it";

  ASSERT_TRUE(reboot(root_, "n1"));

  EXPECT_EQ(by_uuid(uuid, &found), kNotFound);
  EXPECT_EQ(mode(), std::pair(1U, 1U)) << "Ampere keeps the mode";
}

TEST_F(NvmlMig, ModeOfHopperIsGoneAfterAReboot) {
  use("dgx-h100");

  ASSERT_TRUE(reboot(root_, "n1"));

  EXPECT_EQ(mode(), std::pair(0U, 0U));
}

TEST_F(NvmlMig, ProgramsThatCreateAtOnceGetSevenInstancesTogether) {
  const std::string one =
      fmt::format("LD_LIBRARY_PATH={} {} mig -cgi 19 -C -i 0",
                  std::filesystem::path(EMULATED_NVML).parent_path().string(), NVIDIA_SMI);
  std::string script;
  for (int i = 0; i < 10; ++i) script += fmt::format("{} > {}/out{} & ", one, root_, i);

  ASSERT_EQ(std::system((script + "wait").c_str()), 0);

  std::set<std::string> uuids;
  for (unsigned i = 0; i < 7; ++i) uuids.insert(text_of("nvmlDeviceGetUUID", mig_device(i)));
  EXPECT_EQ(uuids.size(), 7U);
  EXPECT_EQ(remaining(kOneSlice), 0U);
}

TEST_F(NvmlMig, AProcessIsRegisteredOnAnInstanceByItsUuid) {
  make_device(kOneSlice, kComputeOfOne);
  const std::string uuid = text_of("nvmlDeviceGetUUID", mig_device(0));

  ASSERT_TRUE(register_process(
      {.state_path = state_path(), .uuids = uuid, .pid = static_cast<std::uint64_t>(getpid())}));

  ASSERT_EQ(processes_of(mig_device(0)).size(), 1U);
  EXPECT_EQ(processes_of(mig_device(0))[0].pid, static_cast<unsigned>(getpid()));
}

}  // namespace
}  // namespace gpu_emulator
