#include "node/probe/probe_protocol.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::node {
namespace {

using hardware::GpuDescription;
using hardware::GpuReading;
using hardware::Inventory;

Inventory full_inventory() {
  Inventory inventory;
  inventory.host = {"n1",
                    "boot",
                    {0, 1, 5},
                    base::kGiB,
                    {{0, {0, 1}, base::kMiB, 1}, {1, {5}, std::nullopt, std::nullopt}},
                    2,
                    24};
  inventory.driver = {"550.90.07", std::nullopt, 12040};
  GpuDescription gpu;
  gpu.index = 3;
  gpu.uuid = "GPU-x";
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.serial = "16";
  gpu.pci_address = "00000000:1B:00.0";
  gpu.minor = 7;
  gpu.memory = base::kGiB * 80;
  gpu.numa_node = 1;
  gpu.cpus = hardware::CpuSet{56, 57, 58};
  gpu.power_limit = base::Milliwatts(700'000);
  gpu.power_limit_min = base::Milliwatts(200'000);
  gpu.power_limit_max = base::Milliwatts(701'000);
  gpu.max_mig_devices = 7;
  gpu.pcie_generation_max = 5;
  gpu.pcie_width_max = 16;
  gpu.slowdown_c = 87;
  gpu.compute_capability = hardware::ComputeCapability{9, 0};
  gpu.mig_enabled = false;
  gpu.ecc_enabled = true;
  gpu.persistence_enabled = true;
  inventory.gpus = {gpu, GpuDescription{}};
  inventory.gpus[1].problem = "GPU is lost";
  inventory.links = {{0, 3, hardware::LinkKind::kNvLink, 18, 6},
                     {1, 3, hardware::LinkKind::kSystem, 0, 0}};
  inventory.fallback = "nvidia-smi is asked";
  inventory.problem = hardware::LibraryProblem{hardware::ProblemKind::kNoDriver, "no driver"};
  return inventory;
}

model::GpuSlowMetrics full_slow_reading() {
  model::GpuSlowMetrics slow;
  slow.energy_mj = 1ull << 50;
  slow.pcie_generation = 4;
  slow.pcie_width = 8;
  slow.pcie_replays = 3;
  slow.pcie_sent_bytes_per_second = 1ull << 40;
  slow.pcie_received_bytes_per_second = 5;
  slow.ecc_lifetime_corrected = 6;
  slow.ecc_lifetime_uncorrected = 7;
  slow.remapped_rows_corrected = 8;
  slow.remapped_rows_uncorrected = 9;
  slow.remap_pending = true;
  slow.remap_failed = false;
  slow.retired_pages_corrected = 10;
  slow.retired_pages_uncorrected = 11;
  slow.retirement_pending = false;
  slow.nvlinks_active = 18;
  slow.nvlink_crc_errors = 12;
  slow.nvlink_replays = 13;
  slow.nvlink_recoveries = 14;
  slow.nvlink_sent = base::kGiB;
  slow.nvlink_received = base::kMiB;
  return slow;
}

model::HostMetrics full_host() {
  model::HostMetrics host;
  host.cpu_percent = 12;
  host.load_thousandths = 1ull << 40;
  host.memory_total = base::kGiB * 512;
  host.memory_available = base::kGiB;
  host.swap_used = base::Bytes(0);
  host.disk_read = base::kGiB * 1024;
  host.disk_written = base::kMiB;
  host.network_received = base::Bytes(1);
  host.network_sent = base::Bytes(2);
  host.disk_total = base::kGiB * 2;
  host.disk_free = base::kGiB;
  return host;
}

ProbeReadings full_readings() {
  GpuReading gpu;
  gpu.index = 2;
  gpu.utilization_percent = 99;
  gpu.memory_utilization_percent = 50;
  gpu.memory_used = base::kGiB;
  gpu.memory_total = base::kGiB * 80;
  gpu.temperature_c = -5;
  gpu.power = base::Milliwatts(71'000);
  gpu.clock_sm_mhz = 1980;
  gpu.clock_memory_mhz = 2619;
  gpu.memory_reserved = base::kMiB;
  gpu.memory_temperature_c = 77;
  gpu.throttle_reasons = model::kThrottlePowerCap | 1ull << 40;
  gpu.ecc_corrected = 4;
  gpu.ecc_uncorrected = ~std::uint64_t{0};
  gpu.recovery_action = model::RecoveryAction::kDrainAndReset;
  gpu.encoder_percent = 3;
  gpu.decoder_percent = 4;
  gpu.graphics_active = 1000;
  gpu.sm_active = 900;
  gpu.sm_occupancy = 500;
  gpu.tensor_active = 1;
  gpu.dram_active = 0;
  gpu.fp64_active = 2;
  gpu.fp32_active = 3;
  gpu.fp16_active = 4;
  gpu.slow = full_slow_reading();
  gpu.processes = std::vector<hardware::GpuProcess>{{42, base::kMiB, hardware::kMpsProcess, 37},
                                                    {43, std::nullopt}};
  GpuReading lost;
  lost.condition = hardware::GpuCondition::kLost;
  lost.problem = "GPU is lost (15)";
  return {{gpu, lost}, 17, std::nullopt, 5, true, full_host(), true};
}

ProbeEvents full_events() {
  return {{{3, "GPU-x", hardware::GpuEventKind::kXid, 8, 79, 5, 3},
           {std::nullopt, "", hardware::GpuEventKind::kOther, 1ull << 40, ~std::uint64_t{0}}},
          5,
          1ll << 50};
}

ProbeKernelLog full_kernel_log() {
  hardware::KernelLine line;
  line.kind = hardware::KernelLineKind::kSwitchError;
  line.place = "00000000:65:00";
  line.code = 20034;
  line.is_fatal = true;
  line.pid = 4711;
  line.gpu_instance = 5;
  line.registers = {0x10000, 7, 7, 0};
  line.text = "Link 30 LTSSM Fault Up";
  line.count = 9;
  return {{line, {}}, 12, "Operation not permitted"};
}

const ProbeMessage kMessages[] = {
    ProbeHello{},           full_inventory(), Inventory{},   full_readings(),   ProbeReadings{},
    ProbeError{"no /proc"}, full_events(),    ProbeEvents{}, full_kernel_log(), ProbeKernelLog{}};

TEST(ProbeProtocol, ReadsWhatItWrites) {
  for (const ProbeMessage& message : kMessages) {
    const auto decoded = decode_probe_message(encode(message));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, message);
  }
  for (const ReadNow& request : {ReadNow(), ReadNow{{"GPU-a", "GPU-b"}, true}}) {
    const auto decoded = decode_probe_request(encode(request));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, request);
  }
}

TEST(ProbeProtocol, TellsEveryMetricOfAHost) {
  const model::HostMetrics host = full_host();
  model::for_each_host_metric(
      [&](const auto& row) { EXPECT_TRUE((host.*row.member).has_value()) << row.name; });
}

TEST(ProbeProtocol, RefusesEveryCutMessage) {
  for (const ProbeMessage& message : kMessages) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_probe_message(std::string_view(bytes).substr(0, size))) << size;
    }
    EXPECT_FALSE(decode_probe_message(bytes + '\0'));
  }
}

