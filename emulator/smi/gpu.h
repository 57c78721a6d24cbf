#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "smi/nvml_library.h"
#include "smi/reading.h"

namespace gpu_emulator {

// A value that NVML told, or its code.
template <class T>
struct Told {
  Return status = kSuccess;
  T value{};
};

struct GpuProcess {
  unsigned int pid = 0;
  bool is_graphics = false;
  Reading gpu_instance;      // N/A outside of MIG
  Reading compute_instance;  // the same
  std::string name;          // empty: the driver does not tell
  Reading used_memory;       // N/A where the driver does not tell
};

// One GPU as NVML tells of it. Each call asks anew.
class Gpu {
 public:
  Gpu(const NvmlLibrary& nvml, nvmlDevice_t device, unsigned int index)
      : nvml_(&nvml), device_(device), index_(index) {}

  const NvmlLibrary& nvml() const { return *nvml_; }
  nvmlDevice_t device() const { return device_; }
  unsigned int index() const { return index_; }

  // Functions of NVML by name that fill one text, one number or two numbers.
  Reading text(const char* function) const;
  Told<unsigned int> number(const char* function) const;
  Told<std::pair<unsigned int, unsigned int>> numbers(const char* function) const;

  // A function of NVML with other arguments, after the device.
  template <class Function, class... Arguments>
  Return call(const char* function, Arguments... arguments) const {
    return nvml_->call<Function>(function, device_, arguments...);
  }

  Told<FieldValue> field(unsigned int id) const;
  Told<PciInfo> pci() const;
  Told<unsigned int> architecture() const { return number("nvmlDeviceGetArchitecture"); }
  std::string bus_id() const;  // "00000000:18:00.0"

  // Compute processes, then graphics.
  Told<std::vector<GpuProcess>> processes() const;

 private:
  Return add_processes(const char* function, bool is_graphics, std::vector<GpuProcess>& out) const;

  const NvmlLibrary* nvml_;
  nvmlDevice_t device_;
  unsigned int index_;
};

// What is true of the driver, not of a GPU.
struct DriverFacts {
  std::string version;       // "550.90.07"
  unsigned int branch = 0;   // 550
  std::string cuda_version;  // "12.4"; "N/A" if it is not known
  std::string nvml_version;
};
DriverFacts facts_of_driver(const NvmlLibrary& nvml);

}  // namespace gpu_emulator
