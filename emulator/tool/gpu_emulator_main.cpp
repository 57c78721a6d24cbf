#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "base/result.h"
#include "tool/commands.h"
#include "tool/paths.h"

namespace {

using gpu_platform::base::ErrorCode;

constexpr int kUsage = 2;

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kUsage;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kFailedPrecondition:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kAlreadyExists:
      return 4;
    default:
      return 1;
  }
}

struct Options {
  std::string boards_dir = gpu_emulator::default_boards_dir();
  std::string data_dir = gpu_emulator::default_data_dir();
  std::string node;
  std::string layout_dir;
  bool as_json = false;
  bool as_exports = false;
  gpu_emulator::CreateOptions create;
  gpu_emulator::LoadOptions load;
  gpu_emulator::ClearOptions clear;
  gpu_emulator::InjectOptions inject;
  std::string inject_word;  // of faults that take one word
  gpu_emulator::LoadOptions linger;
  gpu_emulator::MigOptions mig;
  gpu_emulator::RegisterOptions registration;
  std::function<gpu_emulator::Result<std::string>()> run;
};

gpu_emulator::ShowAs shown_as(const Options& o) {
  return o.as_json ? gpu_emulator::ShowAs::kJson : gpu_emulator::ShowAs::kTable;
}

void add_data_dir(CLI::App* command, Options& o) {
  command->add_option("--data-dir", o.data_dir, "Data directory of the daemon")
      ->capture_default_str();
}

const auto kPid = CLI::Range(1, 4'194'304);

void add_making_commands(CLI::App& app, Options& o) {
  const auto boards_dir = [&o](CLI::App* command) {
    command->add_option("--boards-dir", o.boards_dir, "Folder of board files")
        ->capture_default_str();
  };
  CLI::App* list = app.add_subcommand("list-boards", "List the boards that can be emulated");
  boards_dir(list);
  list->add_flag("--json", o.as_json, "Print JSON");
  list->callback(
      [&o] { o.run = [&o] { return gpu_emulator::list_boards(o.boards_dir, shown_as(o)); }; });

  CLI::App* create = app.add_subcommand("create", "Make an emulated node, or keep an existing one");
  boards_dir(create);
  create->add_option("--board", o.create.board, "Name of the board")->required();
  create->add_option("--node-name", o.create.node_name, "Name of the node")->required();
  create->add_option("--dir", o.create.dir, "Folder for its state and host.json")->required();
  create->callback([&o] { o.run = [&o] { return gpu_emulator::create(o.boards_dir, o.create); }; });
}

void add_using_commands(CLI::App& app, Options& o) {
  const auto data_dir = [&o](CLI::App* command) { add_data_dir(command, o); };
  CLI::App* show = app.add_subcommand("show", "Show the emulated GPUs and what uses them");
  data_dir(show);
  show->add_option("--node", o.node, "Only this node");
  show->add_flag("--json", o.as_json, "Print JSON");
  show->callback(
      [&o] { o.run = [&o] { return gpu_emulator::show(o.data_dir, o.node, shown_as(o)); }; });

  CLI::App* load = app.add_subcommand("load", "Put a process on a GPU, or change what it uses");
  data_dir(load);
  load->add_option("--gpu", o.load.gpu, "NODE:INDEX")->required();
  load->add_option("--pid", o.load.pid, "Process")->required()->check(kPid);
  load->add_option("--memory", o.load.memory, "GPU memory: 16G, 16GB, 512 (MiB)");
  load->add_option("--utilization", o.load.utilization_percent, "Percent")
      ->check(CLI::Range(0, 100));
  load->add_option("--instance", o.load.instance, "GI/CI: on this MIG instance of the GPU");
  load->callback([&o] { o.run = [&o] { return gpu_emulator::load(o.data_dir, o.load); }; });

  CLI::App* clear = app.add_subcommand("clear",
                                       "Take processes off GPUs and undo injected faults;\n"
                                       "with --pid only that process");
  data_dir(clear);
  clear->add_option("--gpu", o.clear.gpu, "NODE:INDEX");
  clear->add_option("--node", o.clear.node, "Only this node")->excludes("--gpu");
  clear->add_option("--pid", o.clear.pid, "Only this process");
  clear->callback([&o] { o.run = [&o] { return gpu_emulator::clear(o.data_dir, o.clear); }; });

  CLI::App* layout = app.add_subcommand(
      "layout",
      "Write the files that programs read besides NVML into an empty folder: PCI devices, "
      "/proc/driver/nvidia,\n"
      "/proc/modules and a driver's root, for tests in a mount namespace");
  data_dir(layout);
  layout->add_option("--node", o.node, "Node")->required();
  layout->add_option("dir", o.layout_dir, "Folder, empty or new")->required();
  layout->callback([&o] {
    o.run = [&o] {
      return gpu_emulator::layout(o.data_dir, gpu_emulator::default_library_dir(), o.node,
                                  o.layout_dir);
    };
  });

  CLI::App* env =
      app.add_subcommand("env",
                         "Print the environment in which another NVML program sees the node:\n"
                         "env $(gpu-emulator env --node NAME) nvtop");
  data_dir(env);
  env->add_option("--node", o.node, "Node")->required();
  env->add_flag("--export", o.as_exports, "Print lines for a shell's eval");
  env->callback([&o] {
    o.run = [&o] {
      using gpu_emulator::EnvAs;
      return gpu_emulator::env(
          o.data_dir, {gpu_emulator::default_library_dir(), gpu_emulator::default_program_dir()},
          o.node, o.as_exports ? EnvAs::kExports : EnvAs::kLines);
    };
  });
}

