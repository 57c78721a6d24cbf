#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tool/commands.h"
#include "tool/faults.h"
#include "tool/library_fixture.h"

// The program as a script runs it, on emulated boards. What it prints is compared with what
// NVIDIA's own printed on machines with such boards (recorded/, and the lines below).

namespace gpu_emulator {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

struct Ran {
  int exit_code = -1;
  std::string text;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Those lines, after an empty one, as a raw string has them.
std::string joined(const std::vector<std::string>& lines, std::size_t first, std::size_t end) {
  std::string text = "\n";
  for (std::size_t i = first; i < std::min(end, lines.size()); ++i) text += lines[i] + "\n";
  return text;
}

class NvidiaSmi : public Library {
 protected:
  // With the library in the dynamic linker's way, as a job has it.
  static Ran smi(const std::string& arguments) {
    return run(fmt::format("LD_LIBRARY_PATH={} {} {}",
                           std::filesystem::path(EMULATED_NVML).parent_path().string(), NVIDIA_SMI,
                           arguments));
  }
  static Ran run(const std::string& command) {
    Ran ran;
    std::FILE* out = ::popen(command.c_str(), "re");
    if (out == nullptr) return ran;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, out)) > 0;) {
      ran.text.append(buffer, n);
    }
    ran.exit_code = WEXITSTATUS(::pclose(out));
    return ran;
  }
  static std::vector<std::string> recorded(const std::string& name) {
    std::ifstream in(fmt::format("{}/recorded/{}", SMI_DIR, name));
    std::stringstream text;
    text << in.rdbuf();
    return lines_of(text.str());
  }
  void start_work(const std::string& gpu, const std::string& memory) {
    const auto loaded = load(root_, {gpu, static_cast<std::uint64_t>(::getpid()), memory, 60});
    ASSERT_TRUE(loaded) << loaded.error().message;
  }
};

// Branch 565 on H100s; 535 and 550 differ in widths alone, which the boards below have.
TEST_F(NvidiaSmi, TableIsTheRecordedOne) {
  auto lines = lines_of(smi("").text);
  ASSERT_GT(lines.size(), 14U);
  EXPECT_THAT(lines[0], MatchesRegex("[A-Z][a-z]+ [A-Z][a-z]+ [ 0-9]+ [0-9:]+ 2[0-9]+       "));
  lines[9].replace(8, 2, "##");   // the temperature
  lines[9].replace(30, 2, "##");  // the power
  EXPECT_EQ(joined(lines, 1, 12), R"(
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
| N/A   ##C    P0             ##W /  700W |       0MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
)");
  EXPECT_EQ(lines[lines.size() - 8], std::string(89, ' '));
  EXPECT_EQ(joined(lines, lines.size() - 7, lines.size()), R"(
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
)");
}

