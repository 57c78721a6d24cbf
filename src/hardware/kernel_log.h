#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the kernel's log says of GPUs: the form of /dev/kmsg, and the lines of NVIDIA's drivers and
// of PCI Express. Pure.

namespace gpu_platform::hardware {

// One record of /dev/kmsg. Views into what was read.
struct KernelRecord {
  std::uint64_t sequence = 0;
  bool is_of_kernel = false;  // else a program wrote it: root's may
  std::string_view text;
};
// Reads "6,1234,98765,-;text".
std::optional<KernelRecord> read_kernel_record(std::string_view record);

// "0000:65:00.0", "PCI:0000:65:00" and "00000000:65:00.0" are all "00000000:65:00". Empty: it is no
// address.
std::string pci_place_of(std::string_view address);

enum class KernelLineKind : std::uint8_t {
  kXid,
  kOffTheBus,    // "GPU has fallen off the bus", which an XID 79 says, too
  kPcieError,    // an error report of PCI Express that names the device
  kSwitchError,  // an SXid: `place` is the NVSwitch
};

// A line of the kernel's log that tells of a device.
struct KernelLine {
  KernelLineKind kind = KernelLineKind::kXid;
  std::string place;                          // pci_place_of() the device
  std::uint32_t code = 0;                     // XID or SXid
  bool is_fatal = false;                      // of kSwitchError and kPcieError: it says so
  std::uint32_t pid = 0;                      // 0: not known
  std::optional<std::uint32_t> gpu_instance;  // the MIG instance that it names
  std::vector<std::uint32_t> registers;       // of the XIDs of links
  std::string text;         // the driver's words, without the name of the process; bounded
  std::uint32_t count = 1;  // equal ones in a row, of which this is the first

  friend bool operator==(const KernelLine&, const KernelLine&) = default;
};

// Reads the text of a record. Nothing: it tells nothing of a GPU or an NVSwitch.
std::optional<KernelLine> read_kernel_line(std::string_view text);

// Joins a line into the one before it where both tell the same; false where they do not. What
// differs from line to line and tells nothing (the channel, the process) is that of the first.
bool join(KernelLine& before, const KernelLine& line);

}  // namespace gpu_platform::hardware
