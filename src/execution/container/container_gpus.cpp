#include "execution/container/container_gpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr int kCdiMinor = 50;  // Docker 28.2, from which on CDI is on unless it is switched off

std::string plain_text(std::string_view c_text) {
  return std::string(c_text.substr(0, c_text.find('\0')));
}

bool is_emulated(const node::LaunchRequest& request) {
  return !request.container.board_files.empty();
}

std::string gpu_node(const node::DeviceNumber& device) {
  return fmt::format("/dev/nvidia{}", device.minor);
}

// What all GPUs share; only the first must be there.
constexpr std::string_view kSharedNodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                             "/dev/nvidia-uvm-tools"};

bool is_character_device(const std::string& path, struct stat& about) {
  return stat(path.c_str(), &about) == 0 && S_ISCHR(about.st_mode);
}

Json names_for(GpuWay way, const node::LaunchRequest& request) {
  Json names = Json::array();
  for (const std::string_view uuid : request.container.gpus) {
    names.push_back((way == GpuWay::kCdi ? "nvidia.com/gpu=" : "") + plain_text(uuid));
  }
  return names;
}

bool names_cdi_folders(const Json& info) {
  return info.is_object() && info.contains("CDISpecDirs") && info["CDISpecDirs"].is_array() &&
         !info["CDISpecDirs"].empty();
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](auto begin) { return text.starts_with(begin); });
}

Json array_at(const Json& object, const char* name) {
  const bool is_there = object.is_object() && object.contains(name) && object[name].is_array();
  return is_there ? object[name] : Json::array();
}

// Every text of the `key` of the objects in a list, or of the lists that lie there.
std::vector<std::string> texts_at(const Json& list, const char* key) {
  std::vector<std::string> texts;
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains(key)) continue;
    const Json& value = entry[key];
    if (value.is_string()) texts.push_back(value.get<std::string>());
    if (!value.is_array()) continue;
    for (const Json& text : value) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
  }
  return texts;
}

std::string first_missing(const Json& asked, const Json& made, const char* list, const char* key) {
  const std::vector<std::string> there = texts_at(array_at(made, list), key);
  for (std::string& text : texts_at(array_at(asked, list), key)) {
    if (std::ranges::find(there, text) == there.end()) return std::move(text);
  }
  return {};
}

// A process that ends gives its root back before its mounts (exit_fs() in the kernel's do_exit()),
// and both before it is a zombie. So what was not found under a root that is still there after the
// look was not there.
bool is_gone(const std::string& root) {
  struct stat about{};
  return stat(root.c_str(), &about) != 0 && (errno == ENOENT || errno == ESRCH);
}

}  // namespace

std::string strange_gpu_name(const node::LaunchRequest& request) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  };
  for (const std::string_view c_text : request.container.gpus) {
    std::string name = plain_text(c_text);
    const bool is_uuid = begins_with_any(name, {"GPU-", "MIG-"}) && name.size() > 4 &&
                         std::ranges::all_of(name, is_allowed);
    if (!is_uuid) return name.empty() ? "no name" : name;
  }
  return {};
}

bool is_gpu_way_the_engines(const node::LaunchRequest& request, const ContainerRules& rules,
                            int minor) {
  const bool is_said = is_emulated(request) || rules.gpus == "nodes" || rules.gpus == "cdi" ||
                       rules.gpus == "nvidia";
  return !request.container.gpus.empty() && !is_said && minor >= kCdiMinor;
}

GpuWay gpu_way(const node::LaunchRequest& request, const ContainerRules& rules, const Json& info,
               int minor) {
  if (request.container.gpus.empty()) return GpuWay::kNone;
  if (is_emulated(request) || rules.gpus == "nodes") return GpuWay::kNodes;
  if (rules.gpus == "cdi") return GpuWay::kCdi;
  if (rules.gpus == "nvidia") return GpuWay::kNvidia;
  const bool can_cdi = is_gpu_way_the_engines(request, rules, minor) && names_cdi_folders(info);
  return can_cdi ? GpuWay::kCdi : GpuWay::kNvidia;
}

