#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/channel.h"
#include "model/ids.h"
#include "node/devices/device_rules.h"
#include "node/identity.h"

// The messages between the daemon and the node part. Everything is versioned, bounded and checked,
// and a receiver refuses what it does not know. Bytes are base/codec, never memory images.
//
//   daemon   -> launcher    Message over a SOCK_SEQPACKET socket, one per packet
//   launcher -> daemon      the same; Launched carries the supervisor's pidfd with it
//   launcher -> supervisor  Stop, SetLimit, SendSignal and WarnOfMemory as queued signals, to a
//                           supervisor proved alive
//   daemon   -> relay       ChannelStart, then frames (model/channel.h), on the socket that came
//                           with OpenChannel; the relay, or, of an attach, the attempt's supervisor
//                           answers with frames
//   launcher -> supervisor  the socket of an attach, over the supervisor's own (session_path)
//   driver program -> daemon  DriverAnswer, on the socket that came with RunDriver; where the
//   program
//                           ended without one or was killed, its watcher answers
//   launcher -> keeper of a GPU's turns  TimeSlices and GpuIsIdle, over a socket of theirs
//                           (node/time_slices)
//   launcher -> keeper of an MPS daemon  MpsServer, over a socket of theirs (node/mps); the keeper
//                           answers with MpsState, which the launcher passes on to the daemon
//   supervisor -> daemon    Notice frames through a FIFO, best effort: the record file is the
//   truth;
//                           its reading end comes with Welcome
//
// Decoding never throws and never reads past its input. Decoded texts are copies, except where the
// type says view.

namespace gpu_platform::node {

inline constexpr std::uint32_t kProtocolVersion = 19;

// A request that fits goes inside its Launch message, a larger one in a memory file beside it.
inline constexpr std::size_t kMaxInlineRequest = 32 * 1024;
// Command and environment of a submission are at most 1 MiB together; the rest is what we add.
inline constexpr std::size_t kMaxRequest = (1 << 20) + 256 * 1024;
inline constexpr std::size_t kMaxMessage = kMaxInlineRequest + 4096;
inline constexpr std::size_t kMaxForgets = 512;
inline constexpr std::size_t kMaxOutputRemovals = 64;  // bounds how long other orders wait
inline constexpr std::size_t kMaxText = 2048;          // of an error, in bytes; longer ones are cut
inline constexpr std::size_t kMaxPath = 4095;          // of a file, in bytes
inline constexpr std::size_t kMaxDevices = 256;        // of a job
inline constexpr std::size_t kMaxNumberList = 4096;    // "0-55,112-167", in bytes
inline constexpr std::size_t kMaxDriverGpus = 64;      // of one request to the driver
inline constexpr std::size_t kMaxUuid = 96;            // in bytes
inline constexpr std::size_t kMaxTimeSliceJobs = 256;  // on one GPU
inline constexpr std::uint64_t kMaxSliceMs = 3'600'000;
inline constexpr std::size_t kMaxMpsJobs = 256;  // of a user on one GPU

// ---- daemon -> launcher

// First message of each side. A launcher that does not speak this version answers Refused and hangs
// up.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Launch {
  model::AttemptId attempt;
  bool in_memory_file = false;  // the request is in the file passed along, not in `request`
  std::string_view request;     // encoded LaunchRequest; a view into the message
  friend bool operator==(const Launch&, const Launch&) = default;
};

// An order to the supervisor of the attempt. `code` is given back in the exit record; the node part
// gives it no meaning.
struct Stop {
  model::AttemptId attempt;
  bool without_grace = false;
  std::uint64_t grace_ms = 0;
  std::uint8_t code = 0;
  friend bool operator==(const Stop&, const Stop&) = default;
};

// Tells the supervisor of the attempt another time limit, counted from the start of the job as the
// first one was. The daemon repeats it until the attempt is over, so there is no answer.
struct SetLimit {
  model::AttemptId attempt;
  std::uint64_t limit_ms = 0;  // at least 1
  friend bool operator==(const SetLimit&, const SetLimit&) = default;
};