// One kind of fault: its name, what it does, and where its value goes.
CLI::App* add_fault(CLI::App* inject, Options& o, gpu_emulator::Fault fault, const char* name,
                    const char* what) {
  CLI::App* command = inject->add_subcommand(name, what);
  add_data_dir(command, o);
  command->add_option("--gpu", o.inject.gpu, "NODE:INDEX")->required();
  command->callback([&o, fault] {
    o.inject.fault = fault;
    if (!o.inject_word.empty()) o.inject.words = {o.inject_word};
    o.run = [&o] { return gpu_emulator::inject(o.data_dir, o.inject); };
  });
  return command;
}

// Faults of the memory, the links and the driver.
void add_faults_of_parts(CLI::App* inject, Options& o) {
  using gpu_emulator::Fault;
  constexpr int kMax = 1'000'000;
  const auto add = [&](Fault fault, const char* name, const char* what, const char* value, int low,
                       int high) {
    add_fault(inject, o, fault, name, what)
        ->add_option(value, o.inject.value)
        ->required()
        ->check(CLI::Range(low, high));
  };
  add(Fault::kMemoryTemperature, "memory-temperature",
      "Heat of the memory. 0: somewhat warmer than the GPU", "celsius", 0, 150);
  add(Fault::kRemapPending, "remap-pending",
      "Rows of memory that the next reset replaces, without an event", "rows", 1, 512);
  add_fault(inject, o, Fault::kRemapFailed, "remap-failed",
            "A row of memory could not be replaced; no reset mends it");
  add(Fault::kRetired, "retired", "Retired pages of memory, which wait for a reset", "pages", 1,
      64);
  add(Fault::kPcieWidth, "pcie-width", "Lanes of the PCIe link in use. 0: all", "lanes", 0, 32);
  add(Fault::kNvlinkErrors, "nvlink-errors", "CRC errors and replays on the first NVLink", "count",
      1, kMax);
  add(Fault::kNvlinkDown, "nvlink-down", "So many NVLinks are down. 0: none", "links", 0, 36);
  add_fault(inject, o, Fault::kRestartedCounters, "restart-counters",
            "Counters since the driver was loaded go back to 0");
  add_fault(inject, o, Fault::kResetFail, "reset-fail", "Resets of the GPU fail");
  add_fault(inject, o, Fault::kResetHang, "reset-hang", "Resets of the GPU do not return");
  add(Fault::kMigCreateFails, "mig-create-fails",
      "So many of the next creations of GPU instances fail. 0: none", "count", 0, kMax);
  add(Fault::kMigComputeFails, "mig-compute-fails",
      "So many of the next creations of compute instances fail. 0: none", "count", 0, kMax);
  add(Fault::kHang, "hang", "No call on the GPU is answered for so long. 0: they are at once",
      "seconds", 0, 3600);
}

