#include "hardware/host_file/host_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "hardware/cpu_list.h"

namespace gpu_platform::hardware {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using nlohmann::json;

constexpr std::int64_t kVersion = 1;

Result<std::int64_t> integer(const json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer() || *found < 0) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{}: {} is not a number of 0 or more", path, key));
  }
  return found->get<std::int64_t>();
}

// A number of 0 or more that may be missing.
Result<std::optional<std::uint32_t>> optional_number(const json& object, const char* key,
                                                     const std::string& path) {
  if (!object.contains(key)) return std::optional<std::uint32_t>();
  TRY_ASSIGN(const std::int64_t value, integer(object, key, path));
  if (value > kMaxCpus) {
    return fail(ErrorCode::kDataLoss, fmt::format("{}: {} is more than {}", path, key, kMaxCpus));
  }
  return std::optional(static_cast<std::uint32_t>(value));
}

Result<std::string> text(const json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    return fail(ErrorCode::kDataLoss, fmt::format("{}: {} is not a text", path, key));
  }
  return found->get<std::string>();
}

Result<NumaNode> read_numa_node(const json& object, const std::string& path) {
  if (!object.is_object()) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{}: numa_nodes has an entry that is not an object", path));
  }
  NumaNode node;
  TRY_ASSIGN(const std::int64_t id, integer(object, "id", path));
  TRY_ASSIGN(const std::string cpus, text(object, "cpus", path));
  TRY_ASSIGN(const std::int64_t memory, integer(object, "memory_bytes", path));
  const auto parsed = parse_cpu_list(cpus);
  if (!parsed || parsed->empty()) {
    return fail(ErrorCode::kDataLoss, fmt::format("{}: \"{}\" is not a list of CPUs", path, cpus));
  }
  TRY_ASSIGN(node.socket, optional_number(object, "socket", path));
  node.id = static_cast<std::uint32_t>(id);
  node.cpus = *parsed;
  node.memory = base::Bytes(memory);
  return node;
}

class HostFile final : public HostTopology {
 public:
  HostFile(std::string path, std::string boot_id)
      : path_(std::move(path)), boot_id_(std::move(boot_id)) {}

  Result<HostDescription> describe() override {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream contents;
    contents << in.rdbuf();
    if (!in) return fail(ErrorCode::kUnavailable, fmt::format("{} cannot be read", path_));
    return parse_host_file(contents.str(), path_, boot_id_);
  }

  std::optional<std::uint32_t> numa_node_of(std::string_view) override { return std::nullopt; }

 private:
  const std::string path_;
  const std::string boot_id_;
};

}  // namespace

Result<HostDescription> parse_host_file(const std::string& contents, const std::string& path,
                                        const std::string& boot_id) {
  const json file = json::parse(contents, nullptr, false);
  if (!file.is_object())
    return fail(ErrorCode::kDataLoss, fmt::format("{} is not a JSON object", path));
  TRY_ASSIGN(const std::int64_t version, integer(file, "version", path));
  if (version != kVersion) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{} has version {}, not {}", path, version, kVersion));
  }
  HostDescription host;
  host.boot_id = boot_id;
  TRY_ASSIGN(host.name, text(file, "host_name", path));
  TRY_ASSIGN(const std::int64_t memory, integer(file, "memory_bytes", path));
  host.memory = base::Bytes(memory);
  TRY_ASSIGN(host.sockets, optional_number(file, "sockets", path));
  TRY_ASSIGN(host.cores, optional_number(file, "cores", path));
  const auto nodes = file.find("numa_nodes");
  if (nodes == file.end() || !nodes->is_array() || nodes->empty()) {
    return fail(ErrorCode::kDataLoss, fmt::format("{}: numa_nodes is not a list of nodes", path));
  }
  for (const json& object : *nodes) {
    TRY_ASSIGN(NumaNode node, read_numa_node(object, path));
    host.cpus.insert(host.cpus.end(), node.cpus.begin(), node.cpus.end());
    host.numa_nodes.push_back(std::move(node));
  }
  std::ranges::sort(host.cpus);
  if (std::ranges::adjacent_find(host.cpus) != host.cpus.end()) {
    return fail(ErrorCode::kDataLoss, fmt::format("{}: a CPU is in two NUMA nodes", path));
  }
  std::ranges::sort(host.numa_nodes, {}, &NumaNode::id);
  return host;
}

std::unique_ptr<HostTopology> open_host_file(std::string path, std::string boot_id) {
  return std::make_unique<HostFile>(std::move(path), std::move(boot_id));
}

}  // namespace gpu_platform::hardware