// Has the supervisor send a signal to all processes of the job, once; nothing happens before its
// first process runs and after its end. There is no answer.
struct SendSignal {
  model::AttemptId attempt;
  std::uint8_t signal = 0;  // one of model::kJobSignals
  friend bool operator==(const SendSignal&, const SendSignal&) = default;
};

// Has the supervisor write to the output that it keeps that the job uses more memory of a GPU than
// its part has, and is stopped if it goes on. There is no answer. A part of 0 says instead that the
// job does not use its GPUs: warning_of_idle().
struct WarnOfMemory {
  model::AttemptId attempt;
  std::uint32_t used_mib = 0;
  std::uint32_t part_mib = 0;
  friend bool operator==(const WarnOfMemory&, const WarnOfMemory&) = default;
};

// The warning of a job that does not use its GPUs and is stopped in so many minutes; 0: it is not.
WarnOfMemory warning_of_idle(model::AttemptId attempt, std::uint32_t stops_in_minutes);
// Returns these minutes; nothing for a warning of memory.
std::optional<std::uint32_t> minutes_of_idle(const WarnOfMemory& warning);

// Kill all that is left of the attempt, whether its supervisor lives or not, and say what is left.
struct KillTree {
  model::AttemptId attempt;
  friend bool operator==(const KillTree&, const KillTree&) = default;
};

// Remove the markers of attempts that are over. Refused while a process of the attempt is left.
struct Forget {
  std::vector<model::AttemptId> attempts;
  friend bool operator==(const Forget&, const Forget&) = default;
};

// Remove what is kept of the output of jobs that have ended. There is no answer: the daemon sees
// what is left, and asks again.
struct RemoveOutput {
  std::vector<model::JobId> jobs;
  friend bool operator==(const RemoveOutput&, const RemoveOutput&) = default;
};

// Opens a channel into the running attempt, on the socket passed along (SOCK_SEQPACKET), on which
// ChannelStart comes next. There is no answer here: the outcome is reported on that socket.
struct OpenChannel {
  model::AttemptId attempt;
  bool attach = false;  // to the job's own terminal and input: for its supervisor
  friend bool operator==(const OpenChannel&, const OpenChannel&) = default;
};

// Opens a file that a user has named, for reading, as that user. The outcome is reported on the
// socket passed along (SOCK_SEQPACKET): an OpenedFile with the descriptor, or without one. There is
// no answer here.
struct OpenFile {
  std::uint32_t uid = 0;
  std::string path;  // absolute, without NUL; at most kMaxPath bytes
  friend bool operator==(const OpenFile&, const OpenFile&) = default;
};

// What gpu-platform-driver does: nothing else of ours writes to a GPU's driver.
enum class DriverVerb : std::uint8_t {
  kReset,
  kQuickCheck,  // a burn-in of seconds
  kDeepCheck,   // of minutes
  kPower,       // sets the power limit
};
inline constexpr std::size_t kDriverVerbs = 4;
std::string_view to_string(DriverVerb verb);  // "reset"
std::optional<DriverVerb> parse_driver_verb(std::string_view name);

// Where an emulated board is. Its library runs with the rights of the daemon's user and no others.
struct BoardFiles {
  std::string library;     // the emulator's libnvidia-ml.so.1
  std::string state;       // of the board
  std::string nvidia_smi;  // the emulator's
  friend bool operator==(const BoardFiles&, const BoardFiles&) = default;
};

// Has the driver program do one thing to GPUs, and ends the program at the deadline. The outcome is
// reported on the socket passed along (SOCK_SEQPACKET): the first DriverAnswer counts, and a socket
// that closes without one is a failure. There is no answer here.
struct RunDriver {
  DriverVerb verb = DriverVerb::kQuickCheck;
  std::vector<std::string> gpus;    // UUIDs: letters, digits and '-'
  std::uint32_t watts = 0;          // of kPower
  std::uint64_t deadline_ms = 0;    // from now on, with the wait for another request; at least 1
  std::optional<BoardFiles> board;  // nothing: the GPUs are real
  friend bool operator==(const RunDriver&, const RunDriver&) = default;
};

