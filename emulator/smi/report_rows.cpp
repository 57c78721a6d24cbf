#include "smi/report_rows.h"

#include "smi/readings.h"

namespace gpu_emulator {

namespace {

using enum EccKind;
using enum EccTime;
using enum Pending;
using enum RowForm;

constexpr unsigned int kVolta = 5;
constexpr unsigned int kAmpere = 7;

bool from_565(const RowFacts& facts) {
  return facts.branch >= 565;
}
bool before_565(const RowFacts& facts) {
  return facts.branch < 565;
}
bool from_570(const RowFacts& facts) {
  return facts.branch >= 570;
}
bool before_570(const RowFacts& facts) {
  return facts.branch < 570;
}
bool is_volta(const RowFacts& facts) {
  return facts.architecture <= kVolta;
}
bool is_turing(const RowFacts& facts) {
  return facts.architecture > kVolta && facts.architecture < kAmpere;
}
bool is_ampere_or_later(const RowFacts& facts) {
  return facts.architecture >= kAmpere;
}
bool has_distances(const RowFacts& facts) {
  return facts.tells_distances;
}
bool has_no_distances(const RowFacts& facts) {
  return !facts.tells_distances;
}
bool remaps(const RowFacts& facts) {
  return facts.remaps_rows;
}
bool remaps_not(const RowFacts& facts) {
  return !facts.remaps_rows;
}

Reading base_class(const Gpu& gpu) {
  PciInfoExt pci{};
  pci.version = version_of<PciInfoExt>(1);
  const Return status =
      gpu.call<decltype(nvmlDeviceGetPciInfoExt)>("nvmlDeviceGetPciInfoExt", &pci);
  return status == kSuccess ? Reading{kSuccess, "0x" + number(pci.base_class).value}
                            : Reading::failure(status);
}
Reading sub_class(const Gpu& gpu) {
  PciInfoExt pci{};
  pci.version = version_of<PciInfoExt>(1);
  const Return status =
      gpu.call<decltype(nvmlDeviceGetPciInfoExt)>("nvmlDeviceGetPciInfoExt", &pci);
  return status == kSuccess ? Reading{kSuccess, "0x" + number(pci.sub_class).value}
                            : Reading::failure(status);
}

// The driver's memory for confidential computing, of which there is none.
Reading no_memory(const Gpu&) {
  return mebibytes(0);
}

// clang-format off
constexpr ReportRow kRows[] = {
    {1, "Product Name", "product_name", text<"nvmlDeviceGetName">, kOther},
    {1, "Product Brand", "product_brand", brand, kOther},
    {1, "Product Architecture", "product_architecture", architecture, kOther},
    {1, "Display Mode", "display_mode", enabled_mode<"nvmlDeviceGetDisplayMode">, kOther},
    {1, "Display Active", "display_active", enabled_mode<"nvmlDeviceGetDisplayActive">, kOther},
    {1, "Persistence Mode", "persistence_mode", enabled_mode<"nvmlDeviceGetPersistenceMode">, kOther},
    {1, "Addressing Mode", "addressing_mode", addressing_mode, kOther},
    {1, "MIG Mode", "mig_mode", nullptr, kOther},
    {2, "Current", "current_mig", mode<"nvmlDeviceGetMigMode", kCurrent>},
    {2, "Pending", "pending_mig", mode<"nvmlDeviceGetMigMode", kPending>},
    {1, "", "mig_devices", not_told, kOther, kNothing},
    {1, "Accounting Mode", "accounting_mode", enabled_mode<"nvmlDeviceGetAccountingMode">, kOther | kAccountingDisplay},
    {1, "Accounting Mode Buffer Size", "accounting_mode_buffer_size", plain_number<"nvmlDeviceGetAccountingBufferSize">,
     kOther | kAccountingDisplay},
    {1, "Driver Model", "driver_model", nullptr, kOther},
    {2, "Current", "current_dm", not_told},
    {2, "Pending", "pending_dm", not_told},
    {1, "Serial Number", "serial", text<"nvmlDeviceGetSerial">, kOther},
    {1, "GPU UUID", "uuid", text<"nvmlDeviceGetUUID">, kOther},
    {1, "Minor Number", "minor_number", plain_number<"nvmlDeviceGetMinorNumber">, kOther},
    {1, "VBIOS Version", "vbios_version", text<"nvmlDeviceGetVbiosVersion">, kOther},
    {1, "MultiGPU Board", "multigpu_board", yes_or_no<"nvmlDeviceGetMultiGpuBoard">, kOther},
    {1, "Board ID", "board_id", board_id, kOther},
    {1, "Board Part Number", "board_part_number", text<"nvmlDeviceGetBoardPartNumber">, kOther},
    {1, "GPU Part Number", "gpu_part_number", not_told, kOther},
    {1, "FRU Part Number", "gpu_fru_part_number", not_told, kOther},
    {1, "Module ID", "gpu_module_id", plain_number<"nvmlDeviceGetModuleId">, kOther, kBoth, before_565},
    {1, "Platform Info", "platformInfo", nullptr, kOther, kBoth, from_565},
    {2, "Chassis Serial Number", "chassis_serial_number", not_told},
    {2, "Slot Number", "slot_number", not_told},
    {2, "Tray Index", "tray_index", not_told},
    {2, "Host ID", "host_id", not_told},
    {2, "Peer Type", "peer_type", not_told},
    {2, "Module Id", "module_id", plain_number<"nvmlDeviceGetModuleId">},
    {1, "Inforom Version", "inforom_version", nullptr, kOther},
    {2, "Image Version", "img_version", text<"nvmlDeviceGetInforomImageVersion">},
    {2, "OEM Object", "oem_object", inforom<0>},
    {2, "ECC Object", "ecc_object", inforom<1>},
    {2, "Power Management Object", "pwr_object", inforom<2>},
    {1, "Inforom BBX Object Flush", "inforom_bbx_flush", nullptr, kOther},
    {2, "Latest Timestamp", "latest_timestamp", not_told},
    {2, "Latest Duration", "latest_duration", not_told},
    {1, "GPU Operation Mode", "gpu_operation_mode", nullptr, kOther},
    {2, "Current", "current_gom", not_told},
    {2, "Pending", "pending_gom", not_told},
    {1, "GPU C2C Mode", "c2c_mode", c2c_mode, kOther},
    {1, "GPU Virtualization Mode", "gpu_virtualization_mode", nullptr, kOther},
    {2, "Virtualization Mode", "virtualization_mode", virtualization_mode},
    {2, "Host VGPU Mode", "host_vgpu_mode", not_told},
    {2, "vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode", not_told},
    {1, "GPU Reset Status", "gpu_reset_status", nullptr, kOther | kResetDisplay, kBoth, before_570},
    {2, "Reset Required", "reset_required", reset_required},
    {2, "Drain and Reset Recommended", "drain_and_reset_recommended", drain_recommended},
    {1, "GPU Recovery Action", "gpu_recovery_action", recovery_action, kOther, kBoth, from_565},
    {1, "GSP Firmware Version", "gsp_firmware_version", text<"nvmlDeviceGetGspFirmwareVersion">, kOther | kGspDisplay},
    {1, "IBMNPU", "ibmnpu", nullptr, kOther},
    {2, "Relaxed Ordering Mode", "relaxed_ordering_mode", not_told},
    {1, "PCI", "pci", nullptr, kOther},
    {2, "Bus", "pci_bus", pci<PciPart::kBus>, 0, kHex},
    {2, "Device", "pci_device", pci<PciPart::kDevice>, 0, kHex},
    {2, "Domain", "pci_domain", pci<PciPart::kDomain>, 0, kHex},
    {2, "Base Classcode", "pci_base_class", base_class, 0, kHex},
    {2, "Sub Classcode", "pci_sub_class", sub_class, 0, kHex},
    {2, "Device Id", "pci_device_id", pci<PciPart::kDeviceId>, 0, kHex},
    {2, "Bus Id", "pci_bus_id", bus_id},
    {2, "Sub System Id", "pci_sub_system_id", pci<PciPart::kSubsystemId>, 0, kHex},
    {2, "GPU Link Info", "pci_gpu_link_info", nullptr},
    {3, "PCIe Generation", "pcie_gen", nullptr},
    {4, "Max", "max_link_gen", plain_number<"nvmlDeviceGetMaxPcieLinkGeneration">},
    {4, "Current", "current_link_gen", plain_number<"nvmlDeviceGetCurrPcieLinkGeneration">},
    {4, "Device Current", "device_current_link_gen", plain_number<"nvmlDeviceGetCurrPcieLinkGeneration">},
    {4, "Device Max", "max_device_link_gen", plain_number<"nvmlDeviceGetGpuMaxPcieLinkGeneration">},
    {4, "Host Max", "max_host_link_gen", not_told},
    {3, "Link Width", "link_widths", nullptr},
    {4, "Max", "max_link_width", lanes<"nvmlDeviceGetMaxPcieLinkWidth">},
    {4, "Current", "current_link_width", lanes<"nvmlDeviceGetCurrPcieLinkWidth">},
    {2, "Bridge Chip", "pci_bridge_chip", nullptr},
    {3, "Type", "bridge_chip_type", not_told},
    {3, "Firmware", "bridge_chip_fw", not_told},
    {2, "Replays Since Reset", "replay_counter", plain_number<"nvmlDeviceGetPcieReplayCounter">},
    {2, "Replay Number Rollovers", "replay_rollover_counter", field_number<95>},
    {2, "Tx Throughput", "tx_util", throughput<0>},
    {2, "Rx Throughput", "rx_util", throughput<1>},
    {2, "Atomic Caps Inbound", "atomic_caps_inbound", not_told, 0, kBoth, before_565},
    {2, "Atomic Caps Outbound", "atomic_caps_outbound", not_told},
    {2, "Atomic Caps Inbound", "atomic_caps_inbound", not_told, 0, kBoth, from_565},
    {1, "Fan Speed", "fan_speed", fan_speed, kOther},
    {1, "Performance State", "performance_state", performance_state, kOther | kPerformanceDisplay},
    {1, "Clocks Event Reasons", "clocks_event_reasons", nullptr, kOther | kPerformanceDisplay},
    {2, "Idle", "clocks_event_reason_gpu_idle", slowed<Slowed::kIdle>},
    {2, "Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting", slowed<Slowed::kApplications>},
    {2, "SW Power Cap", "clocks_event_reason_sw_power_cap", slowed<Slowed::kPowerCap>},
    {2, "HW Slowdown", "clocks_event_reason_hw_slowdown", slowed<Slowed::kHardware>},
    {3, "HW Thermal Slowdown", "", slowed<Slowed::kHardwareThermal>, 0, kText},
    {3, "HW Power Brake Slowdown", "", slowed<Slowed::kPowerBrake>, 0, kText},
    {2, "", "clocks_event_reason_hw_thermal_slowdown", slowed<Slowed::kHardwareThermal>, 0, kXml},
    {2, "", "clocks_event_reason_hw_power_brake_slowdown", slowed<Slowed::kPowerBrake>, 0, kXml},
    {2, "Sync Boost", "clocks_event_reason_sync_boost", slowed<Slowed::kSyncBoost>},
    {2, "SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown", slowed<Slowed::kSoftwareThermal>},
    {2, "Display Clock Setting", "clocks_event_reason_display_clocks_setting", slowed<Slowed::kDisplay>},
    {1, "Sparse Operation Mode", "sparse_operation_mode", not_told, kOther | kPerformanceDisplay},
    {1, "FB Memory Usage", "fb_memory_usage", nullptr, kOther | kMemoryDisplay},
    {2, "Total", "total", memory<MemoryPart::kTotal>},
    {2, "Reserved", "reserved", memory<MemoryPart::kReserved>},
    {2, "Used", "used", memory<MemoryPart::kUsed>},
    {2, "Free", "free", memory<MemoryPart::kFree>},
    {1, "BAR1 Memory Usage", "bar1_memory_usage", nullptr, kOther | kMemoryDisplay},
    {2, "Total", "total", bar1<MemoryPart::kTotal>},
    {2, "Used", "used", bar1<MemoryPart::kUsed>},
    {2, "Free", "free", bar1<MemoryPart::kFree>},
    {1, "Conf Compute Protected Memory Usage", "cc_protected_memory_usage", nullptr, kOther | kMemoryDisplay},
    {2, "Total", "total", no_memory},
    {2, "Used", "used", no_memory},
    {2, "Free", "free", no_memory},
    {1, "Compute Mode", "compute_mode", compute_mode, kOther | kComputeDisplay},
    {1, "Utilization", "utilization", nullptr, kOther | kUtilizationDisplay},
    {2, "Gpu", "gpu_util", gpu_utilization},
    {2, "Memory", "memory_util", memory_utilization},
    {2, "Encoder", "encoder_util", utilization<"nvmlDeviceGetEncoderUtilization">},
    {2, "Decoder", "decoder_util", utilization<"nvmlDeviceGetDecoderUtilization">},
    {2, "JPEG", "jpeg_util", utilization<"nvmlDeviceGetJpgUtilization">},
    {2, "OFA", "ofa_util", utilization<"nvmlDeviceGetOfaUtilization">},
    {1, "Encoder Stats", "encoder_stats", nullptr, kOther | kEncoderDisplay},
    {2, "Active Sessions", "session_count", sessions<"nvmlDeviceGetEncoderStats", SessionPart::kSessions>},
    {2, "Average FPS", "average_fps", sessions<"nvmlDeviceGetEncoderStats", SessionPart::kFps>},
    {2, "Average Latency", "average_latency", sessions<"nvmlDeviceGetEncoderStats", SessionPart::kLatency>},
    {1, "FBC Stats", "fbc_stats", nullptr, kOther | kFbcDisplay},
    {2, "Active Sessions", "session_count", sessions<"nvmlDeviceGetFBCStats", SessionPart::kSessions>},
    {2, "Average FPS", "average_fps", sessions<"nvmlDeviceGetFBCStats", SessionPart::kFps>},
    {2, "Average Latency", "average_latency", sessions<"nvmlDeviceGetFBCStats", SessionPart::kLatency>},
    {1, "DRAM Encryption Mode", "dram_encryption_mode", nullptr, kOther, kBoth, from_570},
    {2, "Current", "current_dram_encryption", not_told},
    {2, "Pending", "pending_dram_encryption", not_told},
    {1, "ECC Mode", "ecc_mode", nullptr, kOther | kEccDisplay},
    {2, "Current", "current_ecc", mode<"nvmlDeviceGetEccMode", kCurrent>},
    {2, "Pending", "pending_ecc", mode<"nvmlDeviceGetEccMode", kPending>},
    {1, "ECC Errors", "ecc_errors", nullptr, kOther | kEccDisplay},
    {2, "Volatile", "volatile", nullptr, 0, kBoth, is_ampere_or_later},
    {3, "SRAM Correctable", "sram_correctable", sram<5>},
    {3, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", sram<3>},
    {3, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", sram<4>},
    {3, "DRAM Correctable", "dram_correctable", ecc<kCorrected, kVolatile, EccPlace::kDram>},
    {3, "DRAM Uncorrectable", "dram_uncorrectable", ecc<kUncorrected, kVolatile, EccPlace::kDram>},
    {2, "Aggregate", "aggregate", nullptr, 0, kBoth, is_ampere_or_later},
    {3, "SRAM Correctable", "sram_correctable", sram<2>},
    {3, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", sram<0>},
    {3, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", sram<1>},
    {3, "DRAM Correctable", "dram_correctable", ecc<kCorrected, kAggregate, EccPlace::kDram>},
    {3, "DRAM Uncorrectable", "dram_uncorrectable", ecc<kUncorrected, kAggregate, EccPlace::kDram>},
    {3, "SRAM Threshold Exceeded", "sram_threshold_exceeded", sram<11>},
    {2, "Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources", nullptr, 0, kBoth,
     is_ampere_or_later},
    {3, "SRAM L2", "sram_l2", sram<6>},
    {3, "SRAM SM", "sram_sm", sram<7>},
    {3, "SRAM Microcontroller", "sram_microcontroller", sram<9>},
    {3, "SRAM PCIE", "sram_pcie", sram<8>},
    {3, "SRAM Other", "sram_other", sram<10>},
    {2, "Volatile", "volatile", nullptr, 0, kBoth, is_turing},
    {3, "SRAM Correctable", "sram_correctable", ecc<kCorrected, kVolatile, EccPlace::kSram>},
    {3, "SRAM Uncorrectable", "sram_uncorrectable", ecc<kUncorrected, kVolatile, EccPlace::kSram>},
    {3, "DRAM Correctable", "dram_correctable", ecc<kCorrected, kVolatile, EccPlace::kDram>},
    {3, "DRAM Uncorrectable", "dram_uncorrectable", ecc<kUncorrected, kVolatile, EccPlace::kDram>},
    {2, "Aggregate", "aggregate", nullptr, 0, kBoth, is_turing},
    {3, "SRAM Correctable", "sram_correctable", ecc<kCorrected, kAggregate, EccPlace::kSram>},
    {3, "SRAM Uncorrectable", "sram_uncorrectable", ecc<kUncorrected, kAggregate, EccPlace::kSram>},
    {3, "DRAM Correctable", "dram_correctable", ecc<kCorrected, kAggregate, EccPlace::kDram>},
    {3, "DRAM Uncorrectable", "dram_uncorrectable", ecc<kUncorrected, kAggregate, EccPlace::kDram>},
    {2, "Volatile", "volatile", nullptr, 0, kBoth, is_volta},
    {3, "Single Bit", "single_bit", nullptr},
    {4, "Device Memory", "device_memory", ecc<kCorrected, kVolatile, EccPlace::kDram>},
    {4, "Register File", "register_file", ecc<kCorrected, kVolatile, EccPlace::kRegisters>},
    {4, "L1 Cache", "l1_cache", ecc<kCorrected, kVolatile, EccPlace::kL1>},
    {4, "L2 Cache", "l2_cache", ecc<kCorrected, kVolatile, EccPlace::kL2>},
    {4, "Texture Memory", "texture_memory", ecc<kCorrected, kVolatile, EccPlace::kTexture>},
    {4, "Total", "total", ecc<kCorrected, kVolatile, EccPlace::kTotal>},
    {3, "Double Bit", "double_bit", nullptr},
    {4, "Device Memory", "device_memory", ecc<kUncorrected, kVolatile, EccPlace::kDram>},
    {4, "Register File", "register_file", ecc<kUncorrected, kVolatile, EccPlace::kRegisters>},
    {4, "L1 Cache", "l1_cache", ecc<kUncorrected, kVolatile, EccPlace::kL1>},
    {4, "L2 Cache", "l2_cache", ecc<kUncorrected, kVolatile, EccPlace::kL2>},
    {4, "Texture Memory", "texture_memory", ecc<kUncorrected, kVolatile, EccPlace::kTexture>},
    {4, "Total", "total", ecc<kUncorrected, kVolatile, EccPlace::kTotal>},
    {2, "Aggregate", "aggregate", nullptr, 0, kBoth, is_volta},
    {3, "Single Bit", "single_bit", nullptr},
    {4, "Device Memory", "device_memory", ecc<kCorrected, kAggregate, EccPlace::kDram>},
    {4, "Register File", "register_file", ecc<kCorrected, kAggregate, EccPlace::kRegisters>},
    {4, "L1 Cache", "l1_cache", ecc<kCorrected, kAggregate, EccPlace::kL1>},
    {4, "L2 Cache", "l2_cache", ecc<kCorrected, kAggregate, EccPlace::kL2>},
    {4, "Texture Memory", "texture_memory", ecc<kCorrected, kAggregate, EccPlace::kTexture>},
    {4, "Total", "total", ecc<kCorrected, kAggregate, EccPlace::kTotal>},
    {3, "Double Bit", "double_bit", nullptr},
    {4, "Device Memory", "device_memory", ecc<kUncorrected, kAggregate, EccPlace::kDram>},
    {4, "Register File", "register_file", ecc<kUncorrected, kAggregate, EccPlace::kRegisters>},
    {4, "L1 Cache", "l1_cache", ecc<kUncorrected, kAggregate, EccPlace::kL1>},
    {4, "L2 Cache", "l2_cache", ecc<kUncorrected, kAggregate, EccPlace::kL2>},
    {4, "Texture Memory", "texture_memory", ecc<kUncorrected, kAggregate, EccPlace::kTexture>},
    {4, "Total", "total", ecc<kUncorrected, kAggregate, EccPlace::kTotal>},
    {1, "Retired Pages", "retired_pages", nullptr, kOther | kPageRetirementDisplay},
    {2, "Single Bit ECC", "", retired<0>, 0, kText},
    {2, "Double Bit ECC", "", retired<1>, 0, kText},
    {2, "Pending Page Blacklist", "", yes_or_no<"nvmlDeviceGetRetiredPagesPendingStatus">, 0, kText},
    {2, "", "multiple_single_bit_retirement", nullptr, 0, kXml},
    {3, "", "retired_count", retired<0>, 0, kXml},
    {3, "", "retired_pagelist", not_told, 0, kXml},
    {2, "", "double_bit_retirement", nullptr, 0, kXml},
    {3, "", "retired_count", retired<1>, 0, kXml},
    {3, "", "retired_pagelist", not_told, 0, kXml},
    {2, "", "pending_blacklist", yes_or_no<"nvmlDeviceGetRetiredPagesPendingStatus">, 0, kXml},
    {2, "", "pending_retirement", yes_or_no<"nvmlDeviceGetRetiredPagesPendingStatus">, 0, kXml},
    {1, "Remapped Rows", "remapped_rows", not_told, kOther | kRowRemapperDisplay, kBoth, remaps_not},
    {1, "Remapped Rows", "remapped_rows", nullptr, kOther | kRowRemapperDisplay, kBoth, remaps},
    {2, "Correctable Error", "remapped_row_corr", remapped<RemappedPart::kCorrected>},
    {2, "Uncorrectable Error", "remapped_row_unc", remapped<RemappedPart::kUncorrected>},
    {2, "Pending", "remapped_row_pending", remapped<RemappedPart::kPending>},
    {2, "Remapping Failure Occurred", "remapped_row_failure", remapped<RemappedPart::kFailure>},
    {2, "Bank Remap Availability Histogram", "row_remapper_histogram", nullptr},
    {3, "Max", "row_remapper_histogram_max", histogram<HistogramPart::kMax>},
    {3, "High", "row_remapper_histogram_high", histogram<HistogramPart::kHigh>},
    {3, "Partial", "row_remapper_histogram_partial", histogram<HistogramPart::kPartial>},
    {3, "Low", "row_remapper_histogram_low", histogram<HistogramPart::kLow>},
    {3, "None", "row_remapper_histogram_none", histogram<HistogramPart::kNone>},
    {1, "Temperature", "temperature", nullptr, kOther | kTemperatureDisplay},
    {2, "GPU Current Temp", "gpu_temp", temperature},
    {2, "GPU T.Limit Temp", "gpu_temp_tlimit", temperature_margin},
    {2, "GPU Shutdown T.Limit Temp", "gpu_temp_max_tlimit_threshold", field_degrees<193>, 0, kBoth, has_distances},
    {2, "GPU Slowdown T.Limit Temp", "gpu_temp_slow_tlimit_threshold", field_degrees<194>, 0, kBoth, has_distances},
    {2, "GPU Max Operating T.Limit Temp", "gpu_temp_max_gpu_tlimit_threshold", field_degrees<196>, 0, kBoth, has_distances},
    {2, "GPU Shutdown Temp", "gpu_temp_max_threshold", threshold<0>, 0, kBoth, has_no_distances},
    {2, "GPU Slowdown Temp", "gpu_temp_slow_threshold", threshold<1>, 0, kBoth, has_no_distances},
    {2, "GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", threshold<3>, 0, kBoth, has_no_distances},
    {2, "GPU Target Temperature", "gpu_target_temperature", not_told},
    {2, "Memory Current Temp", "memory_temp", memory_temperature},
    {2, "Memory Max Operating T.Limit Temp", "gpu_temp_max_mem_tlimit_threshold", field_degrees<195>, 0, kBoth, has_distances},
    {2, "Memory Max Operating Temp", "gpu_temp_max_mem_threshold", threshold<2>, 0, kBoth, has_no_distances},
    {1, "", "supported_gpu_target_temp", nullptr, kOther, kXml},
    {2, "", "gpu_target_temp_min", not_told, 0, kXml},
    {2, "", "gpu_target_temp_max", not_told, 0, kXml},
    {1, "GPU Power Readings", "gpu_power_readings", nullptr, kOther | kPowerDisplay},
    {2, "", "power_state", performance_state, 0, kXml},
    {2, "Power Draw", "power_draw", power<"nvmlDeviceGetPowerUsage">, 0, kBoth, before_570},
    {2, "Average Power Draw", "average_power_draw", field_watts<185>, 0, kBoth, from_570},
    {2, "Instantaneous Power Draw", "instant_power_draw", field_watts<186>, 0, kBoth, from_570},
    {2, "Current Power Limit", "current_power_limit", power<"nvmlDeviceGetEnforcedPowerLimit">},
    {2, "Requested Power Limit", "requested_power_limit", power<"nvmlDeviceGetPowerManagementLimit">},
    {2, "Default Power Limit", "default_power_limit", power<"nvmlDeviceGetPowerManagementDefaultLimit">},
    {2, "Min Power Limit", "min_power_limit", min_power_limit},
    {2, "Max Power Limit", "max_power_limit", max_power_limit},
    {1, "GPU Memory Power Readings ", "gpu_memory_power_readings", nullptr, kOther | kPowerDisplay},
    {2, "Power Draw", "power_draw", not_told, 0, kBoth, before_570},
    {2, "Average Power Draw", "average_power_draw", not_told, 0, kBoth, from_570},
    {2, "Instantaneous Power Draw", "instant_power_draw", not_told, 0, kBoth, from_570},
    {1, "Module Power Readings", "module_power_readings", nullptr, kOther | kPowerDisplay},
    {2, "", "power_state", performance_state, 0, kXml},
    {2, "Power Draw", "power_draw", not_told, 0, kBoth, before_570},
    {2, "Average Power Draw", "average_power_draw", not_told, 0, kBoth, from_570},
    {2, "Instantaneous Power Draw", "instant_power_draw", not_told, 0, kBoth, from_570},
    {2, "Current Power Limit", "current_power_limit", not_told},
    {2, "Requested Power Limit", "requested_power_limit", not_told},
    {2, "Default Power Limit", "default_power_limit", not_told},
    {2, "Min Power Limit", "min_power_limit", not_told},
    {2, "Max Power Limit", "max_power_limit", not_told},
    {1, "Clocks", "clocks", nullptr, kOther | kClockDisplay},
    {2, "Graphics", "graphics_clock", clock<Clock::kGraphics, ClockOf::kNow>},
    {2, "SM", "sm_clock", clock<Clock::kSm, ClockOf::kNow>},
    {2, "Memory", "mem_clock", clock<Clock::kMemory, ClockOf::kNow>},
    {2, "Video", "video_clock", clock<Clock::kVideo, ClockOf::kNow>},
    {1, "Applications Clocks", "applications_clocks", nullptr, kOther | kClockDisplay},
    {2, "Graphics", "graphics_clock", clock<Clock::kGraphics, ClockOf::kApplications>},
    {2, "Memory", "mem_clock", clock<Clock::kMemory, ClockOf::kApplications>},
    {1, "Default Applications Clocks", "default_applications_clocks", nullptr, kOther | kClockDisplay},
    {2, "Graphics", "graphics_clock", clock<Clock::kGraphics, ClockOf::kDefault>},
    {2, "Memory", "mem_clock", clock<Clock::kMemory, ClockOf::kDefault>},
    {1, "Deferred Clocks", "deferred_clocks", nullptr, kOther | kClockDisplay},
    {2, "Memory", "mem_clock", not_told},
    {1, "Max Clocks", "max_clocks", nullptr, kOther | kClockDisplay},
    {2, "Graphics", "graphics_clock", max_clock<Clock::kGraphics>},
    {2, "SM", "sm_clock", max_clock<Clock::kSm>},
    {2, "Memory", "mem_clock", max_clock<Clock::kMemory>},
    {2, "Video", "video_clock", max_clock<Clock::kVideo>},
    {1, "Max Customer Boost Clocks", "max_customer_boost_clocks", nullptr, kOther | kClockDisplay},
    {2, "Graphics", "graphics_clock", clock<Clock::kGraphics, ClockOf::kMaxBoost>},
    {1, "Clock Policy", "clock_policy", nullptr, kOther | kClockDisplay},
    {2, "Auto Boost", "auto_boost", not_told},
    {2, "Auto Boost Default", "auto_boost_default", not_told},
    {1, "Voltage", "voltage", nullptr, kOther | kVoltageDisplay},
    {2, "Graphics", "graphics_volt", not_told},
    {1, "Fabric", "fabric", nullptr, kOther | kFabricDisplay},
    {2, "State", "state", fabric_state},
    {2, "Status", "status", fabric_status},
    {2, "CliqueId", "cliqueId", fabric_clique},
    {2, "ClusterUUID", "clusterUuid", fabric_cluster},
    {2, "Health", "health", nullptr},
    {3, "Bandwidth", "bandwidth", not_told},
};
// clang-format on

}  // namespace

std::span<const ReportRow> report_rows() {
  return kRows;
}

}  // namespace gpu_emulator
