#include "execution/process/job_request.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "execution/job_variables.h"
#include "execution/process/mps_sets.h"
#include "execution/process/time_slice_sets.h"
#include "model/job_spec.h"
#include "model/output_pattern.h"
#include "node/protocol.h"

namespace gpu_platform::execution {

namespace {

void set_login_defaults(Variables& variables, const UserIdentity& user) {
  variables.emplace("HOME", user.home.empty() ? "/" : user.home);
  variables.emplace("SHELL", user.shell.empty() ? "/bin/sh" : user.shell);
  if (user.name.empty()) return;
  variables.emplace("USER", user.name);
  variables.emplace("LOGNAME", user.name);
}

// In a container there are no other GPUs, and an MPS server has one alone. An emulated board
// outside of a container has no device files that the kernel could guard: its NVML shows all GPUs.
bool sees_others(const StartOrder& order, const LaunchNode& node, const CudaOptions& cuda) {
  const bool is_hidden = cuda.hides_others || is_mps_client(order);
  return order.spec->image.empty() && (node.emulated || !is_hidden);
}

std::vector<std::string> cuda_devices_on(const StartOrder& order, const LaunchNode& node,
                                         const CudaOptions& cuda) {
  return cuda_devices(node.gpus, cuda.names, sees_others(order, node, cuda));
}

void append_all(std::vector<std::string>& to, std::vector<std::string> from) {
  std::ranges::move(from, std::back_inserter(to));
}

void set_ours(Variables& variables, const StartOrder& order, const CudaOptions& cuda) {
  std::vector<std::string> devices;
  std::vector<std::string> uuids;
  std::vector<std::string> nodes;
  std::vector<std::uint32_t> indices;
  std::uint32_t cpus = 0;
  base::Bytes memory;
  for (const LaunchNode& node : order.nodes) {
    nodes.push_back(node.node_name);
    cpus += node.cpus;
    memory += node.memory;
    append_all(devices, cuda_devices_on(order, node, cuda));
    append_all(uuids, uuids_of(node.gpus));
    std::ranges::copy(indices_of(node.gpus), std::back_inserter(indices));
  }
  // Empty, not absent, for a CPU job: absent would mean every GPU of the machine.
  variables["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(devices, ","));
  variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  set_identity(variables, order);
  variables["GPU_PLATFORM_NODE"] = fmt::format("{}", fmt::join(nodes, ","));
  variables["GPU_PLATFORM_GPUS"] = fmt::format("{}", fmt::join(indices, ","));
  variables["GPU_PLATFORM_GPU_UUIDS"] = fmt::format("{}", fmt::join(uuids, ","));
  variables["GPU_PLATFORM_CPUS"] = fmt::format("{}", cpus);
  variables["GPU_PLATFORM_MEMORY_BYTES"] = fmt::format("{}", memory.value());
  set_share(variables, order);
}

std::string state_of_board(const LaunchNode& node, const BoardPlaces& places) {
  return fmt::format("{}/{}/state", places.boards, node.node_name);
}

void put_first(std::string& list, const std::string& folder) {
  list = list.empty() ? folder : folder + ":" + list;
}

// Paths of the user's own are kept behind the emulator's.
void set_board(Variables& variables, const StartOrder& order, const BoardPlaces& places) {
  if (places.boards.empty() || order.nodes.empty() || !order.nodes.front().emulated) return;
  variables["GPU_EMULATOR_STATE"] = state_of_board(order.nodes.front(), places);
  std::vector<std::string_view> names;
  for (const LaunchNode& node : order.nodes) names.push_back(node.node_name);
  variables["GPU_PLATFORM_EMULATED_NODES"] = fmt::format("{}", fmt::join(names, ","));
  put_first(variables["LD_LIBRARY_PATH"], places.library);
  // A container has the device nodes of its own GPUs alone, and its NVML knows of no others. What
  // PATH is in it the image says.
  if (!order.spec->image.empty()) {
    variables["GPU_EMULATOR_DEVICES"] = "/dev";
  } else if (!places.programs.empty()) {
    // If there is no PATH, programs are looked for in these.
    std::string& programs = variables.emplace("PATH", "/usr/local/bin:/usr/bin:/bin").first->second;
    put_first(programs, places.programs);
  }
}

constexpr std::string_view kMpsVariables = "CUDA_MPS_";
constexpr std::string_view kMpsPipes = "CUDA_MPS_PIPE_DIRECTORY";

// A job submitted from within a client of an MPS server would be a client of that server, which is
// on another GPU or has the limits of other jobs.
void drop_outer_mps(Variables& variables) {
  const auto pipes = variables.find(kMpsPipes);
  if (pipes == variables.end() || !pipes->second.starts_with(node::kMpsRoot)) return;
  std::erase_if(variables,
                [](const auto& variable) { return variable.first.starts_with(kMpsVariables); });
}

// For the server the GPU is its device 0.
void set_mps(Variables& variables, const MpsClient& client) {
  variables[std::string(kMpsPipes)] = client.folder + "/pipe";
  variables["CUDA_MPS_LOG_DIRECTORY"] = client.folder + "/log";
  variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = fmt::format("{}", client.percent);
  variables["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt::format("0={}M", client.memory_mib);
}

std::uint64_t milliseconds_up(base::Duration d) {
  return d.value() <= 0 ? 0 : static_cast<std::uint64_t>((d.value() + 999'999) / 1'000'000);
}

// Sets the variables that are the same for all processes; a port that its user chose stays. All
// nodes of a job that this engine starts are on this host.
void set_gang(Variables& variables, const StartOrder& order) {
  std::vector<std::string> nodes;
  std::size_t gpus = 0;
  for (const LaunchNode& node : order.nodes) {
    nodes.push_back(node.node_name);
    gpus += node.gpus.size();
  }
  variables.emplace("MASTER_ADDR", "127.0.0.1");
  variables.emplace("MASTER_PORT", fmt::format("{}", gang_port(order.attempt)));
  variables["NNODES"] = fmt::format("{}", nodes.size());
  variables["GPU_PLATFORM_NODELIST"] = fmt::format("{}", fmt::join(nodes, ","));
  if (order.spec->per_gpu) variables["WORLD_SIZE"] = fmt::format("{}", gpus);
}

// What the variables of a job's processes are made from.
struct ProcessFacts {
  const StartOrder& order;
  const BoardPlaces& places;
  const CudaOptions& cuda;
};

// Returns the variables that differ between processes, as NAME=VALUE lines.
std::string rank_variables(const ProcessFacts& facts, std::size_t node_rank) {
  const LaunchNode& node = facts.order.nodes[node_rank];
  const BoardPlaces& places = facts.places;
  std::string variables = fmt::format(
      "NODE_RANK={}\nGPU_PLATFORM_NODE={}\nGPU_PLATFORM_GPUS={}\nGPU_PLATFORM_GPU_UUIDS={}\n"
      "CUDA_VISIBLE_DEVICES={}",
      node_rank, node.node_name, fmt::join(indices_of(node.gpus), ","),
      fmt::join(uuids_of(node.gpus), ","),
      fmt::join(cuda_devices_on(facts.order, node, facts.cuda), ","));
  if (node.emulated && !places.boards.empty()) {
    variables += fmt::format("\nGPU_EMULATOR_STATE={}", state_of_board(node, places));
  }
  return variables;
}

std::vector<std::string> ranks_of(const ProcessFacts& facts) {
  const StartOrder& order = facts.order;
  std::vector<std::string> ranks;
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    const LaunchNode& node = order.nodes[i];
    const std::string of_node = rank_variables(facts, i);
    if (!order.spec->per_gpu) {
      ranks.push_back(of_node);
      continue;
    }
    for (std::size_t local = 0; local < node.gpus.size(); ++local) {
      ranks.push_back(fmt::format("{}\nRANK={}\nLOCAL_RANK={}\nLOCAL_WORLD_SIZE={}", of_node,
                                  ranks.size(), local, node.gpus.size()));
    }
  }
  return ranks;
}

// The command, or what starts it once for each rank (node/ranks).
std::vector<std::string> command_of(const StartOrder& order, const RequestOptions& options) {
  const std::vector<std::string>& own = order.spec->command;
  if (!model::has_ranks(*order.spec)) return own;
  std::vector<std::string> command = {options.node_program, "ranks",
                                      fmt::format("{}", milliseconds_up(order.stop_grace))};
  append_all(command, ranks_of({order, options.board_places, options.cuda}));
  command.emplace_back("--");
  command.insert(command.end(), own.begin(), own.end());
  return command;
}

// One process on the first of several nodes, which starts those on the others.
bool is_led(const StartOrder& order) {
  return order.spec->first_node_only && order.nodes.size() > 1;
}

// What differs between the nodes, for that process: GPU_PLATFORM_NODE_1_NAME is what NAME is for a
// process on the second node. Its own variables are those of the first.
void set_parts(Variables& variables, const ProcessFacts& facts) {
  for (std::size_t i = 0; i < facts.order.nodes.size(); ++i) {
    const LaunchNode& node = facts.order.nodes[i];
    const std::string lines = fmt::format("{}\nGPU_PLATFORM_CPUS={}\nGPU_PLATFORM_MEMORY_BYTES={}",
                                          rank_variables(facts, i), node.cpus, node.memory.value());
    std::string_view rest = lines;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      const std::size_t equals = line.find('=');
      const std::string name(line.substr(0, equals));
      const std::string value(line.substr(equals + 1));
      variables[fmt::format("GPU_PLATFORM_NODE_{}_{}", i, name)] = value;
      if (i == 0) variables[name] = value;
    }
  }
}

// Views of texts with the NUL that ends each std::string.
std::vector<std::string_view> c_views(const std::vector<std::string>& texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (const std::string& text : texts) views.emplace_back(text.c_str(), text.size() + 1);
  return views;
}

void append(std::string& list, std::string_view entry) {
  if (entry.empty()) return;
  if (!list.empty()) list += ',';
  list += entry;
}

// The texts that the request has views of.
struct NodeTexts {
  std::string near_cpus;
  std::string near_nodes;
};

NodeTexts texts_of(const StartOrder& order) {
  NodeTexts texts;
  for (const LaunchNode& node : order.nodes) {
    if (node.emulated) continue;  // the board's CPUs are not this host's
    for (const model::NumaNode& numa : node.near) {
      append(texts.near_cpus, numa.cpus);
      append(texts.near_nodes, fmt::format("{}", numa.id));
    }
  }
  return texts;
}

// Memory is limited where the job asked for an amount; what it is given without asking is a share
// for planning.
void set_bounds(node::LaunchRequest& request, const StartOrder& order) {
  if (order.spec->request.memory) {
    request.memory_bytes = static_cast<std::uint64_t>(order.spec->request.memory->value()) *
                           std::max<std::size_t>(1, order.nodes.size());
  }
  for (const LaunchNode& node : order.nodes) {
    request.cpus += node.cpus;
    for (const LaunchGpu& gpu : node.gpus) {
      request.devices.push_back({node::kGpuMajor, gpu.info.minor});
    }
  }
}

std::string_view c_view(const std::string& text) {
  return {text.c_str(), text.size() + 1};
}

// The GPUs as a container engine needs them, the files that stand for an emulated board, and the
// annotations as one text each.
struct ContainerTexts {
  std::vector<std::string> annotations;
  std::vector<std::string> gpus;
  std::vector<std::string> board_files;
};

ContainerTexts container_texts(const StartOrder& order, const BoardPlaces& places) {
  ContainerTexts texts;
  for (const model::Label& annotation : order.spec->annotations) {
    texts.annotations.push_back(annotation.key + '=' + annotation.value);
  }
  for (const LaunchNode& node : order.nodes) {
    for (const LaunchGpu& gpu : node.gpus) texts.gpus.push_back(gpu.info.uuid);
    if (!node.emulated || places.boards.empty()) continue;
    const std::string state = state_of_board(node, places);
    texts.board_files.push_back(fmt::format("{0}:{0}", state));
    texts.board_files.push_back(fmt::format("{0}:{0}:ro", places.library));
  }
  return texts;
}

// With views of the specification's texts.
node::ContainerRequest container_of(const model::JobSpec& spec, const ContainerTexts& texts) {
  node::ContainerRequest container;
  if (spec.image.empty()) return container;
  container.gpus = c_views(texts.gpus);
  container.board_files = c_views(texts.board_files);
  container.image = c_view(spec.image);
  container.mounts = c_views(spec.mounts);
  container.tmpfs = c_views(spec.tmpfs);
  container.shm_bytes = static_cast<std::uint64_t>(spec.shm_size.value());
  container.network = static_cast<std::uint8_t>(spec.container_network);
  container.pull = static_cast<std::uint8_t>(spec.pull);
  container.entrypoint = c_view(spec.entrypoint);
  container.workdir = c_view(spec.container_workdir);
  container.platform = c_view(spec.container_platform);
  container.annotations = c_views(texts.annotations);
  return container;
}

// A name alone is a file of the working directory, never of PATH; empty stays empty.
std::string path_in_workdir(const std::string& path) {
  return path.empty() || path.find('/') != std::string::npos ? path : "./" + path;
}

}  // namespace

std::vector<std::string> job_environment(const StartOrder& order, std::string_view submitted,
                                         const UserIdentity& user, const BoardPlaces& places,
                                         const CudaOptions& cuda,
                                         const std::optional<MpsClient>& mps) {
  Variables variables = parse_variables(submitted);
  drop_outer_mps(variables);
  // An image has its own PATH, shell and home.
  if (order.spec->image.empty()) set_login_defaults(variables, user);
  if (order.spec->terminal) variables.emplace("TERM", "xterm");
  set_ours(variables, order, cuda);
  if (mps) set_mps(variables, *mps);
  if (order.spec->per_gpu || model::is_gang(order.spec->request)) set_gang(variables, order);
  if (is_led(order)) set_parts(variables, {order, places, cuda});
  set_board(variables, order, places);
  return entries_of(variables);
}

base::Result<std::string> launch_request(const StartOrder& order, std::string_view submitted,
                                         const UserIdentity& user, const RequestOptions& options) {
  const model::JobSpec& spec = *order.spec;
  const std::vector<std::string> environment =
      job_environment(order, submitted, user, options.board_places, options.cuda, options.mps);
  const std::string workdir = spec.workdir.empty() ? "/" : spec.workdir;

  node::LaunchRequest request;
  request.boot_id = order.boot_id;
  request.user.uid = user.uid;
  request.umask = spec.umask;
  const std::vector<std::string> command = command_of(order, options);
  request.command = c_views(command);
  request.environment = c_views(environment);
  request.workdir = {workdir.c_str(), workdir.size() + 1};
  const std::string first_node =
      order.nodes.empty() ? std::string() : order.nodes.front().node_name;
  const model::OutputNames names{order.attempt.job, spec.name,      spec.user,
                                 first_node,        order.array_id, order.array_index};
  const std::string output = model::expand_output(spec.output, names);
  const std::string error = model::expand_output(spec.error, names);
  request.output = {output.c_str(), output.size() + 1};
  request.error = {error.c_str(), error.size() + 1};
  request.truncate_output = spec.truncate_output;
  if (spec.limit_signal) {
    request.limit_signal = spec.limit_signal->signal;
    request.limit_signal_before_ms = milliseconds_up(spec.limit_signal->before);
    request.limit_signal_first_only = spec.limit_signal->first_process_only;
  }
  request.takes_turns = takes_turns(order);
  const MpsClient mps = options.mps.value_or(MpsClient());
  request.mps_gpu = c_view(mps.gpu);
  request.mps_program = c_view(mps.program);
  request.takes_input = spec.takes_input;
  request.terminal = spec.terminal;
  request.idle_timeout_ms = milliseconds_up(spec.idle_timeout.value_or(base::Duration()));
  request.time_limit_ms = milliseconds_up(order.time_limit);
  request.grace_ms = milliseconds_up(order.stop_grace);
  request.output_file_bytes = options.output_file_bytes;
  request.output_files = options.output_files;
  request.output_limit_bytes = options.output_limit_bytes;

  request.max_processes = options.max_processes;
  request.private_folders = options.private_folders;
  request.hide_processes = options.private_folders && options.hide_processes;
  request.start_timeout_ms = options.start_timeout_ms;
  const NodeTexts texts = texts_of(order);
  set_bounds(request, order);
  request.near_cpus = texts.near_cpus;
  request.near_nodes = texts.near_nodes;

  const std::string prolog = path_in_workdir(spec.prolog);
  const std::string epilog = path_in_workdir(spec.epilog);
  request.prolog = {prolog.c_str(), prolog.size() + 1};
  request.epilog = {epilog.c_str(), epilog.size() + 1};

  const ContainerTexts container = container_texts(order, options.board_places);
  request.container = container_of(spec, container);

  std::string encoded = node::encode_request(request);
  if (encoded.size() > node::kMaxRequest) {
    return base::fail(base::ErrorCode::kResourceExhausted,
                      fmt::format("command and environment together take {} bytes, at most {} can "
                                  "be handed to a job",
                                  encoded.size(), node::kMaxRequest));
  }
  if (!node::decode_request(encoded)) {
    return base::invalid("command", "the command is empty, or a text of it contains a NUL");
  }
  return encoded;
}

}  // namespace gpu_platform::execution
