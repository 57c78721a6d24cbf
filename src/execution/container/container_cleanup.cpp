#include "execution/container/container_cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <vector>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "execution/container/container_rules.h"
#include "execution/container/engine_open.h"
#include "execution/container/fetched_images.h"
#include "execution/container/start_hold.h"
#include "node/cgroup.h"
#include "node/protocol.h"
#include "node/site_hooks.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr const char* kMountsParent = "/run";
constexpr std::string_view kMounts = "gpu-platform-mounts-";
constexpr std::size_t kUniqueEnd = 7;   // "-XXXXXX"
constexpr int kGroupsTimeoutMs = 2000;  // with the engine's processes in a group

std::string last_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  return names;
}

// Nothing below a stage is touched: it is a user's.
void remove_stages(const std::string& folder) {
  if (is_start_folder(folder)) return remove_start_folder(folder);
  for (const std::string& name : names_in(folder)) {
    const std::string stage = folder + "/" + name;
    umount2(stage.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    if (rmdir(stage.c_str()) != 0) unlink(stage.c_str());
  }
  rmdir(folder.c_str());
}

class Cleanup {
 public:
  explicit Cleanup(const ContainerCleanOptions& options)
      : o_(options),
        cluster_(options.cgroup.empty() ? options.cluster : last_name(options.cgroup)) {}

  // False: another one waits already, and will see what we would.
  bool take_turn() {
    const os::Descriptor next = open_lock("clean.next");
    if (flock(next.get(), LOCK_EX | LOCK_NB) != 0) return false;
    turn_ = open_lock("clean.turn");
    while (flock(turn_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return false;
    }
    return true;
  }

  void clean_mounts() const {
    const std::string begin = mounts_folder_begin(cluster_, "");
    for (const std::string& name : names_in(kMountsParent)) {
      const std::string path = std::string(kMountsParent) + "/" + name;
      if (!path.starts_with(begin) || path.size() < begin.size() + kUniqueEnd) continue;
      const std::string attempt =
          path.substr(begin.size(), path.size() - begin.size() - kUniqueEnd);
      if (is_over(attempt)) remove_stages(path);
    }
  }

  // After the containers, because their engine's own processes were in these groups.
  void clean_groups() const {
    if (o_.cgroup.empty()) return;
    for (const std::string& attempt : node::engine_groups_below(o_.cgroup)) {
      if (is_over(attempt)) node::remove_engine_groups(o_.cgroup + "/" + attempt, kGroupsTimeoutMs);
    }
  }

  ContainerDone<> clean_engine(const ContainerRules& rules) const {
    const auto mount =
        node::find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
    std::string cgroup;  // as the engine names it
    if (!o_.cgroup.empty()) {
      if (!mount || !o_.cgroup.starts_with(*mount))
        return container_failed("there is no cgroup v2");
      cgroup = o_.cgroup.substr(*mount == "/" ? 0 : mount->size());
    }
    EngineCalls engine(rules.socket, -1, [] { return false; });
    const LongStep patient{[](const std::string&) {},
                           [](base::Duration time) {
                             const auto ms = base::whole_milliseconds(time);
                             poll(nullptr, 0, static_cast<int>(ms));
                             return true;
                           }};
    if (auto opened = open_engine(engine, rules.socket, patient); !opened) return opened;
    std::string query = "all=1";
    http::append_query(query, "filters",
                       Json{{"label", {"gpu-platform.cluster=" + cluster_}}}.dump());
    const auto found = engine.get("/containers/json?" + query);
    if (!found || !found->is_array()) return container_failed("the engine lists no containers");
    for (const Json& container : *found) clean_one(engine, text_field(container, "Id"), cgroup);
    if (rules.keep_images) {
      FetchedImages(o_.root).remove_unused(engine, *rules.keep_images, os::wall_now());
    }
    return {};
  }

 private:
  os::Descriptor open_lock(const char* name) const {
    const std::string path = o_.root + "/run/" + name;
    return os::Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  }

  // The lock of its record says that its supervisor lives.
  bool is_over(const std::string& attempt) const {
    const auto id = node::parse_attempt_name(attempt);
    if (!id) return false;
    const std::string path = node::record_path(o_.root, *id);
    const os::Descriptor record(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!record.is_open()) return errno == ENOENT;
    return flock(record.get(), LOCK_SH | LOCK_NB) == 0;
  }

  void clean_one(EngineCalls& engine, const std::string& id, const std::string& cgroup) const {
    if (id.empty() || id.find_first_not_of("0123456789abcdef") != std::string::npos) return;
    const auto container = engine.get("/containers/" + id + "/json");
    if (!container) return;
    const std::string attempt =
        cgroup.empty() ? rootless_attempt_of(*container, cluster_) : attempt_of(*container, cgroup);
    if (attempt.empty() || !is_over(attempt)) return;
    static_cast<void>(engine.remove("/containers/" + id + "?force=1&v=1"));
  }

  const ContainerCleanOptions& o_;
  const std::string cluster_;
  os::Descriptor turn_;
};

}  // namespace

std::string rootless_attempt_of(const Json& container, std::string_view cluster) {
  const Json labels = field(field(container, "Config"), "Labels");
  std::string attempt = text_field(labels, "gpu-platform.attempt");
  if (text_field(labels, "gpu-platform.cluster") != cluster) return {};
  return node::parse_attempt_name(attempt) ? attempt : std::string();
}

std::string attempt_of(const Json& container, std::string_view engine_cgroup) {
  std::string attempt = rootless_attempt_of(container, last_name(engine_cgroup));
  if (attempt.empty()) return {};
  const std::string parent = text_field(field(container, "HostConfig"), "CgroupParent");
  return parent == std::string(engine_cgroup) + "/" + attempt ? attempt : std::string();
}

std::string mounts_folder_begin(std::string_view cluster, std::string_view attempt) {
  constexpr std::string_view kBegin = "gpu-platform-";
  if (cluster.starts_with(kBegin)) cluster.remove_prefix(kBegin.size());
  std::string begin = fmt::format("{}/{}{}-", kMountsParent, kMounts, cluster);
  return attempt.empty() ? begin : fmt::format("{}{}-", begin, attempt);
}

int clean_containers(const ContainerCleanOptions& options) {
  Cleanup cleanup(options);
  if (!cleanup.take_turn()) return 0;
  cleanup.clean_mounts();
  const std::string why = node::error_in_rules(options.rules);
  const auto rules = parse_container_rules(os::read_small_file(AT_FDCWD, options.rules.c_str()));
  if (!why.empty() || !rules) {
    fprintf(stderr, "%s\n", why.empty() ? rules.error().message.c_str() : why.c_str());
    return 1;
  }
  const auto cleaned = cleanup.clean_engine(*rules);
  cleanup.clean_groups();
  if (!cleaned) fprintf(stderr, "%s\n", cleaned.error().why.c_str());
  return cleaned ? 0 : 1;
}

}  // namespace gpu_platform::execution
