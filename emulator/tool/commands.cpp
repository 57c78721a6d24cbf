#include "tool/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/parse.h"
#include "register/registration.h"
#include "tool/faults.h"
#include "tool/layout.h"
#include "tool/mig_commands.h"
#include "tool/node_files.h"
#include "tool/parse.h"
#include "tool/show.h"

namespace gpu_emulator {
namespace {

namespace fs = std::filesystem;
using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::invalid;

std::vector<std::string> names_in(const fs::path& dir, std::string_view extension) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    if (extension.empty() ? at->is_directory() : at->path().extension() == extension) {
      names.push_back(extension.empty() ? at->path().filename() : at->path().stem());
    }
  }
  std::ranges::sort(names);
  return names;
}

std::string nodes_dir(const std::string& data_dir) {
  return data_dir + "/emulated";
}

std::string state_path(const std::string& data_dir, const std::string& node) {
  return fmt::format("{}/{}/{}", nodes_dir(data_dir), node, kStateName);
}

Result<StateFile> open_node(const std::string& data_dir, const std::string& node,
                            StateFile::Access access) {
  if (!is_node_name(node)) {
    return invalid("node", fmt::format("\"{}\" is not a node name", node));
  }
  auto file = StateFile::open(state_path(data_dir, node), access);
  if (!file && file.error().code == ErrorCode::kNotFound) {
    const auto known = names_in(nodes_dir(data_dir), "");
    return fail(ErrorCode::kNotFound,
                fmt::format("no emulated node \"{}\" under {}; there {}", node, nodes_dir(data_dir),
                            known.empty() ? std::string("are none")
                                          : fmt::format("are {}", fmt::join(known, ", "))));
  }
  return file;
}

Result<std::vector<std::string>> chosen_nodes(const std::string& data_dir,
                                              const std::string& node) {
  if (!node.empty()) return std::vector{node};
  auto nodes = names_in(nodes_dir(data_dir), "");
  if (nodes.empty()) {
    return fail(ErrorCode::kNotFound,
                fmt::format("no emulated nodes under {}", nodes_dir(data_dir)));
  }
  return nodes;
}

Status inject_quietly(StateFile& file, std::uint32_t gpu, const InjectOptions& options) {
  switch (options.fault) {
    case Fault::kXid:
      break;
    case Fault::kEcc: {
      const std::string& kind = options.words.empty() ? std::string() : options.words.front();
      if (kind != "corrected" && kind != "uncorrected") {
        return invalid("ecc", fmt::format("\"{}\" is not a kind of ECC error; corrected and "
                                          "uncorrected are",
                                          kind));
      }
      return inject_ecc(file, gpu, kind == "corrected" ? kEccCorrected : kEccUncorrected,
                        options.value);
    }
    case Fault::kTemperature:
      return inject_temperature(file, gpu, options.value);
    case Fault::kThrottle: {
      TRY_ASSIGN(const std::uint64_t reasons, parse_throttle(options.words));
      return inject_throttle(file, gpu, reasons);
    }
    case Fault::kRecovery: {
      TRY_ASSIGN(const std::uint32_t action,
                 parse_recovery_action(options.words.empty() ? "" : options.words.front()));
      return inject_recovery(file, gpu, action);
    }
    case Fault::kReplays:
      return inject_replays(file, gpu, options.value);
    case Fault::kLost:
      return inject_lost(file, gpu);
    case Fault::kVanish:
      return inject_listing(file, gpu, Listing::kNot);
    case Fault::kReturnLast:
      return inject_listing(file, gpu, Listing::kLast);
    case Fault::kSlow:
      return inject_slow(file, gpu, options.value);
    case Fault::kWork:
      return inject_work(file, gpu, options.value);
    case Fault::kRemapPending:
      return inject_remap_pending(file, gpu, options.value);
    case Fault::kRemapFailed:
      return inject_remap_failed(file, gpu);
    case Fault::kRetired:
      return inject_retired(file, gpu, options.value);
    case Fault::kPcieWidth:
      return inject_pcie_width(file, gpu, options.value);
    case Fault::kNvlinkErrors:
      return inject_nvlink_errors(file, gpu, options.value);
    case Fault::kNvlinkDown:
      return inject_nvlink_down(file, gpu, options.value);
    case Fault::kRestartedCounters:
      return inject_restarted_counters(file, gpu);
    case Fault::kMemoryTemperature:
      return inject_memory_temperature(file, gpu, options.value);
    case Fault::kResetFail:
      return inject_reset_fault(file, gpu, ResetFault::kFails);
    case Fault::kResetHang:
      return inject_reset_fault(file, gpu, ResetFault::kHangs);
    case Fault::kHang:
      return inject_hang(file, gpu, options.value);
    case Fault::kMigCreateFails:
      return inject_failing_gpu_instances(file, gpu, options.value);
    case Fault::kMigComputeFails:
      return inject_failing_compute_instances(file, gpu, options.value);
  }
  return {};
}

