#include "node/driver/gpu_reset.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "hardware/nvidia_smi/run_tool.h"
#include "node/driver/device_holders.h"
#include "node/driver/opened_gpus.h"
#include "node/driver/plain_text.h"
#include "node/driver/power_limit.h"
#include "node/driver/reset_group.h"
#include "node/site_hooks.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

// The probe was told to let go when the order was given.
constexpr std::int64_t kLetGoMs = 15'000;
constexpr std::int64_t kReturnMs = 60'000;
constexpr std::int64_t kRetryMs = 250;
constexpr std::int64_t kSpareMs = 3'000;  // for the answer, before the program is killed
constexpr std::size_t kShownClients = 4;

// Where NVIDIA's driver puts its program. No other place is looked at: this process is root's.
constexpr const char* kNvidiaSmi[] = {"/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi",
                                      "/opt/bin/nvidia-smi"};

void wait_a_moment() {
  const timespec time{0, kRetryMs * 1'000'000};
  nanosleep(&time, nullptr);
}

struct Target {
  std::string uuid;
  std::uint32_t index = 0;
  std::string pci;
  std::optional<std::uint32_t> minor;
  std::optional<base::Milliwatts> power_limit;
};

class Reset {
 public:
  explicit Reset(const DriverOrder& order)
      : order_(order),
        until_ms_(os::boot_ms() + static_cast<std::int64_t>(order.limit_ms) - kSpareMs) {}

  DriverAnswer run() {
    if (std::string why = find_targets(); !why.empty()) return failed_answer(order_.gpus, why);
    std::string why = check_group();
    if (why.empty()) why = wait_for_clients();
    opened_ = {};  // we were a client, too
    if (!why.empty()) return untried_answer(order_.gpus, why);
    why = run_tool();
    if (!why.empty()) return failed_answer(order_.gpus, why);
    DriverAnswer answer;
    answer.detail = output_;
    for (const Target& target : targets_) answer.gpus.push_back({target.uuid, comes_back(target)});
    return answer;
  }

 private:
  std::string find_targets() {
    opened_ = open_gpus(order_.library);
    for (const std::string& uuid : order_.gpus) {
      const hardware::GpuDescription* const gpu = opened_.find(uuid);
      if (gpu == nullptr) {
        return fmt::format("{}: {}; a reset does not reach it: restart the machine", uuid,
                           words_for_unlisted(opened_));
      }
      if (!gpu->pci_address) return uuid + ": the driver does not say where it is";
      targets_.push_back({uuid, gpu->index, *gpu->pci_address, gpu->minor, gpu->power_limit});
    }
    return {};
  }

  std::string check_group() const {
    const std::vector<hardware::GpuLink> links = opened_.library->links();
    std::set<std::uint32_t> ordered;
    for (const Target& target : targets_) ordered.insert(target.index);
    std::set<std::string> missing;
    for (const Target& target : targets_) {
      for (const std::uint32_t index : reset_group(opened_.gpus, links, target.index)) {
        if (!ordered.contains(index)) missing.insert(name_of(index));
      }
    }
    if (missing.empty()) return {};
    return fmt::format("it is reset together with {}: drain those, too, and reset all at once",
                       fmt::join(missing, ", "));
  }

  std::string name_of(std::uint32_t index) const {
    const auto gpu = std::ranges::find(opened_.gpus, index, &hardware::GpuDescription::index);
    if (gpu != opened_.gpus.end() && gpu->uuid) return *gpu->uuid;
    return fmt::format("GPU {}", index);
  }

