#include "execution/container/create_body.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

std::string plain(std::string_view c_text) {
  return std::string(c_text.substr(0, c_text.find('\0')));
}

std::vector<std::string> plain(const std::vector<std::string_view>& c_texts) {
  std::vector<std::string> texts;
  texts.reserve(c_texts.size());
  for (const std::string_view text : c_texts) texts.push_back(plain(text));
  return texts;
}

std::string network_of(const ContainerPlan& plan) {
  switch (static_cast<model::ContainerNetwork>(plan.request->container.network)) {
    case model::ContainerNetwork::kNone:
      return "none";
    case model::ContainerNetwork::kHost:
      return "host";
    case model::ContainerNetwork::kBridge:
      return "bridge";
  }
  return "none";
}

Json mounts_of(const ContainerPlan& plan) {
  Json mounts = Json::array();
  for (const OpenMount& mount : plan.mounts) {
    mounts.push_back({{"Type", "bind"},
                      {"Source", mount.source},
                      {"Target", mount.target},
                      {"ReadOnly", mount.read_only}});
  }
  return mounts;
}

base::Result<Json> tmpfs_of(const ContainerPlan& plan) {
  Json folders = Json::object();
  for (const std::string& text : plain(plan.request->container.tmpfs)) {
    TRY_ASSIGN(const model::ContainerTmpfs tmpfs, model::parse_container_tmpfs(text));
    // Its owner is root, and Podman takes no other; the container has no other user than the job's.
    folders[tmpfs.target] = fmt::format("rw,nosuid,nodev,size={},mode=1777", tmpfs.size.value());
  }
  return folders;
}

// An engine without root's rights may take a limit and not keep it, as it does with cgroup v1.
void put_limits(Json& host, const ContainerPlan& plan) {
  const node::LaunchRequest& request = *plan.request;
  if (request.container.shm_bytes != 0) host["ShmSize"] = request.container.shm_bytes;
  for (const ContainerRules::Ulimit& limit : plan.rules->ulimits) {
    host["Ulimits"].push_back({{"Name", limit.name}, {"Soft", limit.limit}, {"Hard", limit.limit}});
  }
  if (plan.cgroup.empty()) return;
  if (request.memory_bytes != 0) {
    host["Memory"] = request.memory_bytes;
    host["MemorySwap"] = request.memory_bytes;  // the same: no swap
  }
  if (request.max_processes != 0) host["PidsLimit"] = request.max_processes;
  if (!request.near_cpus.empty()) host["CpusetCpus"] = std::string(request.near_cpus);
}

// The engine would look for the program, and make the directory, as root: with ours in between, the
// job's user does. It would also run what the image has for its health, unchecked.
base::Status put_program(Json& body, const ContainerPlan& plan) {
  const node::ContainerRequest& container = plan.request->container;
  const std::string entrypoint = plain(container.entrypoint);
  if (!plan.start.empty()) {
    std::vector<std::string> words = plan.entrypoint;
    if (!entrypoint.empty()) words = {entrypoint};
    for (std::string& word : plain(plan.request->command)) words.push_back(std::move(word));
    body["Entrypoint"] = plan.start;
    body["Cmd"] = std::move(words);
    body["WorkingDir"] = "/";
    body["Healthcheck"] = {{"Test", {"NONE"}}};
    return {};
  }
  if (!entrypoint.empty()) body["Entrypoint"] = {entrypoint};
  if (const std::string workdir = plain(container.workdir); !workdir.empty()) {
    body["WorkingDir"] = workdir;
  }
  TRY_ASSIGN(Json tmpfs, tmpfs_of(plan));
  if (!tmpfs.empty()) body["HostConfig"]["Tmpfs"] = std::move(tmpfs);
  return {};
}

// The annotations are labels, too, by which an engine's own tools list containers. Ours come last:
// no annotation has their place.
void put_annotations(Json& body, const ContainerPlan& plan) {
  Json annotations = Json::object();
  for (const std::string& text : plain(plan.request->container.annotations)) {
    const std::size_t equals = std::min(text.find('='), text.size());
    annotations[text.substr(0, equals)] = text.substr(std::min(equals + 1, text.size()));
  }
  if (annotations.empty()) return;
  Json labels = annotations;
  labels.update(body["Labels"]);
  body["Labels"] = std::move(labels);
  if (plan.has_annotations) body["HostConfig"]["Annotations"] = std::move(annotations);
}

