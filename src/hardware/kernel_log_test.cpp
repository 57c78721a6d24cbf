#include "hardware/kernel_log.h"

#include <gtest/gtest.h>

namespace gpu_platform::hardware {
namespace {

using Registers = std::vector<std::uint32_t>;

// Lines as drivers of several branches wrote them on machines of others.
KernelLine read(std::string_view text) {
  const auto line = read_kernel_line(text);
  EXPECT_TRUE(line) << text;
  return line.value_or(KernelLine{});
}

TEST(KernelRecord, HasItsNumberAndItsText) {
  const auto record = read_kernel_record(
      "3,1234,98765432,-,caller=T42;NVRM: a; b\n SUBSYSTEM=pci\n DEVICE=+pci:0000:65:00.0\n");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->sequence, 1234U);
  EXPECT_EQ(record->text, "NVRM: a; b");
  EXPECT_TRUE(record->is_of_kernel);
}

TEST(KernelRecord, SaysIfAProgramWroteIt) {
  const auto record = read_kernel_record("12,9,2,-;NVRM: Xid (PCI:0000:65:00): 79, x");
  ASSERT_TRUE(record);
  EXPECT_FALSE(record->is_of_kernel);
  EXPECT_EQ(record->sequence, 9U);
}

TEST(KernelRecord, OfAnotherFormIsNone) {
  for (const char* const text :
       {"", ";", "6", "6,1", "6,1,2", "x,1,2,-;a", "6,x,2,-;a", " SUBSYSTEM=pci", "-6,1,2,-;a"}) {
    EXPECT_FALSE(read_kernel_record(text)) << text;
  }
}

TEST(PciPlace, IsTheSameInEverySpelling) {
  for (const char* const address :
       {"0000:cb:00.0", "PCI:0000:cb:00", "00000000:CB:00.0", "0000:cb:00"}) {
    EXPECT_EQ(pci_place_of(address), "00000000:cb:00") << address;
  }
  EXPECT_EQ(pci_place_of("PCI:0019:01:00"), "00000019:01:00");
  for (const char* const address : {"", "PCI:", "0000:cb", "0000:cb:00.", "0000:1cb:00",
                                    "0000:cb:20", "0000:cb:00.0 ", "eth0:1:2:3", "GPU-1"}) {
    EXPECT_EQ(pci_place_of(address), "") << address;
  }
}

TEST(KernelLine, OfAnXidHasItsProcessAndTheDriversWords) {
  const KernelLine line = read(
      "NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, errorString "
      "CTX SWITCH TIMEOUT, Info 0x58005");
  EXPECT_EQ(line.kind, KernelLineKind::kXid);
  EXPECT_EQ(line.place, "00000000:cb:00");
  EXPECT_EQ(line.code, 109U);
  EXPECT_EQ(line.pid, 1'797'828U);
  EXPECT_EQ(line.text, "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005");
}

TEST(KernelLine, OfAnXidWithoutAProcess) {
  KernelLine line = read(
      "NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the "
      "bus.");
  EXPECT_EQ(line.code, 79U);
  EXPECT_EQ(line.pid, 0U);
  EXPECT_EQ(line.text, "GPU has fallen off the bus.");
  line = read("NVRM: Xid (PCI:0000:01:00): 32, Channel ID 00000000 intr 00004000");
  EXPECT_EQ(line.code, 32U);
  EXPECT_EQ(line.text, "Channel ID 00000000 intr 00004000");
  line = read("NVRM: Xid (0000:03:00): 56, CMDre 00000001");
  EXPECT_EQ(line.place, "00000000:03:00");
  EXPECT_EQ(line.code, 56U);
  line = read("NVRM: Xid (PCI:0000:65:00): 62");
  EXPECT_EQ(line.code, 62U);
  EXPECT_EQ(line.text, "");
}

TEST(KernelLine, OfAPidThatIsQuoted) {
  EXPECT_EQ(read("NVRM: Xid (PCI:0000:65:00): 43, pid='77', name=python, Ch 00000010").pid, 77U);
}

TEST(KernelLine, NamesTheMigInstance) {
  const KernelLine line =
      read("NVRM: Xid (PCI:0000:65:00 GPU-I:05): 43, pid=7, name=sh, Ch 00000010");
  EXPECT_EQ(line.place, "00000000:65:00");
  EXPECT_EQ(line.gpu_instance, 5U);
  EXPECT_EQ(line.code, 43U);
}

TEST(KernelLine, HasTheRegistersOfLinks) {
  KernelLine line = read(
      "NVRM: Xid (PCI:0000:bd:00): 74, pid=9, name=nccl, NVLink: fatal error detected on link "
      "6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)");
  EXPECT_EQ(line.registers, (Registers{0x10000, 0, 0, 0, 0, 0, 0}));
  line = read(
      "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 "
      "0x00000001 0x00000000 0x00100000 0x00000004)");
  EXPECT_EQ(line.registers, (Registers{0x0409a0c2, 8, 1, 0, 0x100000, 4}));
  EXPECT_EQ(line.text.find("RLW_RXPIPE Nonfatal"), 0U);
  EXPECT_TRUE(read("NVRM: Xid (PCI:0000:65:00): 31, Ch 3, engmask (0x1)").registers.empty());
}

TEST(KernelLine, TakesNoWordFromTheNameOfAProcess) {
  const KernelLine line =
      read("NVRM: Xid (PCI:0000:65:00): 31, pid=7, name=a, GPU is lost, Ch 00000008, MMU Fault");
  EXPECT_EQ(line.text, "Ch 00000008, MMU Fault");
  EXPECT_EQ(read("NVRM: Xid (PCI:0000:65:00): 31, pid=7, name=python3").text, "");
}

TEST(KernelLine, TellsOfAGpuOffTheBus) {
  for (const char* const text : {"NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.",
                                 "NVRM: GPU at PCI:0000:91:00 has fallen off the bus"}) {
    const KernelLine line = read(text);
    EXPECT_EQ(line.kind, KernelLineKind::kOffTheBus);
    EXPECT_EQ(line.place, "00000000:91:00");
  }
}

TEST(KernelLine, TellsOfPcieErrorsOfTheGpuItself) {
  KernelLine line = read(
      "nvidia 0000:65:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver "
      "ID)");
  EXPECT_EQ(line.kind, KernelLineKind::kPcieError);
  EXPECT_EQ(line.place, "00000000:65:00");
  EXPECT_FALSE(line.is_fatal);
  line = read(
      "nvidia 0000:65:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction "
      "Layer, (Requester ID)");
  EXPECT_TRUE(line.is_fatal);
  EXPECT_FALSE(
      read("nvidia 0000:65:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), x").is_fatal);
}

TEST(KernelLine, TellsOfSwitches) {
  KernelLine line =
      read("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 30 LTSSM Fault Up");
  EXPECT_EQ(line.kind, KernelLineKind::kSwitchError);
  EXPECT_EQ(line.place, "00000000:06:00");
  EXPECT_EQ(line.code, 20034U);
  EXPECT_TRUE(line.is_fatal);
  EXPECT_EQ(line.text, "Fatal, Link 30 LTSSM Fault Up");
  line = read("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumb");
  EXPECT_FALSE(line.is_fatal);
  EXPECT_FALSE(
      read("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013, Severity 1 Engine").is_fatal);
}

TEST(KernelLine, OfAnythingElseIsNone) {
  for (const char* const text :
       {"", "NVRM: ", "NVRM: Xid (", "NVRM: Xid (PCI:0000:65:00): ", "NVRM: Xid (PCI:x): 79, a",
        "NVRM: Xid (PCI:0000:65:00): x", "NVRM: GPU at PCI:0000:91:00: GPU-b6c3b2be",
        "NVRM: GPU 0000:91:00.0: GPU serial number is 1653723052734.",
        "NVRM: loading NVIDIA UNIX Open Kernel Module",
        "usb 1-1: NVRM: Xid (PCI:0000:65:00): 79, a", "nvidia-nvswitch1: open (major=510)",
        "nvidia 0000:65:00.0: enabling device",
        "pcieport 0000:64:00.0: AER: Corrected error received: 0000:65:00.0"}) {
    EXPECT_FALSE(read_kernel_line(text)) << text;
  }
}

TEST(KernelLine, HasABoundedTextOfLetters) {
  const KernelLine line = read("NVRM: Xid (PCI:0000:65:00): 13, \x1b[31m" + std::string(5000, 'a'));
  EXPECT_EQ(line.text.size(), 256U);
  EXPECT_EQ(line.text.front(), '?');
}

TEST(KernelLine, JoinsWhatTellsTheSame) {
  KernelLine first = read("NVRM: Xid (PCI:0000:65:00): 45, pid=1, name=a, Ch 00000001");
  EXPECT_TRUE(join(first, read("NVRM: Xid (PCI:0000:65:00): 45, pid=2, name=b, Ch 00000002")));
  EXPECT_EQ(first.count, 2U);
  EXPECT_EQ(first.text, "Ch 00000001");
  EXPECT_FALSE(join(first, read("NVRM: Xid (PCI:0000:66:00): 45, pid=2, name=b, Ch 00000002")));
  EXPECT_FALSE(join(first, read("NVRM: Xid (PCI:0000:65:00): 43, pid=2, name=b, Ch 00000002")));
  KernelLine unit = read("NVRM: Xid (PCI:0000:65:00): 13, Graphics Exception on (GPC 1, TPC 2)");
  EXPECT_FALSE(join(unit, read("NVRM: Xid (PCI:0000:65:00): 13, Graphics Exception on (GPC 3, x")));
  EXPECT_EQ(unit.count, 1U);
}

}  // namespace
}  // namespace gpu_platform::hardware
