#include "node/driver/device_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string target_of(const std::string& link) {
  char target[256];
  const ssize_t size = readlink(link.c_str(), target, sizeof target);
  return {target, size < 0 ? 0 : static_cast<std::size_t>(size)};
}

// Its name alone says nothing: every user can give a program that name, and only root a file of
// root's.
bool is_persistence_service(const std::string& process) {
  const std::string program = target_of(process + "/exe");
  struct stat about{};
  return program.ends_with("/nvidia-persistenced") &&
         stat((process + "/exe").c_str(), &about) == 0 && about.st_uid == 0;
}

std::string name_of(const std::string& process) {
  std::string name = os::read_small_file(AT_FDCWD, (process + "/comm").c_str());
  name.resize(std::min(name.find('\n'), name.size()));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

// Returns the minors that the process has open.
std::vector<std::uint32_t> open_devices(const std::string& process) {
  constexpr std::string_view kDevice = "/dev/nvidia";
  std::vector<std::uint32_t> minors;
  const Folder files(opendir((process + "/fd").c_str()));
  while (const dirent* const entry = files == nullptr ? nullptr : readdir(files.get())) {
    const std::string file = target_of(process + "/fd/" + entry->d_name);
    if (!file.starts_with(kDevice)) continue;
    if (const auto minor = number_in(std::string_view(file).substr(kDevice.size()))) {
      minors.push_back(*minor);
    }
  }
  std::ranges::sort(minors);
  const auto repeated = std::ranges::unique(minors);
  minors.erase(repeated.begin(), repeated.end());
  return minors;
}

}  // namespace

std::vector<DeviceHolder> device_holders(const std::vector<std::uint32_t>& minors,
                                         const std::string& proc) {
  std::vector<DeviceHolder> holders;
  const Folder all(opendir(proc.c_str()));
  while (const dirent* const entry = all == nullptr ? nullptr : readdir(all.get())) {
    const auto pid = number_in(entry->d_name);
    if (!pid || *pid == static_cast<std::uint32_t>(getpid())) continue;
    const std::string process = proc + "/" + entry->d_name;
    for (const std::uint32_t minor : open_devices(process)) {
      if (std::ranges::find(minors, minor) == minors.end()) continue;
      if (is_persistence_service(process)) break;
      holders.push_back({*pid, minor, name_of(process)});
    }
  }
  std::ranges::sort(holders, {},
                    [](const DeviceHolder& holder) { return std::pair(holder.pid, holder.minor); });
  return holders;
}

}  // namespace gpu_platform::node