TEST_F(NvidiaSmi, TableOfAnotherBranchHasItsForm) {
  open_board("h200-single");
  const std::string newest = smi("").text;
  EXPECT_THAT(newest, HasSubstr(R"(
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
)"));
  EXPECT_THAT(newest, HasSubstr("       0MiB / 143771MiB |"));
  open_board("t4x4");
  const std::string oldest = smi("").text;
  EXPECT_THAT(oldest, HasSubstr(R"(
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
)"));
  for (const std::string& line : lines_of(oldest)) {
    if (line.starts_with('|') || line.starts_with('+')) {
      EXPECT_EQ(line.size(), 89U) << line;
    }
  }
}

TEST_F(NvidiaSmi, ProcessesAreInEveryForm) {
  start_work("n1:2", "22934MiB");
  const std::string pid = fmt::format("{}", ::getpid());
  EXPECT_THAT(smi("").text, HasSubstr(fmt::format("|    2   N/A  N/A{:>10}      C   ", pid)));
  EXPECT_THAT(smi("").text, HasSubstr("  22934MiB |\n"));
  EXPECT_THAT(smi("--query-compute-apps=gpu_bus_id,pid,used_memory --format=csv").text,
              HasSubstr("gpu_bus_id, pid, used_gpu_memory [MiB]\n00000000:52:00.0, " + pid +
                        ", 22934 MiB\n"));
  EXPECT_EQ(smi("--query-compute-apps=pid --format=csv,noheader,nounits").text, pid + "\n");
  const std::string report = smi("-q -d PIDS -i 2").text;
  EXPECT_THAT(report, HasSubstr("        Process ID                        : " + pid + "\n"));
  EXPECT_THAT(report, HasSubstr("            Used GPU Memory               : 22934 MiB\n"));
  EXPECT_THAT(smi("-q -x").text, HasSubstr("\t\t\t\t<pid>" + pid + "</pid>\n"));
}

// A label with its depth, without value.
std::vector<std::string> labels_of(const std::string& report) {
  std::vector<std::string> labels;
  for (const std::string& line : lines_of(report)) {
    if (line.empty() || line.starts_with('=')) continue;
    std::string label = line.substr(0, line.find(" :") == std::string::npos ? line.size() : 42);
    if (label.starts_with("GPU 0")) label = "GPU";
    while (label.ends_with(' ')) label.pop_back();
    labels.push_back(label);
  }
  return labels;
}

// Branch 550 on an H200, which has the sections of an H100.
TEST_F(NvidiaSmi, ReportHasTheLabelsOfTheRecordedOne) {
  const Ran report = smi("-q -i 0");
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_THAT(report.text,
              StartsWith("\n==============NVSMI LOG==============\n\nTimestamp       "));
  EXPECT_THAT(labels_of(report.text), ElementsAreArray(recorded("labels-h200-550.txt")));
  for (const std::string& line : lines_of(report.text)) {
    const std::size_t colon = line.find(" : ");
    EXPECT_TRUE(colon == std::string::npos || colon == 41) << line;
  }
  EXPECT_THAT(report.text, HasSubstr("Attached GPUs                             : 8\n"));
  EXPECT_THAT(report.text, HasSubstr("        Device Id                         : 0x233010DE\n"));
  EXPECT_THAT(report.text, HasSubstr("        Memory Current Temp               : "));
}

// The names of the elements, with their depth as spaces. Fails where the document is not closed.
std::vector<std::string> tags_of(const std::string& document) {
  std::vector<std::string> tags;
  std::vector<std::string> open;
  for (const std::string& line : lines_of(document)) {
    const std::size_t start = line.find_first_not_of('\t');
    if (start == std::string::npos || line[start] != '<' || line[start + 1] == '?' ||
        line[start + 1] == '!') {
      continue;
    }
    const std::string name = line.substr(start + 1, line.find_first_of(" >", start) - start - 1);
    if (name.starts_with('/')) {
      EXPECT_FALSE(open.empty()) << line;
      if (open.empty()) return tags;
      EXPECT_EQ(open.back(), name.substr(1)) << line;
      open.pop_back();
      continue;
    }
    EXPECT_EQ(open.size(), start) << line;
    tags.push_back(std::string(start, ' ') + name);
    if (!line.contains("</")) open.push_back(name);
  }
  EXPECT_TRUE(open.empty());
  return tags;
}

// Branch 555 on an L4; the clocks that it supports come behind.
TEST_F(NvidiaSmi, DocumentHasTheElementsOfTheRecordedOne) {
  const Ran document = smi("-q -x -i 1");
  EXPECT_EQ(document.exit_code, 0);
  EXPECT_THAT(document.text,
              StartsWith("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "
                         "\"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n\t<timestamp>"));
  EXPECT_THAT(document.text, HasSubstr("\t<gpu id=\"00000000:43:00.0\">\n"));
  EXPECT_THAT(document.text, HasSubstr("\t\t\t<pci_device_id>233010DE</pci_device_id>\n"));
  EXPECT_THAT(document.text, HasSubstr("\t\t<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>\n"));
  auto tags = tags_of(document.text);
  const auto wanted = recorded("tags-l4-555.txt");
  ASSERT_GT(tags.size(), wanted.size());
  const std::vector<std::string> behind(tags.begin() + static_cast<std::ptrdiff_t>(wanted.size()),
                                        tags.end());
  tags.resize(wanted.size());
  EXPECT_THAT(tags, ElementsAreArray(wanted));
  EXPECT_EQ(behind.front(), "  supported_clocks");
  EXPECT_EQ(behind[behind.size() - 2], "  processes");
  EXPECT_EQ(behind.back(), "  accounted_processes");
}

TEST_F(NvidiaSmi, ReportsOfEveryBoardAreWholeAndKnowTheirValues) {
  for (const auto& file : std::filesystem::directory_iterator(BOARDS_DIR)) {
    const std::string board = file.path().stem();
    SCOPED_TRACE(board);
    open_board(board);
    const std::string which = board == "mixed" ? "" : " -i 0";  // its GPUs are all alike
    tags_of(smi("-q -x" + which).text);
    EXPECT_THAT(smi("-q" + which).text, Not(HasSubstr("Unknown")));
    EXPECT_EQ(smi("").exit_code, 0);
  }
}

TEST_F(NvidiaSmi, SectionsCanBeChosen) {
  const std::string report = smi("-q -d MEMORY,TEMPERATURE -i 0").text;
  EXPECT_THAT(report, HasSubstr("    FB Memory Usage\n        Total                             : "
                                "81559 MiB\n"));
  EXPECT_THAT(report, HasSubstr("    Temperature\n"));
  EXPECT_THAT(report, Not(HasSubstr("Product Name")));
  EXPECT_THAT(report, Not(HasSubstr("Processes")));
  EXPECT_THAT(smi("-q -d SUPPORTED_CLOCKS -i 0").text, HasSubstr("    Supported Clocks\n"));
  EXPECT_EQ(smi("-q -d NONSENSE").exit_code, 2);
}

// Branch 570 on an H200; the other lines are of an L40 and of a T4 without ECC.
TEST_F(NvidiaSmi, QueryIsTheRecordedOne) {
  open_board("h200-single");
  EXPECT_EQ(
      smi("--query-gpu=index,name,memory.total,driver_version,power.limit,pstate --format=csv")
          .text,
      "index, name, memory.total [MiB], driver_version, power.limit [W], pstate\n"
      "0, NVIDIA H200, 143771 MiB, 580.95.05, 700.00 W, P0\n");
  open_board("l40s-x8");
  EXPECT_EQ(smi("-i 0 --query-gpu=compute_cap,compute_mode,mig.mode.current,fan.speed "
                "--format=csv,noheader")
                .text,
            "8.9, Default, [N/A], [N/A]\n");
}

TEST_F(NvidiaSmi, QueryHasTheNamesOfTheHeaderAndNoUnitsWhereNoneAreWanted) {
  EXPECT_THAT(smi("-i 3 --query-gpu=gpu_name,clocks.sm,clocks.max.mem,memory.used,temperature.gpu "
                  "--format=csv,nounits")
                  .text,
              StartsWith("name, clocks.current.sm [MHz], clocks.max.memory [MHz], memory.used "
                         "[MiB], temperature.gpu\nNVIDIA H100 80GB HBM3, 345, 2619, 0, "));
  EXPECT_THAT(smi("--query-gpu=timestamp,count -i 0 --format=csv,noheader").text,
              MatchesRegex("2[0-9]{3}/[0-9][0-9]/[0-9][0-9] [0-9:]+[.][0-9]{3}, 8\n"));
}

TEST_F(NvidiaSmi, EveryFieldOfTheHelpCanBeAskedFor) {
  std::string fields;
  for (const std::string& line : lines_of(smi("--help-query-gpu").text)) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word != "or") fields += (fields.empty() ? "" : ",") + word.substr(1, word.size() - 2);
    }
  }
  EXPECT_GT(std::ranges::count(fields, ','), 150);
  const Ran asked = smi("--query-gpu=" + fields + " --format=csv,noheader -i 0");
  EXPECT_EQ(asked.exit_code, 0) << asked.text;
  EXPECT_EQ(std::ranges::count(asked.text, ','), std::ranges::count(fields, ','));
  EXPECT_THAT(asked.text, Not(HasSubstr("Unknown")));
}