// One of the jobs that take turns on a GPU.
struct TimeSliceJob {
  model::AttemptId attempt;
  std::uint32_t weight = 1;  // at least 1
  friend bool operator==(const TimeSliceJob&, const TimeSliceJob&) = default;
};

// The jobs that take turns on a GPU from now on, all of them: it takes the place of what was said
// of the GPU before, and may be repeated. Where there are fewer than two, none is frozen. All are
// thawed when the daemon hangs up. There is no answer.
struct TimeSlices {
  std::string gpu;                 // UUID: letters, digits and '-'
  std::uint64_t slice_ms = 0;      // the mean length of a turn; at least 1
  std::vector<TimeSliceJob> jobs;  // none: there are no turns on it any more
  friend bool operator==(const TimeSlices&, const TimeSlices&) = default;
};

// The GPU has done nothing for the last second or longer, while one of the jobs that take turns on
// it was awake: that job's turn is given on. There is no answer.
struct GpuIsIdle {
  std::string gpu;  // UUID
  friend bool operator==(const GpuIsIdle&, const GpuIsIdle&) = default;
};

// A job that is a client of an MPS server, and the limits of each of its processes.
struct MpsJob {
  model::AttemptId attempt;
  std::uint32_t percent = 100;   // of the GPU's compute, 1 to 100
  std::uint32_t memory_mib = 0;  // at least 1
  friend bool operator==(const MpsJob&, const MpsJob&) = default;
};

// The MPS control daemon that a user has on a GPU, with its jobs from now on, all of them: it takes
// the place of what was said of the two before, and may be repeated. Without jobs it is ended, as
// is one that the next daemon does not name within a minute. Each is answered with MpsState.
struct MpsServer {
  std::string gpu;  // UUID
  std::uint32_t uid = 0;
  std::string program;              // nvidia-cuda-mps-control: absolute, run as the user
  std::optional<BoardFiles> board;  // nothing: the GPU is real
  std::vector<MpsJob> jobs;
  // Its jobs have folders of their own: /dev/shm is one for them and the daemon. Else it is the
  // host's, for all of them.
  bool private_folders = true;
  friend bool operator==(const MpsServer&, const MpsServer&) = default;
};

// ---- launcher -> daemon

// What became of an MpsServer, and later of the control daemon.
struct MpsState {
  std::string gpu;  // UUID
  std::uint32_t uid = 0;
  // It answers, and has the limits of `jobs`, which it was asked for and read back. Else it could
  // not be started, or was lost: `why`. One that was lost is started again and told of anew.
  bool is_ready = false;
  bool is_lost = false;  // it was ready, and is gone with its servers; never where it is ready
  std::string folder;    // pipe/, log/ and shm/ are in it; where it is ready
  std::vector<model::AttemptId> jobs;
  std::string why;
  friend bool operator==(const MpsState&, const MpsState&) = default;
};

enum class Isolation : std::uint8_t {
  kCgroup,    // each job in a cgroup of its own: no process of it can be missed
  kAdvisory,  // process tree only: a process that wants to escape can
};

// One way in which jobs are kept apart from each other and the host.
enum class Guard : std::uint8_t {
  kProcessTree,  // no process of a job can leave it
  kUser,         // each job runs as its own user
  kDevices,      // only its own GPUs can be opened
  kMemory,       // its limit of memory
  kProcesses,    // its limit of processes
  kCpu,          // its weight when CPUs are short
  kFolders,      // /tmp and /dev/shm of its own
  kCores,        // on GPUs: the cores near them and no others
  kSyscalls,     // what the kernel refuses all jobs
  kProcessList,  // nothing is seen of other users' processes
};
inline constexpr std::size_t kGuards = 10;
std::string_view to_string(Guard guard);  // "devices"

// Why guards of a launcher without root are not held: they are set up all the same.
inline constexpr std::string_view kRunsAsDaemonsUser =
    "without root jobs run as the daemon's own user";

struct GuardState {
  Guard guard = Guard::kProcessTree;
  bool held = false;  // false: advisory, a job that wants to can pass it
  std::string why;    // where it is not
  friend bool operator==(const GuardState&, const GuardState&) = default;
};

