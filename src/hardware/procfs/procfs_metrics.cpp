#include "hardware/procfs/procfs_metrics.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace gpu_platform::hardware {
namespace {

constexpr std::uint64_t kBytesPerSector = 512;  // in diskstats, whatever the disk's own are

// Lines of a file; a cut file is a shorter one.
std::vector<std::string> lines_of(const std::string& path, std::size_t max_lines) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  std::string line;
  while (lines.size() < max_lines && std::getline(in, line)) lines.push_back(line);
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<base::Bytes> bytes(std::optional<std::uint64_t> count, std::uint64_t unit) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!count || *count > kMax / unit) return std::nullopt;
  return base::Bytes(static_cast<std::int64_t>(*count * unit));
}

// Two counters of several devices. A device whose numbers cannot be read takes the sum away: a part
// of it would look like a counter that went back.
struct Traffic {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  bool is_known = true;

  void add(std::optional<std::uint64_t> more_in, std::optional<std::uint64_t> more_out) {
    is_known = is_known && more_in && more_out;
    if (!is_known) return;
    in += *more_in;
    out += *more_out;
  }
};

// "0.52" is 520.
std::optional<std::uint64_t> thousandths(std::string_view text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const auto whole = number(text.substr(0, dot));
  if (!whole || *whole > 1'000'000'000) return std::nullopt;
  std::string places(text.substr(std::min(dot + 1, text.size())));
  places.resize(3, '0');
  const auto part = number(places);
  if (!part) return std::nullopt;
  return *whole * 1000 + *part;
}

// The value of "MemAvailable:   65794000 kB".
std::optional<std::uint64_t> kib_of(const std::vector<std::string>& lines, std::string_view name) {
  for (const std::string& line : lines) {
    const auto words = words_of(line);
    if (words.size() == 3 && words[0] == name && words[2] == "kB") return number(words[1]);
  }
  return std::nullopt;
}

// What stands on other devices, or on none.
bool is_virtual_disk(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"loop", "ram", "zram", "dm-", "md"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

ProcfsMetrics::ProcfsMetrics(std::string data_folder, ProcfsRoots roots)
    : data_folder_(std::move(data_folder)), roots_(std::move(roots)) {}

model::HostMetrics ProcfsMetrics::read() {
  model::HostMetrics out;
  read_cpus(out);
  read_load(out);
  read_memory(out);
  read_disks(out);
  read_network(out);
  read_file_system(out);
  return out;
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice": guests are in user and
// nice already. Old kernels have fewer.
std::optional<ProcfsMetrics::CpuTimes> ProcfsMetrics::cpu_times() const {
  constexpr std::size_t kTimes = 8;
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kWaiting = 4;
  const auto lines = lines_of(roots_.proc + "/stat", 1);
  const auto words = lines.empty() ? std::vector<std::string_view>() : words_of(lines[0]);
  if (words.size() < kIdle + 2 || words[0] != "cpu") return std::nullopt;
  CpuTimes times;
  for (std::size_t i = 0; i < kTimes && i + 1 < words.size(); ++i) {
    const auto ticks = number(words[i + 1]);
    if (!ticks) return std::nullopt;
    times.all += *ticks;
    if (i == kIdle || i == kWaiting) times.idle += *ticks;
  }
  return times;
}

// The kernel's counts of idle time may go back by a little.
void ProcfsMetrics::read_cpus(model::HostMetrics& out) {
  const auto now = cpu_times();
  const auto last = std::exchange(last_, now);
  if (!now || !last || now->all <= last->all || now->idle < last->idle) return;
  const std::uint64_t all = now->all - last->all;
  const std::uint64_t idle = std::min(now->idle - last->idle, all);
  out.cpu_percent = static_cast<std::uint32_t>(((all - idle) * 100 + all / 2) / all);
}

// "0.52 0.40 0.31 3/1234 99".
void ProcfsMetrics::read_load(model::HostMetrics& out) const {
  const auto lines = lines_of(roots_.proc + "/loadavg", 1);
  const auto words = lines.empty() ? std::vector<std::string_view>() : words_of(lines[0]);
  const bool is_whole = words.size() == 5 && words[3].find('/') != std::string_view::npos;
  if (is_whole) out.load_thousandths = thousandths(words[0]);
}

void ProcfsMetrics::read_memory(model::HostMetrics& out) const {
  const auto lines = lines_of(roots_.proc + "/meminfo", 100);
  const auto total = kib_of(lines, "MemTotal:");
  const auto available = kib_of(lines, "MemAvailable:");
  out.memory_total = bytes(total, 1024);
  if (total && available && *available <= *total) out.memory_available = bytes(available, 1024);
  const auto swap = kib_of(lines, "SwapTotal:");
  const auto swap_free = kib_of(lines, "SwapFree:");
  if (swap && swap_free && *swap_free <= *swap) out.swap_used = bytes(*swap - *swap_free, 1024);
}

bool ProcfsMetrics::is_whole_disk(const std::string& name) const {
  if (is_virtual_disk(name)) return false;
  return ::access((roots_.sys + "/block/" + name).c_str(), F_OK) == 0;
}

// "8 0 sda reads merged sectors ms writes merged sectors ms …".
void ProcfsMetrics::read_disks(model::HostMetrics& out) const {
  constexpr std::size_t kName = 2;
  constexpr std::size_t kRead = 5;
  constexpr std::size_t kWritten = 9;
  Traffic sectors;
  bool has_disk = false;
  for (const std::string& line : lines_of(roots_.proc + "/diskstats", 10'000)) {
    const auto words = words_of(line);
    if (words.size() <= kWritten || !is_whole_disk(std::string(words[kName]))) continue;
    has_disk = true;
    sectors.add(number(words[kRead]), number(words[kWritten]));
  }
  if (!has_disk || !sectors.is_known) return;
  out.disk_read = bytes(sectors.in, kBytesPerSector);
  out.disk_written = bytes(sectors.out, kBytesPerSector);
}

// "  eth0: received packets errs drop fifo frame compressed multicast sent …". Where devices of
// hardware are there they count alone: bridges and bonds carry the same bytes again.
void ProcfsMetrics::read_network(model::HostMetrics& out) const {
  constexpr std::size_t kReceived = 0;
  constexpr std::size_t kSent = 8;
  Traffic of_hardware;
  Traffic of_all;
  bool has_hardware = false;
  bool has_any = false;
  for (const std::string& line : lines_of(roots_.proc + "/net/dev", 10'000)) {
    const std::size_t colon = line.rfind(':');
    if (colon == std::string::npos) continue;
    const auto names = words_of(std::string_view(line).substr(0, colon));
    const auto numbers = words_of(std::string_view(line).substr(colon + 1));
    if (names.size() != 1 || names[0] == "lo" || numbers.size() <= kSent) continue;
    const auto received = number(numbers[kReceived]);
    const auto sent = number(numbers[kSent]);
    has_any = true;
    of_all.add(received, sent);
    const std::string device = roots_.sys + "/class/net/" + std::string(names[0]) + "/device";
    if (::access(device.c_str(), F_OK) != 0) continue;
    has_hardware = true;
    of_hardware.add(received, sent);
  }
  const Traffic& traffic = has_hardware ? of_hardware : of_all;
  if (!has_any || !traffic.is_known) return;
  out.network_received = bytes(traffic.in, 1);
  out.network_sent = bytes(traffic.out, 1);
}

void ProcfsMetrics::read_file_system(model::HostMetrics& out) const {
  struct statvfs found{};
  if (data_folder_.empty() || ::statvfs(data_folder_.c_str(), &found) != 0) return;
  out.disk_total = bytes(found.f_blocks, found.f_frsize);
  // What is kept for root is not free for the daemon.
  out.disk_free = bytes(found.f_bavail, found.f_frsize);
}

}  // namespace gpu_platform::hardware
