#include "execution/container/container_setup.h"

#include <fcntl.h>

#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "execution/container/container_cleanup.h"
#include "execution/container/credentials_search.h"
#include "execution/container/engine_open.h"
#include "execution/container/image_platform.h"
#include "execution/container/image_start.h"
#include "execution/container/request_checks.h"
#include "node/cgroup.h"
#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr int kAnnotationsMinor = 43;  // the first version of the API that has them

}  // namespace

ContainerDone<> ContainerSetup::prepare() {
  if (auto allowed = check_rules(); !allowed) return allowed;
  if (auto opened = open_engine(engine_, rules_.socket, step_); !opened) return opened;
  if (auto fits = is_rootless() ? check_own_engine() : find_cgroup(); !fits) return fits;
  if (auto fits = check_engine(); !fits) return fits;
  if (auto found = find_gpus(); !found) return found;
  if (auto opened = open_mounts(); !opened) return opened;
  return get_image();
}

ContainerDone<> ContainerSetup::check_rules() {
  auto mounts = check_request(rules_, request_);
  if (!mounts) return std::unexpected(mounts.error());
  mounts_ = *std::move(mounts);
  return check_host_platform("--platform", platform());
}

ContainerDone<> ContainerSetup::find_cgroup() {
  const auto mount =
      node::find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  if (!mount || !o_.cgroup.starts_with(*mount))
    return container_failed("its cgroup cannot be found");
  engine_cgroup_ = o_.cgroup.substr(*mount == "/" ? 0 : mount->size());
  return {};
}

// Another's engine would have other rights than the job's user, and would not know its uid.
ContainerDone<> ContainerSetup::check_own_engine() {
  auto info = engine_.get("/info");
  if (!info) return container_failed("the container engine", info.error());
  info_ = *std::move(info);
  if (engine_.is_podman() && flag_field(info_, "Rootless")) return {};
  return container_failed(
      "the container engine is not a Podman without root's rights, and the node part has none "
      "itself");
}

// Podman takes a quarter of a second for this, and says the driver of a container that is made in
// no time: see check_driver_of_made().
ContainerDone<> ContainerSetup::check_engine() {
  if (is_rootless()) return {};  // its cgroups of any kind are not ours
  if (engine_.is_podman() && !is_gpu_way_the_engines(request_, rules_, engine_.api_minor())) {
    return {};
  }
  auto info = engine_.get("/info");
  if (!info) return container_failed("the container engine", info.error());
  info_ = *std::move(info);
  return check_driver(text_field(info_, "CgroupDriver"));
}

// With systemd's driver the parent must be one of systemd's slices, and the attempt's is none.
ContainerDone<> ContainerSetup::check_driver(const std::string& driver) {
  if (driver == "cgroupfs") return {};
  return container_failed(
      fmt::format("the container engine has the cgroup driver '{}'; jobs need one with "
                  "cgroupfs",
                  driver));
}

// The rules allow the files of an emulated board: they are the job's as its GPUs are.
ContainerDone<> ContainerSetup::find_gpus() {
  gpu_way_ = gpu_way(request_, rules_, info_, engine_.api_minor());
  if (gpu_way_ != GpuWay::kNodes) return {};
  if (is_rootless() && !request_.container.board_files.empty()) {
    return container_failed(
        "a container has emulated GPUs only where the node part has root's rights");
  }
  for (const std::string_view text : request_.container.board_files) {
    auto mount = model::parse_container_mount(text.substr(0, text.size() - 1));
    if (!mount) return container_failed("the emulated board: " + mount.error().message);
    board_files_.push_back(*std::move(mount));
  }
  return gpu_nodes_.find(request_, mounts_folder_begin(cluster(), o_.attempt));
}

ContainerDone<> ContainerSetup::open_mounts() {
  if (is_rootless()) return stages_.look_at(mounts_);
  const std::string begin = mounts_folder_begin(cluster(), o_.attempt);
  if (auto opened = stages_.open(user(), mounts_, begin); !opened) return opened;
  if (auto opened = open_mps(begin); !opened) return opened;
  if (gpu_way_ != GpuWay::kNodes) return {};
  if (!board_files_.empty()) return stages_.open_board_files(user(), board_files_, begin);
  for (const std::string& file : rules_.driver_files) {
    if (auto opened = stages_.open_driver_file(file, begin); !opened) return opened;
  }
  return {};
}

// They are the user's own folders, and the environment names them: what is opened is what the user
// may open.
ContainerDone<> ContainerSetup::open_mps(const std::string& begin) {
  if (request_.mps_gpu.size() <= 1) return {};
  const std::vector<model::ContainerMount> folders =
      mps_mounts(request_.environment, request_.private_folders);
  if (folders.empty()) return container_failed("the job's MPS server has no folder");
  return stages_.open(user(), folders, begin);
}