// Returns whether a job with GPUs sees its own alone: the device program is set up, whether or not
// the job could change it.
bool hides_other_gpus(const std::vector<GuardState>& guards);

struct Welcome {
  std::uint32_t version = kProtocolVersion;
  std::uint32_t pid = 0;
  Isolation isolation = Isolation::kAdvisory;
  bool can_switch_user = false;
  std::string folder;              // of the node part: the paths below begin there
  std::string detail;              // the cgroup that holds the jobs, or why there is none
  std::vector<GuardState> guards;  // at most one of each
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Refused {
  std::string why;
  friend bool operator==(const Refused&, const Refused&) = default;
};

struct Launched {
  model::AttemptId attempt;
  std::uint32_t supervisor_pid = 0;
  friend bool operator==(const Launched&, const Launched&) = default;
};

// The attempt's record was there: nothing was started by this Launch.
struct Exists {
  model::AttemptId attempt;
  friend bool operator==(const Exists&, const Exists&) = default;
};

// Nothing of the attempt was started and no marker is left.
struct LaunchFailed {
  model::AttemptId attempt;
  std::string why;
  friend bool operator==(const LaunchFailed&, const LaunchFailed&) = default;
};

struct StopSent {
  model::AttemptId attempt;
  bool delivered = false;  // false: no supervisor lives
  friend bool operator==(const StopSent&, const StopSent&) = default;
};

struct TreeState {
  model::AttemptId attempt;
  bool empty = false;
  friend bool operator==(const TreeState&, const TreeState&) = default;
};

struct ForgetRefused {
  model::AttemptId attempt;
  friend bool operator==(const ForgetRefused&, const ForgetRefused&) = default;
};

using Message = std::variant<Hello, Launch, Stop, KillTree, Forget, Welcome, Refused, Launched,
                             Exists, LaunchFailed, StopSent, TreeState, ForgetRefused, SetLimit,
                             OpenChannel, OpenFile, SendSignal, RemoveOutput, RunDriver, TimeSlices,
                             WarnOfMemory, MpsServer, MpsState, GpuIsIdle>;

std::string encode(const Message& message);
// Nothing when the bytes are not exactly one known message.
std::optional<Message> decode(std::string_view bytes);

// ---- what to run

// The container of a job. Texts end with a NUL inside their bytes, as in LaunchRequest.
struct ContainerRequest {
  std::string_view image{"\0", 1};  // just "\0": none, and the rest means nothing
  std::vector<std::string_view> mounts;
  std::vector<std::string_view> tmpfs;
  std::uint64_t shm_bytes = 0;  // 0: the engine's default
  std::uint8_t network = 0;     // model::ContainerNetwork
  std::uint8_t pull = 0;        // model::ImagePull
  std::string_view entrypoint{"\0", 1};
  std::string_view workdir{"\0", 1};
  std::string_view platform{"\0", 1};         // of the image; just "\0": this host's
  std::vector<std::string_view> annotations;  // KEY=VALUE
  std::vector<std::string_view> gpus;         // UUIDs, one for each of the job's GPUs
  std::vector<std::string_view> board_files;  // of an emulated board, as mounts; empty: real GPUs

