#include "doctor/findings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpu_platform::doctor {

namespace {

using hardware::ProblemKind;
using node::Guard;

// Returns the advice with which the kernel would hold this guard.
std::string advice_for(Guard guard) {
  switch (guard) {
    case Guard::kProcessTree:
      return "start the launcher as root, on a host with cgroup v2 (Linux 5.7 or later)";
    case Guard::kUser:
      return "start the launcher as root; until then every job runs as the daemon's user";
    case Guard::kDevices:
      return "start the launcher as root with CAP_BPF, or CAP_SYS_ADMIN before Linux 5.8";
    case Guard::kMemory:
    case Guard::kProcesses:
    case Guard::kCpu:
    case Guard::kCores:
      return "let the host pass on the memory, pids, cpu and cpuset controllers "
             "(systemd: Delegate=yes, as the packaged units have it)";
    case Guard::kSyscalls:
      return "run a kernel with CONFIG_SECCOMP_FILTER, with execution.seccomp: default (--seccomp "
             "default of a launcher that is a service)";
    case Guard::kProcessList:
      return "start the launcher as root on Linux 5.8 or later, with execution.hide_processes: "
             "true";
    case Guard::kFolders:
      return "start the launcher as root, with execution.private_tmp: true";
  }
  return {};
}

std::string advice_for(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kNoLibrary:
      return "install NVIDIA's driver, or try the platform on emulated GPUs: "
             "gpu-platform serve --emulate dgx-h100";
    case ProblemKind::kNotNvml:
      return "find the package that owns the file, and install the driver's own library";
    case ProblemKind::kNoDriver:
      return "load the kernel module (modprobe nvidia) and look for its errors in dmesg";
    case ProblemKind::kDriverMismatch:
      return "restart the host, or unload and load the module: the driver was updated under it";
    case ProblemKind::kNoPermission:
      return "give the daemon's user the group that owns /dev/nvidia*";
    case ProblemKind::kNoGpu:
      return "look for the GPU in lspci, and for errors of the driver in dmesg";
    case ProblemKind::kOther:
      break;
  }
  return "look at the output of nvidia-smi";
}

std::string gpu_name(std::size_t index, const hardware::GpuDescription& gpu) {
  return fmt::format("GPU {} ({})", index, gpu.model.value_or("unknown model"));
}

void judge_gpu(std::size_t index, const hardware::GpuDescription& gpu, std::vector<Finding>& out) {
  const std::string check = fmt::format("gpu.{}", index);
  if (!gpu.problem.empty()) {
    out.push_back({check, Verdict::kBad, fmt::format("{}: {}", gpu_name(index, gpu), gpu.problem),
                   "see dmesg for its XIDs; a lost GPU needs a reset or a restart of the host"});
  } else if (gpu.persistence_enabled == false) {
    out.push_back({check, Verdict::kWarning, gpu_name(index, gpu) + " has persistence mode off",
                   "run nvidia-persistenced, or the driver unloads whenever nothing uses the GPU"});
  } else {
    out.push_back({check, Verdict::kGood, gpu_name(index, gpu), {}});
  }
}

std::string rough_size(base::Bytes size) {
  return fmt::format("{:.1f} GiB",
                     static_cast<double>(size.value()) / static_cast<double>(base::kGiB.value()));
}

constexpr std::array<std::string_view, 7> kUnfitFileSystems = {"tmpfs", "ramfs",     "nfs", "nfs4",
                                                               "cifs",  "overlayfs", "fuse"};
constexpr base::Bytes kLeastDisk = base::kGiB;
constexpr std::uint64_t kLeastOpenFiles = 4096;

}  // namespace

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kBad:
      break;
  }
  return "bad";
}

std::vector<Finding> judge_isolation(const std::vector<node::GuardState>& guards) {
  std::vector<Finding> findings;
  for (const node::GuardState& state : guards) {
    const std::string check = fmt::format("isolation.{}", node::to_string(state.guard));
    if (state.held) {
      findings.push_back({check, Verdict::kGood, "held by the kernel", {}});
    } else {
      findings.push_back(
          {check, Verdict::kWarning, "advisory: " + state.why, advice_for(state.guard)});
    }
  }
  if (findings.empty()) {
    findings.push_back({"isolation", Verdict::kBad, "no launcher starts here",
                        "look at the error above; without a launcher no job starts"});
  }
  return findings;
}

std::vector<Finding> judge_sharing(const std::vector<node::GuardState>& guards,
                                   const std::string& mps_control) {
  const auto is_held = [&](Guard guard) {
    return std::ranges::any_of(
        guards, [&](const node::GuardState& state) { return state.guard == guard && state.held; });
  };
  if (!is_held(Guard::kProcessTree) || !is_held(Guard::kUser)) {
    return {{"sharing", Verdict::kWarning,
             "no jobs can share a GPU: that needs root and cgroups of version 2",
             advice_for(Guard::kProcessTree)}};
  }
  std::vector<Finding> findings = {
      {"sharing.time-slice", Verdict::kGood, "jobs can take turns on a GPU", {}}};
  if (mps_control.empty()) {
    findings.push_back({"sharing.mps", Verdict::kWarning,
                        "no MPS server can be started: there is no nvidia-cuda-mps-control",
                        "install the MPS programs of the driver (Debian: nvidia-cuda-mps), or name "
                        "the program in sharing.mps_control; parts of GPUs take turns until then"});
  } else {
    findings.push_back({"sharing.mps", Verdict::kGood, mps_control + " can start MPS servers", {}});
  }
  return findings;
}