TEST_F(NvidiaSmi, GpusAreNamedByIndexUuidSerialOrAddress) {
  const std::string uuid = smi("--query-gpu=uuid -i 4 --format=csv,noheader,nounits").text;
  const std::string serial = smi("--query-gpu=serial -i 4 --format=csv,noheader,nounits").text;
  for (const std::string& id :
       {uuid.substr(0, uuid.size() - 1), serial.substr(0, serial.size() - 1),
        std::string("00000000:9D:00.0"), std::string("0000:9d:00.0")}) {
    EXPECT_EQ(smi("--query-gpu=index --format=csv,noheader --id=" + id).text, "4\n") << id;
  }
  EXPECT_EQ(smi("--query-gpu=index --format=csv,noheader -i 5,1").text, "5\n1\n");
  EXPECT_THAT(smi("-L").text, StartsWith("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-"));
  EXPECT_EQ(lines_of(smi("-L").text).size(), 8U);
}

// A DGX H100 of branch 550, without its network cards.
TEST_F(NvidiaSmi, TopologyIsTheRecordedOne) {
  const auto lines = lines_of(smi("topo -m").text);
  ASSERT_GT(lines.size(), 12U);
  EXPECT_EQ(
      lines[0],
      "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tCPU Affinity\tNUMA Affinity\tGPU NUMA "
      "ID");
  EXPECT_EQ(lines[1],
            "GPU0\t X \tNV18\tNV18\tNV18\tNV18\tNV18\tNV18\tNV18\t0-55,112-167\t0\t\tN/A");
  EXPECT_EQ(lines[8],
            "GPU7\tNV18\tNV18\tNV18\tNV18\tNV18\tNV18\tNV18\t X \t56-111,168-223\t1\t\tN/A");
  EXPECT_EQ(lines[10], "Legend:");
  open_board("t4x4");
  EXPECT_THAT(smi("topo -m").text, HasSubstr("GPU0\t X \t"));
  EXPECT_THAT(smi("topo -m").text, Not(HasSubstr("\tNV")));
}