  bool is_given() const { return image.size() > 1; }
  friend bool operator==(const ContainerRequest&, const ContainerRequest&) = default;
};

// All that a supervisor needs. Texts are views into the encoded request; each text of command,
// environment, workdir, output and error ends with a NUL inside its bytes, so that data() can be
// handed to exec.
struct LaunchRequest {
  std::string_view boot_id;  // start only in this boot
  // The user of the job. The sender gives only user.uid; the launcher looks up the rest itself.
  Identity user;
  std::uint32_t umask = 022;
  std::vector<std::string_view> command;  // first: program, looked up in PATH unless it has a '/'
  std::vector<std::string_view> environment;  // NAME=VALUE
  std::string_view workdir;
  std::string_view output;          // the user's own output file; just "\0": kept by the platform
  std::uint64_t time_limit_ms = 0;  // 0: none
  std::uint64_t grace_ms = 0;
  std::uint64_t output_file_bytes = 0;  // rotation of kept output
  std::uint32_t output_files = 0;
  // Device nodes of its GPUs. With none the job can open no NVIDIA device at all.
  std::vector<DeviceNumber> devices;
  std::uint64_t memory_bytes = 0;        // 0: no limit, here and below
  std::uint64_t max_processes = 0;       // threads count
  std::uint32_t cpus = 0;                // its weight when CPUs are short
  std::string_view near_cpus;            // "0-55,112-167": where it runs; empty: anywhere
  std::string_view near_nodes;           // NUMA nodes with the preferred memory, in the same form
  bool private_folders = false;          // /tmp and /dev/shm of its own
  std::uint64_t output_limit_bytes = 0;  // of kept output no more than so many are stored; 0: all
  std::string_view error{"\0", 1};       // the user's own file for stderr; just "\0": as stdout
  bool truncate_output = false;          // the user's own files begin empty; else they grow
  std::uint8_t limit_signal = 0;         // sent to the job before its limit; 0: none
  std::uint64_t limit_signal_before_ms = 0;
  bool limit_signal_first_only = false;  // to its first process, not to all
  // The user's own programs before and after the command; just "\0": none.
  std::string_view prolog{"\0", 1};
  std::string_view epilog{"\0", 1};
  bool takes_input = false;                     // stdin is what people send; else it is /dev/null
  std::optional<model::TerminalSize> terminal;  // stdin, stdout and stderr are one; takes_input
  std::uint64_t idle_timeout_ms = 0;  // without input and output it is ended; takes_input. 0: none
  bool hide_processes = false;        // of other users, in its /proc; private_folders
  std::uint64_t start_timeout_ms = 30'000;  // of each of its steps, until its program is executed
  ContainerRequest container;
  bool takes_turns = false;  // it may be frozen between its turns on a GPU (TimeSlices)
  // The GPU (UUID) on which it is a client of its user's MPS server, and the program that speaks to
  // the server's daemon; just "\0": none. Its /dev/shm is then that of all jobs of this server.
  std::string_view mps_gpu{"\0", 1};
  std::string_view mps_program{"\0", 1};

