#include "tool/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "mig_names.h"
#include "tool/faults.h"

namespace gpu_emulator {
namespace {

std::string bus_id(const PciAddress& pci) {
  return fmt::format("{:08x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

std::uint64_t ecc_of(const GpuState& gpu, EccClass kind) {
  return gpu.ecc_errors[kEccVolatile][kind].load(std::memory_order_relaxed);
}

std::uint64_t energy_joules(const GpuState& gpu, const GpuReading& now) {
  return totals_until(gpu, now, now_ns(CLOCK_BOOTTIME)).energy_uj / 1'000'000;
}

std::uint32_t active_links(const GpuState& gpu) {
  std::uint32_t links = 0;
  for (std::uint32_t i = 0; i < gpu.nvlink_count && i < kMaxNvLinks; ++i) {
    links += link_of(gpu, i).active;
  }
  return links;
}

std::uint32_t links_down(const GpuState& gpu) {
  return static_cast<std::uint32_t>(
      std::popcount(gpu.nvlinks_down.load(std::memory_order_relaxed)));
}

std::uint64_t link_errors(const GpuState& gpu) {
  return gpu.link_errors[kLinkCrc].load(std::memory_order_relaxed);
}

bool hangs(const GpuState& gpu) {
  return gpu.answers_from_ns.load(std::memory_order_relaxed) > now_ns(CLOCK_BOOTTIME);
}

// Returns the injected faults, for people; empty if there are none.
std::string faults_of(const GpuState& gpu) {
  std::vector<std::string> faults;
  const auto add = [&](bool is_there, std::string text) {
    if (is_there) faults.push_back(std::move(text));
  };
  add(value_of(gpu.answer) == kAnswerOfLostGpu, "lost");
  const auto listing = static_cast<Listing>(value_of(gpu.listing));
  add(listing == Listing::kNot, "vanish");
  add(listing == Listing::kLast, "return-last");
  add(value_of(gpu.answer_delay_us) != 0,
      fmt::format("slow {} ms", value_of(gpu.answer_delay_us) / 1000));
  add(value_of(gpu.answer_work_us) != 0, fmt::format("work {} us", value_of(gpu.answer_work_us)));
  add(value_of(gpu.last_xid) != 0, fmt::format("xid {}", value_of(gpu.last_xid)));
  add(value_of(gpu.recovery_action) != 0,
      fmt::format("recovery {}", name_of_recovery_action(value_of(gpu.recovery_action))));
  add(ecc_of(gpu, kEccCorrected) != 0, fmt::format("ecc corrected {}", ecc_of(gpu, kEccCorrected)));
  add(ecc_of(gpu, kEccUncorrected) != 0,
      fmt::format("ecc uncorrected {}", ecc_of(gpu, kEccUncorrected)));
  add(value_of(gpu.injected_temperature_c) != 0,
      fmt::format("temperature {} C", value_of(gpu.injected_temperature_c)));
  const std::uint64_t throttle = gpu.injected_throttle.load(std::memory_order_relaxed);
  add(throttle != 0, fmt::format("throttle {}", fmt::join(names_of_throttle(throttle), " ")));
  add(value_of(gpu.pcie_replays) != 0, fmt::format("replays {}", value_of(gpu.pcie_replays)));
  add(hangs(gpu), "hang");
  const auto reset_fault = static_cast<ResetFault>(value_of(gpu.reset_fault));
  add(reset_fault == ResetFault::kFails, "reset-fail");
  add(reset_fault == ResetFault::kHangs, "reset-hang");
  add(value_of(gpu.injected_memory_temperature_c) != 0,
      fmt::format("memory-temperature {} C", value_of(gpu.injected_memory_temperature_c)));
  add(value_of(gpu.remap_pending) != 0, "remap-pending");
  add(value_of(gpu.remap_failed) != 0, "remap-failed");
  add(value_of(gpu.retired_count) != 0, fmt::format("retired {}", value_of(gpu.retired_count)));
  add(pcie_width(gpu) != gpu.pcie_width, fmt::format("pcie-width {}", pcie_width(gpu)));
  add(link_errors(gpu) != 0, fmt::format("nvlink-errors {}", link_errors(gpu)));
  add(links_down(gpu) != 0, fmt::format("nvlink-down {}", links_down(gpu)));
  return fmt::format("{}", fmt::join(faults, ", "));
}

nlohmann::ordered_json json_of_faults(const GpuState& gpu) {
  const std::uint32_t xid = value_of(gpu.last_xid);
  return {{"is_lost", value_of(gpu.answer) == kAnswerOfLostGpu},
          {"delay_ms", value_of(gpu.answer_delay_us) / 1000},
          {"work_us", value_of(gpu.answer_work_us)},
          {"last_xid", xid == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(xid)},
          {"recovery_action", name_of_recovery_action(value_of(gpu.recovery_action))},
          {"ecc_corrected", ecc_of(gpu, kEccCorrected)},
          {"ecc_uncorrected", ecc_of(gpu, kEccUncorrected)},
          {"remapped_rows", value_of(gpu.remapped_rows[0]) + value_of(gpu.remapped_rows[1])},
          {"retired_pages", value_of(gpu.retired_count)},
          {"pcie_replays", value_of(gpu.pcie_replays)},
          {"hangs", hangs(gpu)},
          {"memory_temperature_c", value_of(gpu.injected_memory_temperature_c)},
          {"remap_pending", value_of(gpu.remap_pending) != 0},
          {"remap_failed", value_of(gpu.remap_failed) != 0},
          {"retirement_pending", value_of(gpu.retirement_pending) != 0},
          {"pcie_width", pcie_width(gpu)},
          {"nvlink_errors", link_errors(gpu)},
          {"nvlinks_down", links_down(gpu)}};
}

std::string mig_name_of(const GpuState& gpu, const InstanceId& id) {
  const MigProfile* profile = profile_of(gpu, id.gpu_instance);
  char name[kMigNameBytes] = "";
  if (profile != nullptr) write_mig_name(*profile, compute_slices_of(gpu, id), name);
  return name;
}

std::string mig_uuid_of(const GpuState& gpu, const InstanceId& id) {
  char uuid[kMigUuidBytes];
  write_mig_uuid(gpu, id, uuid);
  return uuid;
}

// Null where the GPU has no MIG.
nlohmann::ordered_json json_of_mig(const GpuState& gpu) {
  if (!has_mig(gpu)) return {};
  nlohmann::ordered_json mig{{"is_on", is_mig_on(gpu)},
                             {"is_on_after_reset", is_mig_on_after_reset(gpu)},
                             {"instances", nlohmann::ordered_json::array()}};
  visit_compute_instances(gpu, [&](const InstanceId& id) {
    mig["instances"].push_back({{"gpu_instance", id.gpu_instance},
                                {"compute_instance", id.compute_instance},
                                {"profile", mig_name_of(gpu, id)},
                                {"start", value_of(gpu.gpu_instances[id.gpu_instance].start)},
                                {"uuid", mig_uuid_of(gpu, id)}});
    return false;
  });
  return mig;
}

}  // namespace

void append_table(const BoardState& state, std::string& out) {
  out += fmt::format("{} ({}, driver {}, emulated)\n", state.node_name, state.board,
                     state.driver_version);
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const GpuState& gpu = state.gpus[i];
    const GpuReading now = read_gpu(gpu);
    out += fmt::format("  {:2}  {}  {}  {}  {:3}%  {:6}/{} MiB  {} C  {} W\n", i, gpu.name,
                       gpu.uuid, bus_id(gpu.pci), now.utilization_percent, now.used_bytes >> 20,
                       gpu.memory_bytes >> 20, now.temperature_c, now.power_mw / 1000);
    visit_compute_instances(gpu, [&](const InstanceId& id) {
      out += fmt::format("        MIG {}  {}/{}  {}\n", mig_name_of(gpu, id), id.gpu_instance,
                         id.compute_instance, mig_uuid_of(gpu, id));
      return false;
    });
    for (std::uint32_t k = 0; k < now.process_count; ++k) {
      const ProcessReading& process = now.processes[k];
      out += fmt::format("        pid {}  {} MiB  {}%{}\n", process.pid, process.memory_bytes >> 20,
                         process.utilization_percent,
                         process.start_ticks == 0 ? "  (stays until cleared)" : "");
    }
    if (const std::string faults = faults_of(gpu); !faults.empty()) {
      out += fmt::format("        faults: {}\n", faults);
    }
  }
}

nlohmann::ordered_json json_of(const BoardState& state) {
  nlohmann::ordered_json node{{"node", state.node_name},
                              {"board", state.board},
                              {"emulated", true},
                              {"driver_version", state.driver_version},
                              {"gpus", nlohmann::ordered_json::array()}};
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const GpuState& gpu = state.gpus[i];
    const GpuReading now = read_gpu(gpu);
    nlohmann::ordered_json one{{"index", i},
                               {"uuid", gpu.uuid},
                               {"model", gpu.name},
                               {"pci_address", bus_id(gpu.pci)},
                               {"numa_node", gpu.numa_node},
                               {"memory_total_bytes", gpu.memory_bytes},
                               {"memory_used_bytes", now.used_bytes},
                               {"utilization_percent", now.utilization_percent},
                               {"temperature_c", now.temperature_c},
                               {"power_watts", now.power_mw / 1000.0},
                               {"energy_joules", energy_joules(gpu, now)},
                               {"nvlinks_active", active_links(gpu)},
                               {"processes", nlohmann::ordered_json::array()}};
    for (std::uint32_t k = 0; k < now.process_count; ++k) {
      const ProcessReading& process = now.processes[k];
      one["processes"].push_back({{"pid", process.pid},
                                  {"memory_bytes", process.memory_bytes},
                                  {"utilization_percent", process.utilization_percent},
                                  {"stays_until_cleared", process.start_ticks == 0}});
    }
    one["mig"] = json_of_mig(gpu);
    one["throttle"] = names_of_throttle(now.throttle);
    one["faults"] = json_of_faults(gpu);
    node["gpus"].push_back(std::move(one));
  }
  return node;
}

}  // namespace gpu_emulator