// The rows are those of an A30, with the figures that an H100's driver told (docs/gpu-results).
TEST_F(NvidiaSmi, MigProfilesAreInTheRecordedForm) {
  const Ran listed = smi("mig -lgip -i 0");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT("\n" + listed.text, StartsWith(R"(
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.10gb       19     0/7        9.75       No     16     1     0   |
|                                                             1     1     0   |
+-----------------------------------------------------------------------------+
)"));
  EXPECT_THAT(smi("mig -lgipp -i 0").text, HasSubstr("GPU  0 Profile ID  9 Placements: {0,4}:4\n"));
  open_board("t4x4");
  EXPECT_EQ(smi("mig -lgip").exit_code, 6);
}

TEST_F(NvidiaSmi, MigInstancesAreMadeListedAndDestroyed) {
  if (geteuid() != 0) GTEST_SKIP() << "instances are root's";
  open_board("dgx-a100");
  EXPECT_EQ(smi("mig -lgi").exit_code, 6) << "MIG is off";
  EXPECT_EQ(smi("-i 0 -mig 1").text, "Enabled MIG Mode for GPU 00000000:07:00.0\nAll done.\n");

  EXPECT_EQ(smi("mig -cgi 19,14,4g.40gb -C").text,
            "Successfully created GPU instance ID 13 on GPU  0 using profile MIG 1g.10gb (ID 19)\n"
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID 13 using "
            "profile MIG 1g.10gb (ID  0)\n"
            "Successfully created GPU instance ID  5 on GPU  0 using profile MIG 2g.20gb (ID 14)\n"
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  5 using "
            "profile MIG 2g.20gb (ID  1)\n"
            "Successfully created GPU instance ID  1 on GPU  0 using profile MIG 4g.40gb (ID  5)\n"
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 using "
            "profile MIG 4g.40gb (ID  3)\n");
  EXPECT_EQ("\n" + smi("mig -lgi").text, R"(
+----------------------------------------------------+
| GPU instances:                                     |
| GPU   Name          Profile  Instance   Placement  |
|                       ID       ID       Start:Size |
|====================================================|
|   0  MIG 1g.10gb      19       13          6:1     |
+----------------------------------------------------+
|   0  MIG 2g.20gb      14        5          4:2     |
+----------------------------------------------------+
|   0  MIG 4g.40gb       5        1          0:4     |
+----------------------------------------------------+
)");
  EXPECT_THAT(
      smi("mig -lci").text,
      HasSubstr("|   0      1       MIG 4g.40gb          3         0          0:4     |\n"));
  EXPECT_THAT(smi("-L").text, HasSubstr("\n  MIG 4g.40gb     Device  0: (UUID: MIG-"));
  ASSERT_TRUE(load(root_, {.gpu = "n1:0",
                           .pid = static_cast<std::uint64_t>(::getpid()),
                           .memory = "1G",
                           .instance = "13/0"}));
  EXPECT_THAT(smi("").text, HasSubstr(fmt::format("|    0    13    0{:>10}      C", ::getpid())));
  EXPECT_EQ(smi("mig -cgi 19").exit_code, 23);
  EXPECT_EQ(smi("mig -dgi -gi 5").exit_code, 19) << "it has a compute instance";
  EXPECT_EQ(smi("mig -dci -gi 5").text,
            "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  5\n");
  EXPECT_EQ(smi("mig -dgi -gi 5").text, "Successfully destroyed GPU instance ID  5 from GPU  0\n");
  EXPECT_EQ(smi("mig -cgi 14:4").exit_code, 0);
}

TEST_F(NvidiaSmi, ExitCodesAreThoseOfTheOriginal) {
  EXPECT_EQ(smi("-i 8").exit_code, 6);
  EXPECT_EQ(smi("-i 8").text, "No devices were found\n");
  EXPECT_EQ(smi("-i GPU-00000000-0000-0000-0000-000000000000").exit_code, 6);
  EXPECT_EQ(smi("--no-such-option").exit_code, 2);
  EXPECT_EQ(smi("-x").exit_code, 2);
  EXPECT_EQ(smi("-i").exit_code, 2);
  EXPECT_EQ(smi("-l 0").exit_code, 2);
  EXPECT_EQ(smi("--query-gpu=name").exit_code, 2);
  EXPECT_EQ(smi("--query-gpu=name --format=xml").exit_code, 2);
  const Ran unknown = smi("--query-gpu=name,cuda_version --format=csv");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.text, "Field \"cuda_version\" is not a valid field to query.\n\n");
  EXPECT_EQ(smi("-h").exit_code, 0);
  unsetenv("GPU_EMULATOR_STATE");
  EXPECT_EQ(smi("").exit_code, 9);
  EXPECT_THAT(smi("-L").text, HasSubstr("couldn't communicate with the NVIDIA driver"));
  EXPECT_EQ(smi("-h").exit_code, 0) << "needs no driver";
}