  friend bool operator==(const LaunchRequest&, const LaunchRequest&) = default;
};

std::string encode_request(const LaunchRequest& request);
std::optional<LaunchRequest> decode_request(std::string_view bytes);

// ---- what a channel is for

// The first packet on a channel's socket. For a relay it carries a sealed memory file with an
// encoded LaunchRequest, which has the user, the directory, the environment and, without a port,
// the command.
struct ChannelStart {
  std::optional<model::TerminalSize> terminal;
  std::uint16_t port = 0;       // not 0: a connection to 127.0.0.1 instead of a command
  bool without_output = false;  // of an attach: only the job's input is wanted
  friend bool operator==(const ChannelStart&, const ChannelStart&) = default;
};
std::string encode_channel_start(const ChannelStart& start);
std::optional<ChannelStart> decode_channel_start(std::string_view bytes);

// ---- what became of an OpenFile

struct OpenedFile {
  std::int32_t error = 0;  // errno; 0: the descriptor comes with it
  std::string why;         // if it is no error of the system: the user cannot be looked up
  friend bool operator==(const OpenedFile&, const OpenedFile&) = default;
};
std::string encode_opened_file(const OpenedFile& opened);
std::optional<OpenedFile> decode_opened_file(std::string_view bytes);

// ---- what became of a RunDriver

struct DriverResult {
  std::string gpu;      // its UUID
  std::string failure;  // empty: it was done
  friend bool operator==(const DriverResult&, const DriverResult&) = default;
};

struct DriverAnswer {
  std::vector<DriverResult> gpus;  // each of the request
  std::string detail;              // what was done, in words; may be empty
  // The launcher's rules do not allow it, as the failures say: nothing was done to any of them.
  bool is_refused = false;
  // The driver program could not be run, or had no time: the failures tell nothing of the GPUs.
  bool is_untried = false;
  friend bool operator==(const DriverAnswer&, const DriverAnswer&) = default;
};
std::string encode_driver_answer(const DriverAnswer& answer);
std::optional<DriverAnswer> decode_driver_answer(std::string_view bytes);
// All GPUs of the request failed for one reason.
DriverAnswer failed_answer(const std::vector<std::string>& gpus, std::string_view why);
// The request is not allowed.
DriverAnswer refused_answer(const std::vector<std::string>& gpus, std::string_view why);
DriverAnswer untried_answer(const std::vector<std::string>& gpus, std::string_view why);
inline constexpr std::size_t kMaxDriverAnswer = kMaxDriverGpus * (512 + kMaxUuid + 16) + 4096;

// ---- stop orders as a signal

// The order travels in the 64 bits that a queued signal carries: it needs no socket and no file,
// and the kernel itself checks the sender.
struct StopSignal {
  bool without_grace = false;
  std::uint64_t grace_ms = 0;  // cut to 2^48 - 1
  std::uint8_t code = 0;
  friend bool operator==(const StopSignal&, const StopSignal&) = default;
};
std::uint64_t pack(const StopSignal& stop);
StopSignal unpack(std::uint64_t bits);
int stop_signal_number();
// Its 64 bits are SetLimit::limit_ms.
int limit_signal_number();
// Its 64 bits are SendSignal::signal. A supervisor that does not know it yet takes no notice.
int send_signal_number();
// Its 64 bits are the two numbers of a WarnOfMemory. The same holds for it.
std::uint64_t pack(const WarnOfMemory& warning);
WarnOfMemory unpack_warning(std::uint64_t bits);  // without the attempt
int warning_signal_number();
// To what speaks to a container engine, where the container is in no cgroup of ours: its number is
// that of a signal for the container's processes.
int container_signal_number();

// ---- where things are, below the launcher's folder

std::string attempts_dir(std::string_view folder);   // folder/attempts
std::string attempt_name(model::AttemptId attempt);  // "42-1": of its record and of its /tmp
std::optional<model::AttemptId> parse_attempt_name(std::string_view name);
std::string record_path(std::string_view folder, model::AttemptId attempt);
// Kept output: folder/output/<job / 1000>/<job>/<attempt>.log, and beside it full parts of earlier
// output. Their names end in the offset of their first byte in all of the output: .log.0,
// .log.67108864, …
std::string output_path(std::string_view folder, model::AttemptId attempt);
std::string full_part_path(std::string_view output_path, std::uint64_t first_byte);
// The same in two steps, for callers that use handles: "0/42" below folder/output, and in it
// "1.log", or "1.prolog" for the output of the site's prolog.
std::string output_folder(model::AttemptId attempt);
// The place of the first step's output: the folder of a thousand jobs ("0") and the job's own in it
// ("42").
struct OutputPlace {
  std::string thousand;
  std::string job;
};
OutputPlace output_place(model::JobId job);
std::string output_name(model::AttemptId attempt, std::string_view what = "log");
std::string session_name(model::AttemptId attempt);  // 42-1.session, in folder/run
// 42-1.container, in folder/attempts: the line in which the client of a container engine says what
// it does or why it gave up ("doing: pulling the image, 43 %").
std::string container_report_name(model::AttemptId attempt);
std::string owed_epilog_name(model::AttemptId attempt);  // 42-1.epilog: owed_epilog.h

// The folder of a user's MPS daemon on a GPU, below kMpsRoot: the path of pipe/ in it must not be
// longer than 80 bytes, or the daemon does not start. `token`: root_token() of the launcher's
// folder.
inline constexpr std::string_view kMpsRoot = "/run/gpu-platform-mps";
std::string mps_folder(std::string_view token, std::string_view gpu, std::uint32_t uid);
// Its name there, and that of its cgroup after "mps-": "2f9a01c7d3e84b52-1000".
std::string mps_name(std::string_view gpu, std::uint32_t uid);

// A short name for a launcher's folder, so that two daemons on one host never share a cgroup.
std::string root_token(std::string_view real_path, std::uint64_t device, std::uint64_t inode);

}  // namespace gpu_platform::node
