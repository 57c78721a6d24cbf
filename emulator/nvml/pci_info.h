#pragma once

#include <stdio.h>
#include <string.h>

#include "board_state.h"
#include "nvml/nvml_abi.h"

// PCI addresses in NVML's structures.

namespace gpu_emulator {

inline void write_bus_ids(const PciAddress& pci, char (&legacy)[16], char (*full)[32]) {
  snprintf(legacy, sizeof legacy, "%04X:%02X:%02X.0", pci.domain & 0xffff, pci.bus & 0xff,
           pci.device & 0xff);
  if (full != nullptr) {
    snprintf(*full, sizeof *full, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
  }
}

template <class Info>
void write_address(const PciAddress& pci, Info* out) {
  out->domain = pci.domain;
  out->bus = pci.bus;
  out->device = pci.device;
  out->pci_device_id = pci.device_id;
}

inline void write_pci_info(const PciAddress& pci, PciInfo* out) {
  memset(out, 0, sizeof *out);
  write_bus_ids(pci, out->bus_id_legacy, &out->bus_id);
  write_address(pci, out);
  out->pci_subsystem_id = pci.subsystem_id;
}

}  // namespace gpu_emulator
