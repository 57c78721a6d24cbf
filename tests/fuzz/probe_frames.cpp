#include "base/check.h"
#include "node/probe/probe_protocol.h"
#include "target.h"

// The target reads the messages of a probe, which speaks to the driver, and the daemon.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  if (const auto message = node::decode_probe_message(input)) {
    const std::string bytes = node::encode(*message);
    const auto again = node::decode_probe_message(bytes);
    CHECK(again && *again == *message);
    CHECK(node::encode(*again) == bytes);
  }
  if (const auto request = node::decode_probe_request(input)) {
    CHECK(node::decode_probe_request(node::encode(*request)));
  }
}

std::vector<std::string> seeds() {
  hardware::Inventory inventory;
  inventory.host.cpus = {0, 1, 5};
  hardware::GpuDescription gpu;
  gpu.uuid = "GPU-x";
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.pci_address = "00000000:1B:00.0";
  gpu.memory = base::kGiB * 80;
  gpu.numa_node = 1;
  gpu.cpus = hardware::CpuSet{56, 57, 58};
  inventory.gpus = {gpu, gpu};
  inventory.gpus[1].problem = "GPU is lost";
  inventory.links = {{0, 1, hardware::LinkKind::kNvLink, 18, 6}};
  inventory.problem = hardware::LibraryProblem{hardware::ProblemKind::kNoDriver, "no driver"};
  node::ProbeReadings readings;
  readings.gpus.resize(2);
  readings.began_ns = 12'345;
  readings.events = 7;
  readings.host.emplace().cpu_percent = 12;
  node::ProbeEvents events;
  events.events.resize(2);
  events.dropped = 3;
  return {node::encode(node::ProbeMessage(node::ProbeHello{})),
          node::encode(node::ProbeMessage(inventory)),
          node::encode(node::ProbeMessage(readings)),
          node::encode(node::ProbeMessage(node::ProbeError{"why"})),
          node::encode(node::ProbeMessage(events)),
          node::encode(node::ReadNow{})};
}

}  // namespace gpu_platform::fuzz