  std::string wait_for_clients() const {
    const std::int64_t until = std::min(until_ms_, os::boot_ms() + kLetGoMs);
    while (true) {
      const std::vector<std::string> clients = find_clients();
      if (clients.empty()) return {};
      if (os::boot_ms() >= until) {
        return fmt::format("it is in use by {}: end what uses it, and reset again",
                           fmt::join(clients.begin(),
                                     clients.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(clients.size(), kShownClients)),
                                     ", "));
      }
      wait_a_moment();
    }
  }

  std::vector<std::string> find_clients() const {
    std::map<std::uint32_t, std::string> clients;
    std::vector<std::uint32_t> minors;
    for (const Target& target : targets_) {
      if (target.minor) minors.push_back(*target.minor);
      const hardware::GpuReading reading = opened_.library->read(target.index);
      if (!reading.processes) continue;
      for (const hardware::GpuProcess& process : *reading.processes) clients[process.pid] = "";
    }
    // The device files are real GPUs': an emulated board has none.
    if (!order_.is_emulated()) {
      for (const DeviceHolder& holder : device_holders(minors)) clients[holder.pid] = holder.name;
    }
    std::vector<std::string> words;
    for (const auto& [pid, name] : clients) {
      words.push_back(name.empty() ? fmt::format("process {}", pid)
                                   : fmt::format("process {} ({})", pid, name));
    }
    return words;
  }

  // Emulated boards are reset by the user that made them, with the program beside the board's
  // library.
  std::string find_tool(std::string& path) const {
    if (order_.is_emulated()) {
      path = order_.nvidia_smi;
      return {};
    }
    std::string why;
    for (const char* const candidate : kNvidiaSmi) {
      path = candidate;
      why = error_in_hook(path);
      if (why.empty()) return {};
    }
    return fmt::format("there is no nvidia-smi that can be trusted, the last one tried: {}", why);
  }

  std::string run_tool() {
    std::string path;
    if (std::string why = find_tool(path); !why.empty()) return why;
    std::vector<std::string> places;
    for (const Target& target : targets_) places.push_back(target.pci);
    hardware::ToolLimits limits;
    limits.time = base::milliseconds(std::max<std::int64_t>(until_ms_ - os::boot_ms(), 1));
    const auto ran = hardware::run_tool(
        {path, "--gpu-reset", "-i", fmt::format("{}", fmt::join(places, ","))}, limits);
    if (!ran) return ran.error().message;
    output_ = plain_line(ran->text);
    if (ran->exit_code == 0) return {};
    return fmt::format("nvidia-smi --gpu-reset failed ({}): {}", ran->exit_code, output_);
  }

  // Empty: it is back.
  std::string comes_back(const Target& target) const {
    const std::int64_t until = std::min(until_ms_, os::boot_ms() + kReturnMs);
    while (true) {
      std::string why = answer_of(target.uuid);
      if (why.empty()) return restore_power_limit(target);
      if (os::boot_ms() >= until) return "after its reset: " + why;
      wait_a_moment();
    }
  }

  std::string answer_of(const std::string& uuid) const {
    const OpenedGpus now = open_gpus(order_.library);
    const hardware::GpuDescription* const gpu = now.find(uuid);
    if (gpu == nullptr) return words_for_unlisted(now);
    const hardware::GpuReading reading = now.library->read(gpu->index);
    return reading.condition == hardware::GpuCondition::kAnswering ? "" : reading.problem;
  }

  std::string restore_power_limit(const Target& target) const {
    if (!target.power_limit) return {};
    const OpenedGpus now = open_gpus(order_.library);
    const hardware::GpuDescription* const gpu = now.find(target.uuid);
    if (gpu == nullptr || gpu->power_limit == target.power_limit) return {};
    const std::string why = set_power_limit(
        order_.library, target.uuid, static_cast<std::uint32_t>(target.power_limit->value()));
    return why.empty() ? "" : "it was reset, but its power limit is not what it was: " + why;
  }

  const DriverOrder& order_;
  const std::int64_t until_ms_;
  OpenedGpus opened_;
  std::vector<Target> targets_;
  std::string output_;
};

}  // namespace

DriverAnswer reset_gpus(const DriverOrder& order) {
  return Reset(order).run();
}

}  // namespace gpu_platform::node
