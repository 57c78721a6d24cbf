#include "hardware/procfs/procfs_host.h"

#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/letters.h"
#include "hardware/cpu_list.h"

namespace gpu_platform::hardware {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(ErrorCode::kUnavailable, fmt::format("{} cannot be read", path));
  return text.str();
}

std::string without_newline(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

// The value of "MemTotal:       65794000 kB" in meminfo; the same line of a NUMA node's file begins
// with "Node 0 ".
std::optional<base::Bytes> mem_total(std::string_view text) {
  const std::size_t at = text.find("MemTotal:");
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + 9);
  const std::size_t digits = text.find_first_not_of(' ');
  if (digits == std::string_view::npos) return std::nullopt;
  text.remove_prefix(digits);
  std::int64_t kib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kib);
  if (error != std::errc{} || kib <= 0 || kib > (std::int64_t{1} << 50)) return std::nullopt;
  return base::Bytes(kib * 1024);
}

// Without the CPUs that a container or taskset keeps from us. A kernel with more CPUs than the set
// holds answers EINVAL: then all that are online count.
CpuSet usable(const CpuSet& online) {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const std::size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  CpuSet cpus = online;
  if (set != nullptr && sched_getaffinity(0, size, set) == 0) {
    std::erase_if(cpus, [&](std::uint32_t cpu) { return !CPU_ISSET_S(cpu, size, set); });
  }
  CPU_FREE(set);
  return cpus.empty() ? online : cpus;
}

class ProcfsHost final : public HostTopology {
 public:
  explicit ProcfsHost(ProcfsRoots roots) : roots_(std::move(roots)) {}

  Result<HostDescription> describe() override {
    HostDescription host;
    char name[HOST_NAME_MAX + 1] = {};
    if (gethostname(name, sizeof name - 1) != 0) {
      return std::unexpected(base::system_error("gethostname", errno));
    }
    host.name = name;
    TRY_ASSIGN(host.boot_id, read_file(roots_.proc + "/sys/kernel/random/boot_id"));
    host.boot_id = without_newline(std::move(host.boot_id));
    const std::string online_path = roots_.sys + "/devices/system/cpu/online";
    TRY_ASSIGN(const std::string online_text, read_file(online_path));
    const auto online = parse_cpu_list(online_text);
    if (!online || online->empty()) {
      return fail(ErrorCode::kDataLoss, fmt::format("{} is not a list of CPUs", online_path));
    }
    host.cpus = usable(*online);
    TRY_ASSIGN(const std::string meminfo, read_file(roots_.proc + "/meminfo"));
    const auto memory = mem_total(meminfo);
    if (!memory) {
      return fail(ErrorCode::kDataLoss, fmt::format("{}/meminfo has no MemTotal", roots_.proc));
    }
    host.memory = *memory;
    host.numa_nodes = numa_nodes();
    return host;
  }

  std::optional<std::uint32_t> numa_node_of(std::string_view pci_address) override {
    std::string name = base::to_lower(pci_address);
    // NVML writes eight digits of domain, sysfs four (more only where the domain needs them).
    if (name.size() == 16 && name.starts_with("0000")) name.erase(0, 4);
    if (name.find('/') != std::string::npos) return std::nullopt;
    const auto text = read_file(fmt::format("{}/bus/pci/devices/{}/numa_node", roots_.sys, name));
    if (!text) return std::nullopt;
    int node = -1;  // the kernel's own word for "not known"
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), node);
    if (error != std::errc{} || node < 0) return std::nullopt;
    return static_cast<std::uint32_t>(node);
  }

 private:
  // A kernel built without NUMA has no such files; that is no error.
  std::vector<NumaNode> numa_nodes() const {
    std::vector<NumaNode> nodes;
    const std::string folder = roots_.sys + "/devices/system/node";
    const auto online = read_file(folder + "/online");
    const auto ids = online ? parse_cpu_list(*online) : std::nullopt;
    if (!ids) return nodes;
    for (const std::uint32_t id : *ids) {
      NumaNode node;
      node.id = id;
      const std::string path = fmt::format("{}/node{}", folder, id);
      if (const auto cpus = read_file(path + "/cpulist")) {
        node.cpus = parse_cpu_list(*cpus).value_or(CpuSet{});
      }
      if (const auto meminfo = read_file(path + "/meminfo")) node.memory = mem_total(*meminfo);
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  const ProcfsRoots roots_;
};

}  // namespace

std::unique_ptr<HostTopology> open_procfs_host(ProcfsRoots roots) {
  return std::make_unique<ProcfsHost>(std::move(roots));
}

}  // namespace gpu_platform::hardware