void add_inject_command(CLI::App& app, Options& o) {
  using gpu_emulator::Fault;
  constexpr int kMax = 1'000'000;
  CLI::App* inject = app.add_subcommand("inject", "Let something go wrong with a GPU");
  inject->require_subcommand(1);
  CLI::App* xid = add_fault(inject, o, Fault::kXid, "xid",
                            "An XID: critical ones make an NVML event, many ask for a recovery "
                            "action, 79 loses the GPU");
  xid->add_option("number", o.inject.value, "XID")->required()->check(CLI::Range(1, 998));
  xid->add_option("--times", o.inject.times, "Raise it so often: a storm")
      ->check(CLI::Range(1, kMax));
  xid->add_option("--instance", o.inject.instance, "GI or GI/CI: the MIG instance that it hits");
  CLI::App* ecc = add_fault(inject, o, Fault::kEcc, "ecc", "Errors of the memory");
  ecc->add_option("kind", o.inject_word, "corrected or uncorrected")->required();
  ecc->add_option("count", o.inject.value, "How many")->required()->check(CLI::Range(1, kMax));
  add_fault(inject, o, Fault::kTemperature, "temperature",
            "Heat; from the slowdown temperature on the clocks fall. 0: as the load makes it")
      ->add_option("celsius", o.inject.value, "Degrees")
      ->required()
      ->check(CLI::Range(0, 150));
  add_fault(inject, o, Fault::kThrottle, "throttle", "Reasons that hold the clocks down")
      ->add_option("reasons", o.inject.words,
                   "none, or some of sw-power-cap hw-slowdown sync-boost sw-thermal hw-thermal "
                   "hw-power-brake application-clocks display-clocks idle")
      ->required();
  add_fault(inject, o, Fault::kRecovery, "recovery", "What the driver asks for")
      ->add_option("action", o.inject_word,
                   "none, gpu-reset, node-reboot, drain-p2p or drain-and-reset")
      ->required();
  add_fault(inject, o, Fault::kReplays, "replays", "Replays on the PCIe link")
      ->add_option("count", o.inject.value, "How many")
      ->required()
      ->check(CLI::Range(1, kMax));
  add_fault(inject, o, Fault::kLost, "lost", "Every call on the GPU answers GPU_IS_LOST");
  add_fault(inject, o, Fault::kVanish, "vanish",
            "Programs that open the driver from now on do not find the GPU");
  add_fault(inject, o, Fault::kReturnLast, "return-last",
            "They find it as the last one, with another index and minor number");
  add_fault(inject, o, Fault::kSlow, "slow", "What every call on the GPU waits; 0: no time")
      ->add_option("milliseconds", o.inject.value, "Milliseconds")
      ->required()
      ->check(CLI::Range(0, 600'000));
  add_fault(inject, o, Fault::kWork, "work",
            "CPU time of every call on the GPU, as in a real driver; 0: none")
      ->add_option("microseconds", o.inject.value, "Microseconds")
      ->required()
      ->check(CLI::Range(0, kMax));

  add_faults_of_parts(inject, o);

  CLI::App* linger = inject->add_subcommand(
      "linger", "A process entry that stays when the process ends, until it is cleared");
  add_data_dir(linger, o);
  linger->add_option("--gpu", o.linger.gpu, "NODE:INDEX")->required();
  linger->add_option("--pid", o.linger.pid, "Process")->required()->check(kPid);
  linger->add_option("--memory", o.linger.memory, "GPU memory it keeps: 16G, 16GB, 512 (MiB)");
  linger->callback([&o] {
    o.linger.is_lingering = true;
    o.run = [&o] { return gpu_emulator::load(o.data_dir, o.linger); };
  });
}

void add_mig_command(CLI::App& app, Options& o) {
  using gpu_emulator::MigChange;
  CLI::App* mig = app.add_subcommand(
      "mig", "Change MIG behind the back of the node's programs, also under work");
  mig->require_subcommand(1);
  const auto add = [&](MigChange change, const char* name, const char* what) {
    CLI::App* command = mig->add_subcommand(name, what);
    add_data_dir(command, o);
    command->add_option("--gpu", o.mig.gpu, "NODE:INDEX")->required();
    command->callback([&o, change] {
      o.mig.change = change;
      o.run = [&o] { return gpu_emulator::change_mig(o.data_dir, o.mig); };
    });
    return command;
  };
  CLI::App* create = add(MigChange::kCreate, "create",
                         "Make a GPU instance with a compute instance; prints GI/CI and its UUID");
  create->add_option("profile", o.mig.profile, "1g.10gb, or 1g.10gb@6 at that memory slice")
      ->required();
  create->add_flag("--without-compute", o.mig.is_alone, "Make no compute instance in it");
  add(MigChange::kDestroy, "destroy", "Let an instance vanish with all that is on it")
      ->add_option("instance", o.mig.instance, "GI or GI/CI")
      ->required();
  add(MigChange::kOn, "on", "Switch MIG on at once; processes on the GPU are gone");
  add(MigChange::kOff, "off", "Switch MIG off at once; instances and processes are gone");
}

void add_reboot_command(CLI::App& app, Options& o) {
  CLI::App* reboot = app.add_subcommand(
      "reboot",
      "Do to a node's GPUs what its reboot does: processes, MIG instances and settings "
      "are gone, lost GPUs are back");
  add_data_dir(reboot, o);
  reboot->add_option("--node", o.node, "Node")->required();
  reboot->callback([&o] { o.run = [&o] { return gpu_emulator::reboot(o.data_dir, o.node); }; });
}

void add_registration_commands(CLI::App& app, Options& o) {
  const auto add = [&](const char* name, const char* what, auto command) {
    CLI::App* added = app.add_subcommand(name, what);
    added->add_option("--state", o.registration.state_path, "State file of the node")->required();
    added->add_option("--uuid", o.registration.uuids, "UUIDs of GPUs, separated by commas")
        ->required();
    added->add_option("--pid", o.registration.pid, "Process")->required()->check(kPid);
    added->callback([&o, command] { o.run = [&o, command] { return command(o.registration); }; });
  };
  add("register", "Enter a process on GPUs without any use of them, until it ends",
      gpu_emulator::register_process);
  add("unregister", "Take a process off GPUs", gpu_emulator::unregister_process);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Emulated NVIDIA boards: nodes whose GPUs live in a state file that libnvidia-ml.so.1 of "
      "this program answers from");
  app.require_subcommand(1);
  add_making_commands(app, options);
  add_using_commands(app, options);
  add_inject_command(app, options);
  add_mig_command(app, options);
  add_reboot_command(app, options);
  add_registration_commands(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  const auto result = options.run();
  if (!result) {
    std::fprintf(stderr, "gpu-emulator: %s\n", result.error().message.c_str());
    return exit_code(result.error().code);
  }
  std::fputs(result->c_str(), stdout);
  return 0;
}