TEST(ProbeProtocol, RefusesAnotherVersion) {
  const auto decoded =
      decode_probe_message(encode(ProbeMessage(ProbeHello{kProbeProtocolVersion + 1})));

  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("version"), std::string::npos);
}

TEST(ProbeProtocol, RefusesMessagesBeyondItsBound) {
  EXPECT_FALSE(decode_probe_message(std::string(kMaxProbeMessage + 1, '\x02')));
}

TEST(ProbeProtocol, NeverReadsPastDamagedBytes) {
  base::Prng random(7);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = encode(kMessages[random.below(std::size(kMessages))]);
    for (int flips = 0; flips < 3; ++flips) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    // All that is accepted is a message that is written and read as the same.
    const auto decoded = decode_probe_message(bytes);
    if (!decoded) continue;
    ++accepted;
    const std::string again = encode(*decoded);
    const auto twice = decode_probe_message(again);
    ASSERT_TRUE(twice) << round;
    EXPECT_EQ(encode(*twice), again) << round;
  }
  EXPECT_GT(accepted, 100);
}

TEST(ProbeProtocol, LeavesOutProcessesBeyondItsBound) {
  for (const auto& [gpus, kept] : {std::pair(16u, kMaxReportedProcesses), {64u, 64u}}) {
    ProbeReadings readings;
    readings.host = full_host();
    readings.gpus.resize(gpus);
    for (GpuReading& gpu : readings.gpus) {
      gpu = full_readings().gpus[0];
      gpu.processes.emplace(4096, hardware::GpuProcess{4'000'000, base::kGiB * 80, 7, 100});
    }

    const std::string bytes = encode(ProbeMessage(readings));

    EXPECT_LT(bytes.size(), kMaxProbeMessage);
    const auto decoded = decode_probe_message(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(std::get<ProbeReadings>(*decoded).gpus[gpus - 1].processes->size(), kept);
  }
}

TEST(ProbeProtocol, RefusesMoreGpusThanThereCanBe) {
  ProbeReadings readings;
  readings.gpus.resize(kMaxReportedGpus + 1);

  EXPECT_FALSE(decode_probe_message(encode(ProbeMessage(readings))));
}

}  // namespace
}  // namespace gpu_platform::node