TEST_F(NvidiaSmi, LostGpuEndsIt) {
  const auto lost = inject(root_, {.fault = Fault::kLost, .gpu = "n1:1"});
  ASSERT_TRUE(lost) << lost.error().message;
  EXPECT_EQ(smi("-L").exit_code, 15);
  EXPECT_THAT(smi("").text, HasSubstr("GPU1: "));
  EXPECT_THAT(smi("").text, HasSubstr("GPU is lost"));
}

TEST_F(NvidiaSmi, WritesToAFile) {
  const std::string path = root_ + "/out.xml";
  EXPECT_EQ(smi("-q -x -f " + path).text, "");
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  tags_of(text.str());
  EXPECT_THAT(text.str(), HasSubstr("</nvidia_smi_log>\n"));
}

TEST_F(NvidiaSmi, ResetMendsWhatAResetMends) {
  StateFile board = state();
  ASSERT_TRUE(inject_ecc(board, 0, kEccUncorrected, 3));
  const std::string count =
      "--query-gpu=ecc.errors.uncorrected.volatile.total "
      "--format=csv,noheader -i 0";
  EXPECT_EQ(smi(count).text, "3\n");
  const Ran reset = smi("--gpu-reset -i 0,1");
  EXPECT_EQ(reset.exit_code, 0);
  EXPECT_EQ(reset.text,
            "GPU 00000000:1B:00.0 was successfully reset.\n"
            "GPU 00000000:43:00.0 was successfully reset.\nAll done.\n");
  EXPECT_EQ(smi(count).text, "0\n");
}

TEST_F(NvidiaSmi, ResetIsRefusedForAllWhileOneIsInUse) {
  StateFile board = state();
  ASSERT_TRUE(inject_ecc(board, 0, kEccUncorrected, 3));
  start_work("n1:1", "1G");
  const Ran reset = smi("-r -i 0,1");
  EXPECT_EQ(reset.exit_code, 19);
  EXPECT_THAT(reset.text, StartsWith("The following GPUs could not be reset:\n"
                                     "  GPU 00000000:43:00.0: In use by another client\n\n"
                                     "1 device is currently being used by"));
  EXPECT_EQ(
      smi("--query-gpu=ecc.errors.uncorrected.volatile.total --format=csv,noheader -i 0").text,
      "3\n");
}

TEST_F(NvidiaSmi, ResetGoesOnWhileAGpuThatItDoesNotNameIsLost) {
  StateFile board = state();
  ASSERT_TRUE(inject_ecc(board, 0, kEccUncorrected, 3));
  ASSERT_TRUE(inject_lost(board, 1));
  const Ran reset = smi("-r -i 0");
  EXPECT_EQ(reset.exit_code, 0);
  EXPECT_EQ(reset.text, "GPU 00000000:1B:00.0 was successfully reset.\nAll done.\n");
  for (const char* const arguments : {"-r -i 0,1", "-r", "-L -i 0"}) {
    const Ran refused = smi(arguments);
    EXPECT_EQ(refused.exit_code, 15) << arguments;
    EXPECT_THAT(refused.text, HasSubstr("GPU is lost")) << arguments;
  }
}

TEST_F(NvidiaSmi, ResetFailsWhereThatWasInjected) {
  StateFile board = state();
  ASSERT_TRUE(inject_reset_fault(board, 0, ResetFault::kFails));
  const Ran failed = smi("-r -i 0");
  EXPECT_EQ(failed.exit_code, 255);
  EXPECT_EQ(failed.text,
            "The following GPUs could not be reset:\n  GPU 00000000:1B:00.0: Unknown Error\n");
  ASSERT_TRUE(clear_faults(board, 0));
  EXPECT_EQ(smi("-r -i 0").exit_code, 0);
}

}  // namespace
}  // namespace gpu_emulator