ContainerDone<> GpuNodes::find(const node::LaunchRequest& request, const std::string& begin) {
  if (is_emulated(request)) return make(request, begin + "XXXXXX");
  struct stat about{};
  for (const node::DeviceNumber& device : request.devices) {
    if (device.major != node::kGpuMajor) continue;
    const std::string path = gpu_node(device);
    if (!is_character_device(path, about) || about.st_rdev != makedev(device.major, device.minor)) {
      return container_failed(path + " is not the device node of the job's GPU");
    }
    found_.push_back({path, path});
  }
  for (const std::string_view shared : kSharedNodes) {
    const std::string path(shared);
    if (is_character_device(path, about)) found_.push_back({path, path});
  }
  return {};
}

ContainerDone<> GpuNodes::make(const node::LaunchRequest& request, std::string folder) {
  if (mkdtemp(folder.data()) == nullptr) {
    return container_failed(fmt::format("the emulated GPUs' nodes in /run: {}", strerror(errno)));
  }
  folder_ = std::move(folder);
  for (const node::DeviceNumber& device : request.devices) {
    const std::string path = fmt::format("{}/nvidia{}", folder_, device.minor);
    if (mknod(path.c_str(), S_IFCHR | 0666, makedev(device.major, device.minor)) != 0) {
      return container_failed(fmt::format("{}: {}", path, strerror(errno)));
    }
    found_.push_back({path, gpu_node(device)});
  }
  return {};
}

void GpuNodes::remove() {
  if (folder_.empty()) return;
  for (const ContainerDevice& device : found_) unlink(device.source.c_str());
  rmdir(folder_.c_str());
  folder_.clear();
}

void put_gpus(Json& body, GpuWay way, const node::LaunchRequest& request,
              const std::vector<ContainerDevice>& nodes) {
  Json& host = body["HostConfig"];
  if (way == GpuWay::kNodes) {
    for (const ContainerDevice& node : nodes) {
      host["Devices"].push_back({{"PathOnHost", node.source},
                                 {"PathInContainer", node.target},
                                 {"CgroupPermissions", "rw"}});
    }
  } else if (way == GpuWay::kCdi) {
    host["DeviceRequests"] = {{{"Driver", "cdi"}, {"DeviceIDs", names_for(way, request)}}};
  } else if (way == GpuWay::kNvidia) {
    host["DeviceRequests"] = {{{"Driver", "nvidia"},
                               {"DeviceIDs", names_for(way, request)},
                               {"Capabilities", {{"gpu", "utility", "compute"}}}}};
  }
}

std::vector<std::string> container_environment(const node::LaunchRequest& request, GpuWay way) {
  std::vector<std::string> environment;
  for (const std::string_view entry : request.environment) {
    if (!entry.starts_with("NVIDIA_VISIBLE_DEVICES=")) environment.push_back(plain_text(entry));
  }
  if (way != GpuWay::kNvidia) environment.emplace_back("NVIDIA_VISIBLE_DEVICES=void");
  return environment;
}

std::vector<model::ContainerMount> mps_mounts(const std::vector<std::string_view>& environment,
                                              bool private_folders) {
  constexpr const char* kShm = "/dev/shm";
  constexpr std::string_view kVariable = "CUDA_MPS_PIPE_DIRECTORY=";
  constexpr std::string_view kPipe = "/pipe";
  for (std::string_view entry : environment) {
    if (!entry.starts_with(kVariable)) continue;
    entry.remove_prefix(kVariable.size());
    entry.remove_suffix(1);  // its NUL
    if (!entry.starts_with(node::kMpsRoot) || !entry.ends_with(kPipe)) return {};
    const std::string pipe(entry);
    const std::string folder(entry.substr(0, entry.size() - kPipe.size()));
    return {{pipe, pipe, false}, {private_folders ? folder + "/shm" : kShm, kShm, false}};
  }
  return {};
}

std::string dropped_gpus(const Json& asked, const Json& made) {
  std::string dropped = first_missing(asked, made, "Devices", "PathInContainer");
  return dropped.empty() ? first_missing(asked, made, "DeviceRequests", "DeviceIDs") : dropped;
}

std::string missing_gpu_node(const node::LaunchRequest& request, const std::string& root) {
  if (request.container.gpus.empty()) return {};
  for (const node::DeviceNumber& device : request.devices) {
    if (device.major != node::kGpuMajor) continue;
    struct stat about{};
    const bool is_there = lstat((root + gpu_node(device)).c_str(), &about) == 0 &&
                          S_ISCHR(about.st_mode) &&
                          about.st_rdev == makedev(device.major, device.minor);
    if (!is_there) return is_gone(root) ? std::string() : gpu_node(device);
  }
  return {};
}

}  // namespace gpu_platform::execution