// What is about to be used is not removed meanwhile.
ContainerDone<> ContainerSetup::get_image() {
  images_.note_use(image(), os::wall_now());
  const auto fetched =
      fetch_image(engine_, {image(), pull(), platform(), [this] { return credentials(); }}, step_);
  step_.tell("");
  if (!fetched) return std::unexpected(fetched.error());
  images_.note_fetch(image(), *fetched, os::wall_now());
  image_ = *fetched;
  if (auto fits = check_host_platform("image " + image(), image_.platform); !fits) return fits;
  return is_rootless() ? ContainerDone<>() : prepare_start();
}

// What the image says of its start and its volumes is looked at here, because the engine would do
// it as root.
ContainerDone<> ContainerSetup::prepare_start() {
  const Json& config = image_.config;
  if (image_.id.empty()) return container_failed("the engine did not report the image's id");
  if (std::string why = error_in_volumes(config); !why.empty())
    return container_failed(fmt::format("image {} has a volume that {}", image(), why));
  const std::string_view asked = request_.container.workdir;
  std::string workdir(asked.substr(0, asked.size() - 1));
  if (workdir.empty()) workdir = workdir_of_image(config);
  if (std::string why = model::error_in_workdir(workdir); !why.empty())
    return container_failed(fmt::format("the directory '{}' {}", workdir, why));
  if (auto made = hold_.make(start_folder(o_.cgroup, o_.attempt), user(), workdir); !made)
    return made;
  start_ = {kStartProgram, kFirstWord, workdir};
  return {};
}

RegistryCredentials ContainerSetup::credentials() {
  return search_credentials(
      {&rules_, user(), image(), signals_.fd(), [this] { return signals_.take(); }});
}

model::ImagePull ContainerSetup::pull() const {
  const auto asked = static_cast<model::ImagePull>(request_.container.pull);
  const bool asks_registry = rules_.always_pulls && asked == model::ImagePull::kMissing;
  return asks_registry ? model::ImagePull::kAlways : asked;
}

std::string ContainerSetup::image() const {
  return std::string(request_.container.image.substr(0, request_.container.image.size() - 1));
}

std::string ContainerSetup::platform() const {
  return std::string(request_.container.platform.substr(0, request_.container.platform.size() - 1));
}

std::string ContainerSetup::cluster() const {
  if (is_rootless()) return o_.cluster;
  const std::string base = o_.cgroup.substr(0, o_.cgroup.rfind('/'));
  return base.substr(base.rfind('/') + 1);
}

node::Identity ContainerSetup::user() const {
  node::Identity user;
  user.uid = o_.uid;
  user.gid = o_.gid;
  user.name = o_.name;
  for (const std::string& group : o_.groups) {
    std::uint32_t number = 0;
    std::from_chars(group.data(), group.data() + group.size(), number);
    user.groups.push_back(number);
  }
  return user;
}

// With root's rights we make them ourselves.
ContainerDone<std::vector<ContainerPlace>> ContainerSetup::places() const {
  std::vector<ContainerPlace> places;
  for (const OpenMount& mount : stages_.opened()) {
    places.push_back({mount.source, mount.target, mount.read_only, 0});
  }
  for (const std::string_view text : request_.container.tmpfs) {
    const auto tmpfs = model::parse_container_tmpfs(text.substr(0, text.size() - 1));
    if (!tmpfs) return container_failed(tmpfs.error().message);
    places.push_back({"", tmpfs->target, false, static_cast<std::uint64_t>(tmpfs->size.value())});
  }
  return places;
}

ContainerPlan ContainerSetup::plan() {
  ContainerPlan plan;
  plan.request = &request_;
  plan.rules = &rules_;
  plan.attempt = o_.attempt;
  plan.cluster = cluster();
  plan.cgroup = engine_cgroup_;
  plan.uid = o_.uid;
  plan.gid = o_.gid;
  if (!is_rootless()) plan.groups = o_.groups;  // no others are in its user namespace
  if (is_rootless()) {
    plan.mounts = stages_.opened();
  } else {
    plan.mounts = hold_.mounts();  // nothing of a user
    plan.start = start_;
    plan.entrypoint = entrypoint_of_image(image_.config);
  }
  plan.has_annotations = engine_.api_minor() >= kAnnotationsMinor;
  set_gpus(plan);
  return plan;
}

void ContainerSetup::set_gpus(ContainerPlan& plan) const {
  plan.gpu_way = gpu_way_;
  if (gpu_way_ != GpuWay::kNodes) return;
  if (!request_.container.board_files.empty()) {
    for (const ContainerDevice& node : gpu_nodes_.found()) {
      plan.mounts.push_back({node.source, node.target, false});
    }
    return;
  }
  plan.gpu_nodes = gpu_nodes_.found();
  if (!is_rootless()) return;
  for (const std::string& file : rules_.driver_files) plan.mounts.push_back({file, file, true});
}

}  // namespace gpu_platform::execution