std::vector<Finding> judge_gpus(const hardware::Inventory& inventory) {
  if (inventory.problem) {
    const bool is_absent = inventory.problem->kind == ProblemKind::kNoLibrary;
    return {{"driver", is_absent ? Verdict::kWarning : Verdict::kBad, inventory.problem->message,
             advice_for(inventory.problem->kind)}};
  }
  std::vector<Finding> findings;
  findings.push_back(
      {"driver", inventory.fallback.empty() ? Verdict::kGood : Verdict::kWarning,
       inventory.fallback.empty()
           ? fmt::format("version {}, {} GPUs", inventory.driver.driver_version.value_or("unknown"),
                         inventory.gpus.size())
           : inventory.fallback,
       inventory.fallback.empty() ? ""
                                  : "make libnvidia-ml.so.1 of the driver's version loadable"});
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    judge_gpu(i, inventory.gpus[i], findings);
  }
  return findings;
}

Finding judge_dcgm(const DcgmFacts& dcgm) {
  if (!dcgm.library.empty()) return {"dcgm", Verdict::kGood, dcgm.library + " can be used", {}};
  if (dcgm.problem.empty()) {
    return {"dcgm", Verdict::kGood, "DCGM is not installed; it is not needed", {}};
  }
  return {"dcgm", Verdict::kWarning, dcgm.problem,
          "repair the installation of DCGM, or set monitoring.dcgm: off"};
}

Finding judge_disk(const DiskFacts& disk) {
  const std::string about =
      fmt::format("{} ({}, {} free)", disk.path, disk.file_system, rough_size(disk.available));
  if (!disk.is_writable) {
    return {"disk", Verdict::kBad, about + " cannot be written by this user",
            "name another folder with --data-dir, or change its owner"};
  }
  if (std::ranges::find(kUnfitFileSystems, disk.file_system) != kUnfitFileSystems.end()) {
    return {"disk", Verdict::kWarning, about + " does not keep a journal over a power cut",
            "name a folder on a local disk with --data-dir"};
  }
  if (disk.available < kLeastDisk) {
    return {"disk", Verdict::kWarning, about, "free at least 1 GiB for journal and output"};
  }
  return {"disk", Verdict::kGood, about, {}};
}

std::vector<Finding> judge_kernel(const KernelFacts& kernel) {
  std::vector<Finding> findings;
  if (kernel.open_files < kLeastOpenFiles) {
    findings.push_back({"open-files", Verdict::kWarning,
                        fmt::format("{} file descriptors", kernel.open_files),
                        fmt::format("raise the limit to {} (ulimit -n, LimitNOFILE=): each running "
                                    "job and each client takes one",
                                    kLeastOpenFiles)});
  } else {
    findings.push_back(
        {"open-files", Verdict::kGood, fmt::format("{} file descriptors", kernel.open_files), {}});
  }
  if (kernel.is_clock_synchronised) {
    findings.push_back({"clock", Verdict::kGood, "synchronised", {}});
  } else {
    findings.push_back({"clock", Verdict::kWarning, "not synchronised",
                        "run chrony or systemd-timesyncd: accounting uses this clock"});
  }
  return findings;
}

Finding judge_service(const ServiceFacts& service) {
  if (service.daemon_answers) {
    return {"service", Verdict::kGood, "a daemon answers at " + service.server, {}};
  }
  const std::string none = "no daemon answers at " + service.server;
  if (!service.is_of_this_host) {
    return {"service", Verdict::kWarning, none,
            "start that daemon, or name another one with GPU_PLATFORM_SERVER or a profile"};
  }
  if (!service.has_systemd) {
    return {"service", Verdict::kWarning, none + ", and systemd does not run this host",
            "start gpu-platform serve from the program that starts services here"};
  }
  if (!service.has_units) {
    return {"service", Verdict::kWarning, none + ", and its units are not installed",
            "see docs/deployment.md, or start gpu-platform serve by hand"};
  }
  return {"service", Verdict::kWarning, "the units are installed, but " + none,
          "systemctl enable --now gpu-platform; then journalctl -u gpu-platform"};
}

std::vector<Advice> advice_of(const std::vector<Finding>& findings) {
  std::vector<Advice> all;
  for (const Finding& finding : findings) {
    if (finding.advice.empty()) continue;
    const auto known = std::ranges::find(all, finding.advice, &Advice::text);
    if (known == all.end()) {
      all.push_back({finding.check, finding.advice});
    } else {
      known->checks += ", " + finding.check;
    }
  }
  return all;
}

Verdict overall(const std::vector<Finding>& findings) {
  Verdict worst = Verdict::kGood;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict);
  return worst;
}

}  // namespace gpu_platform::doctor