// Nothing in it comes from the request that the rules or the checks of a specification have not
// seen: no privileges, no namespace of the host but a network that is allowed.
Json host_config(const ContainerPlan& plan) {
  Json host = {
      {"NetworkMode", network_of(plan)},
      {"Privileged", false},
      {"IpcMode", "private"},
      {"CapDrop", {"ALL"}},
      {"SecurityOpt", {"no-new-privileges"}},
      {"AutoRemove", false},  // its exit code would be lost
      {"RestartPolicy", {{"Name", "no"}}},
      {"LogConfig", {{"Type", "none"}}},  // the output is the supervisor's to keep
      {"Mounts", mounts_of(plan)},
  };
  if (plan.cgroup.empty()) {
    host["UsernsMode"] = "keep-id";  // else its own user would be the engine's root there
  } else {
    host["CgroupParent"] = plan.cgroup;
  }
  if (plan.rules->is_read_only) host["ReadonlyRootfs"] = true;
  if (!plan.rules->writable.empty()) host["StorageOpt"] = {{"size", plan.rules->writable}};
  if (!plan.rules->capabilities.empty()) host["CapAdd"] = plan.rules->capabilities;
  if (!plan.groups.empty()) host["GroupAdd"] = plan.groups;
  put_limits(host, plan);
  return host;
}

// Volumes of the image may be there besides, and the folders in memory.
std::string error_in_mounts(const Json& asked, const Json& made) {
  for (const Json& mount : asked) {
    const std::string target = mount["Target"];
    const auto is_it = [&](const Json& one) { return text_field(one, "Destination") == target; };
    const auto found = std::ranges::find_if(made, is_it);
    if (found == made.end()) return fmt::format("the engine dropped the mount at {}", target);
    if (mount["ReadOnly"] == true && flag_field(*found, "RW")) {
      return fmt::format("the engine made the mount at {} writable", target);
    }
  }
  return {};
}

std::string error_in_annotations(const Json& asked, const Json& made) {
  for (const auto& [key, value] : asked.items()) {
    if (made.value(key, Json()) != value) {
      return fmt::format("the engine dropped the annotation {}", key);
    }
  }
  return {};
}

// The value of a line "Name:\tvalue" of /proc/PID/status.
std::string_view status_value(std::string_view status, std::string_view name) {
  std::size_t at = 0;
  while (at < status.size()) {
    const std::size_t end = std::min(status.find('\n', at), status.size());
    const std::string_view line = status.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(":\t")) {
      return line.substr(name.size() + 2);
    }
    at = end + 1;
  }
  return {};
}

// The numbers of a line of /proc/PID/status; nothing: there are others than numbers.
std::optional<std::vector<std::uint32_t>> status_numbers(std::string_view status,
                                                         std::string_view name) {
  std::vector<std::uint32_t> numbers;
  std::string_view rest = status_value(status, name);
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (rest.empty()) return numbers;
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    numbers.push_back(number);
    rest.remove_prefix(word.size());
  }
}

// The real, the effective, the saved and the file system's.
std::string error_in_ids(std::string_view status, std::string_view name, std::uint32_t asked) {
  const auto ids = status_numbers(status, name);
  if (!ids || ids->size() != 4) return fmt::format("its {} cannot be read", name);
  const auto other = std::ranges::find_if(*ids, [&](auto id) { return id != asked; });
  if (other == ids->end()) return {};
  return fmt::format("the engine started it as {} {} and not {}", name == "Uid" ? "user" : "group",
                     *other, asked);
}

// Some engines add the group itself.
std::string error_in_groups(std::string_view status, const ContainerPlan& plan) {
  const auto groups = status_numbers(status, "Groups");
  if (!groups) return "its groups cannot be read";
  std::set<std::uint32_t> asked{plan.gid};
  for (const std::string& text : plan.groups) {
    std::uint32_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    asked.insert(number);
  }
  for (const std::uint32_t group : *groups) {
    if (!asked.contains(group)) return fmt::format("the engine started it in group {}", group);
  }
  for (const std::uint32_t group : asked) {
    const bool is_there = group == plan.gid || std::ranges::find(*groups, group) != groups->end();
    if (!is_there) return fmt::format("the engine started it without group {}", group);
  }
  return {};
}

}  // namespace