Status clear_gpu(StateFile& file, std::uint32_t gpu, std::uint64_t pid) {
  TRY(file.clear(gpu, pid));
  return pid == 0 ? clear_faults(file, gpu) : Status{};
}

Result<std::string> registered(Registration what, const RegisterOptions& options) {
  const RegistrationResult result =
      change_registration(what, options.state_path.c_str(), options.uuids.c_str(), options.pid);
  switch (result.exit_code) {
    case kExitDone:
      return std::string();
    case kExitUnknownGpu:
      return fail(ErrorCode::kNotFound, result.message);
    case kExitRefused:
      return fail(ErrorCode::kResourceExhausted, result.message);
    default:
      return fail(ErrorCode::kInternal, result.message);
  }
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

Result<GpuPlace> parse_gpu_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    const auto index = parse_number(std::string_view(text).substr(colon + 1));
    const std::string node = text.substr(0, colon);
    if (index && *index < kMaxGpus && is_node_name(node)) {
      return GpuPlace{node, static_cast<std::uint32_t>(*index)};
    }
  }
  return invalid("gpu", fmt::format("--gpu \"{}\" is not NODE:INDEX, such as dgx-h100-1:0", text));
}

Result<std::string> list_boards(const std::string& boards_dir, ShowAs as) {
  std::string out;
  nlohmann::ordered_json json{{"boards", nlohmann::ordered_json::array()}};
  for (const std::string& name : names_in(boards_dir, ".yaml")) {
    TRY_ASSIGN(const Board board, load_board(fmt::format("{}/{}.yaml", boards_dir, name)));
    out += fmt::format("{:<16} {}\n", name, board.description);
    json["boards"].push_back({{"board", name},
                              {"description", board.description},
                              {"gpus", board.gpus.size()},
                              {"driver_version", board.driver_version}});
  }
  if (out.empty())
    return fail(ErrorCode::kNotFound, fmt::format("no board files in {}", boards_dir));
  return as == ShowAs::kJson ? json.dump(2) + "\n" : out;
}

Result<std::string> create(const std::string& boards_dir, const CreateOptions& options) {
  const auto known = names_in(boards_dir, ".yaml");
  if (std::ranges::find(known, options.board) == known.end()) {
    return fail(ErrorCode::kNotFound, fmt::format("no board \"{}\"; there are {}", options.board,
                                                  fmt::join(known, ", ")));
  }
  const std::string path = fmt::format("{}/{}.yaml", boards_dir, options.board);
  TRY_ASSIGN(const Board board, load_board(path));
  if (board.name != options.board) {
    return invalid("board",
                   fmt::format("{}: board: \"{}\" is not the file's name", path, board.name));
  }
  TRY(create_node(board, options.node_name, options.dir));
  return std::string();
}

namespace {

// The folder below with the library of the board's driver branch, where there is one: it lacks the
// symbols that a program which looks them up must not find.
std::string library_dir_of(const std::string& library_dir, const BoardState& state) {
  const std::string branch = fmt::format("{}/branch-{}", library_dir, state.driver_major);
  std::error_code error;
  return fs::is_directory(branch, error) ? branch : library_dir;
}

}  // namespace

Result<std::string> layout(const std::string& data_dir, const std::string& library_dir,
                           const std::string& node, const std::string& dir) {
  TRY_ASSIGN(const StateFile file, open_node(data_dir, node, StateFile::Access::kRead));
  const std::string library = library_dir_of(library_dir, file.state()) + "/libnvidia-ml.so.1";
  TRY(write_layout(file.state(), library, dir));
  return std::string();
}

Result<std::string> show(const std::string& data_dir, const std::string& node, ShowAs as) {
  TRY_ASSIGN(const auto nodes, chosen_nodes(data_dir, node));
  std::string table;
  nlohmann::ordered_json json{{"nodes", nlohmann::ordered_json::array()}};
  for (const std::string& name : nodes) {
    TRY_ASSIGN(const StateFile file, open_node(data_dir, name, StateFile::Access::kRead));
    if (as == ShowAs::kTable) append_table(file.state(), table);
    if (as == ShowAs::kJson) json["nodes"].push_back(json_of(file.state()));
  }
  return as == ShowAs::kJson ? json.dump(2) + "\n" : table;
}

Result<std::string> load(const std::string& data_dir, const LoadOptions& options) {
  TRY_ASSIGN(const GpuPlace place, parse_gpu_place(options.gpu));
  const auto memory = gpu_platform::base::parse_size(options.memory);
  if (!memory) {
    return invalid("memory",
                   fmt::format("--memory \"{}\" is not a size; write it as 16G, 16GB or 512 (MiB)",
                               options.memory));
  }
  TRY_ASSIGN(const InstanceId instance, parse_instance(options.instance));
  TRY_ASSIGN(StateFile file, open_node(data_dir, place.node, StateFile::Access::kWrite));
  TRY(file.load(
      place.index, options.pid, static_cast<std::uint64_t>(memory->value()),
      options.utilization_percent,
      options.is_lingering ? StateFile::Presence::kLingering : StateFile::Presence::kWhileAlive,
      instance));
  if (options.is_lingering || process_start_ticks(options.pid) != 0) return std::string();
  return fmt::format("no process {} on this host: it stays on the GPU until it is cleared\n",
                     options.pid);
}

Result<std::string> inject(const std::string& data_dir, const InjectOptions& options) {
  TRY_ASSIGN(const GpuPlace place, parse_gpu_place(options.gpu));
  TRY_ASSIGN(StateFile file, open_node(data_dir, place.node, StateFile::Access::kWrite));
  if (options.fault == Fault::kXid) {
    TRY_ASSIGN(const InstanceId instance, parse_instance(options.instance));
    for (std::uint32_t i = 1; i < options.times; ++i) {
      TRY(inject_xid(file, place.index, options.value, instance));
    }
    return inject_xid(file, place.index, options.value, instance);
  }
  TRY(inject_quietly(file, place.index, options));
  return std::string();
}

Result<std::string> change_mig(const std::string& data_dir, const MigOptions& options) {
  TRY_ASSIGN(const GpuPlace place, parse_gpu_place(options.gpu));
  TRY_ASSIGN(StateFile file, open_node(data_dir, place.node, StateFile::Access::kWrite));
  return change_mig(file, place.index, options);
}

Result<std::string> reboot(const std::string& data_dir, const std::string& node) {
  TRY_ASSIGN(StateFile file, open_node(data_dir, node, StateFile::Access::kWrite));
  for (std::uint32_t i = 0; i < file.state().gpu_count; ++i) TRY(reboot_gpu(file, i));
  return std::string();
}

Result<std::string> register_process(const RegisterOptions& options) {
  return registered(Registration::kEnter, options);
}

Result<std::string> unregister_process(const RegisterOptions& options) {
  return registered(Registration::kLeave, options);
}

Result<std::string> clear(const std::string& data_dir, const ClearOptions& options) {
  if (!options.gpu.empty()) {
    TRY_ASSIGN(const GpuPlace place, parse_gpu_place(options.gpu));
    TRY_ASSIGN(StateFile file, open_node(data_dir, place.node, StateFile::Access::kWrite));
    TRY(clear_gpu(file, place.index, options.pid));
    return std::string();
  }
  TRY_ASSIGN(const auto nodes, chosen_nodes(data_dir, options.node));
  for (const std::string& node : nodes) {
    TRY_ASSIGN(StateFile file, open_node(data_dir, node, StateFile::Access::kWrite));
    for (std::uint32_t i = 0; i < file.state().gpu_count; ++i) {
      TRY(clear_gpu(file, i, options.pid));
    }
  }
  return std::string();
}

Result<std::string> env(const std::string& data_dir, const EmulatorPlaces& places,
                        const std::string& node, EnvAs as) {
  TRY_ASSIGN(const StateFile file, open_node(data_dir, node, StateFile::Access::kRead));
  const auto before = [](const char* name, std::string ours) {
    const char* theirs = std::getenv(name);
    return theirs == nullptr || *theirs == '\0' ? ours : fmt::format("{}:{}", ours, theirs);
  };
  const std::pair<const char*, std::string> variables[] = {
      {"GPU_EMULATOR_STATE", fs::absolute(state_path(data_dir, node))},
      {"LD_LIBRARY_PATH",
       before("LD_LIBRARY_PATH", library_dir_of(places.libraries, file.state()))},
      {"PATH", before("PATH", places.programs)},
  };
  std::string lines;
  for (const auto& [name, value] : variables) {
    lines += as == EnvAs::kExports ? fmt::format("export {}={}\n", name, shell_quoted(value))
                                   : fmt::format("{}={}\n", name, value);
  }
  return lines;
}

}  // namespace gpu_emulator