base::Result<Json> create_body(const ContainerPlan& plan) {
  const node::LaunchRequest& request = *plan.request;
  const node::ContainerRequest& container = request.container;
  Json body = {
      {"Image", plain(container.image)},
      {"Cmd", plain(request.command)},
      {"Env", container_environment(request, plan.gpu_way)},
      {"User", fmt::format("{}:{}", plan.uid, plan.gid)},
      {"Labels",
       {{"gpu-platform.cluster", plan.cluster},
        {"gpu-platform.job", plan.attempt.substr(0, plan.attempt.find('-'))},
        {"gpu-platform.attempt", plan.attempt}}},
      {"AttachStdout", true},
      {"AttachStderr", true},
      {"Tty", request.terminal.has_value()},
      {"OpenStdin", request.takes_input},
      {"AttachStdin", request.takes_input},
      {"StdinOnce", request.takes_input},
      {"HostConfig", host_config(plan)},
  };
  TRY(put_program(body, plan));
  put_annotations(body, plan);
  put_gpus(body, plan.gpu_way, request, plan.gpu_nodes);
  return body;
}

std::string difference(const Json& asked, const Json& made) {
  if (!made.is_object() || !made.contains("HostConfig") || !made["HostConfig"].is_object()) {
    return "the engine did not report what it has made";
  }
  const Json& host = made["HostConfig"];
  const Json& wanted = asked["HostConfig"];
  if (host.value("Privileged", false)) return "the engine made it privileged";
  for (const char* const name : {"ReadonlyRootfs", "StorageOpt"}) {
    if (!wanted.contains(name) || host.value(name, Json()) == wanted[name]) continue;
    return fmt::format("the engine cannot limit what a container writes ({} {})", name,
                       wanted[name].dump());
  }
  for (const char* const name : {"CgroupParent", "NetworkMode", "Memory", "PidsLimit", "ShmSize"}) {
    if (!wanted.contains(name) || !host.contains(name)) continue;
    if (wanted[name] != host[name]) {
      return fmt::format("the engine made {} {} and not {}", name, host[name].dump(),
                         wanted[name].dump());
    }
  }
  for (const char* const name : {"PidMode", "IpcMode", "UTSMode"}) {
    if (host.value(name, Json()) == "host")
      return fmt::format("the engine made {} the host's", name);
  }
  if (std::string gpu = dropped_gpus(wanted, host); !gpu.empty()) {
    return fmt::format("the engine gives the container no GPU {}; see 'gpus' in the site's rules",
                       gpu);
  }
  const Json annotations = field(host, "Annotations");
  if (wanted.contains("Annotations")) {
    std::string why = error_in_annotations(wanted["Annotations"],
                                           annotations.is_object() ? annotations : Json::object());
    if (!why.empty()) return why;
  }
  return error_in_mounts(wanted["Mounts"], field(made, "Mounts"));
}

std::string error_in_process(std::string_view status, const ContainerPlan& plan) {
  if (std::string why = error_in_ids(status, "Uid", plan.uid); !why.empty()) return why;
  if (std::string why = error_in_ids(status, "Gid", plan.gid); !why.empty()) return why;
  // Those of a user namespace are the engine's own numbers.
  const bool is_rootless = plan.cgroup.empty();
  std::string why = is_rootless ? "" : error_in_groups(status, plan);
  if (!why.empty()) return why;
  if (status_value(status, "NoNewPrivs") != "1")
    return "the engine started it without no_new_privs";
  const bool is_filtered = status_value(status, "Seccomp") == "2";
  if (plan.rules->needs_seccomp && !is_filtered) {
    return "the engine filters no system calls of it (the rule 'seccomp off' allows that)";
  }
  for (const char* const set : {"CapEff", "CapPrm", "CapAmb"}) {
    const std::string_view held = status_value(status, set);
    if (plan.uid != 0 && held.find_first_not_of('0') != std::string_view::npos) {
      return fmt::format("the engine started it with capabilities {}", held);
    }
  }
  return {};
}

}  // namespace gpu_platform::execution
