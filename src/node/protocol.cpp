#include "node/protocol.h"

#include <signal.h>

#include "base/codec.h"
#include "base/hash.h"
#include "model/job.h"
#include "model/job_signal.h"

namespace gpu_platform::node {

namespace {

using base::Decoder;
using base::Encoder;

constexpr std::uint64_t kGraceBits = 48;
constexpr std::uint8_t kMaxSignal = 64;

void put(Encoder& out, model::AttemptId attempt) {
  out.u64(attempt.job.value);
  out.u64(attempt.attempt);
}

std::uint32_t get_u32(Decoder& in) {
  const std::uint64_t value = in.u64();
  if (value > UINT32_MAX) return static_cast<std::uint32_t>(in.reject());
  return static_cast<std::uint32_t>(value);
}

std::uint16_t get_u16(Decoder& in) {
  const std::uint64_t value = in.u64();
  if (value > UINT16_MAX) return static_cast<std::uint16_t>(in.reject());
  return static_cast<std::uint16_t>(value);
}

std::uint8_t get_u8(Decoder& in) {
  const std::uint64_t value = in.u64();
  if (value > UINT8_MAX) return static_cast<std::uint8_t>(in.reject());
  return static_cast<std::uint8_t>(value);
}

model::AttemptId get_attempt(Decoder& in) {
  model::AttemptId attempt;
  attempt.job = model::JobId(in.u64());
  attempt.attempt = get_u32(in);
  if (!attempt.job.valid() || attempt.attempt == 0) in.reject();
  return attempt;
}

std::string get_text(Decoder& in) {
  const std::string_view text = in.text();
  if (text.size() > kMaxText) {
    in.reject();
    return {};
  }
  return std::string(text);
}

std::string_view cut(std::string_view text) {
  return text.substr(0, kMaxText);
}

// Fields of each message, once for writing and once for reading; the number of a message is its
// place in Message, counted from 1.
void put(Encoder& out, const Hello& m) {
  out.u64(m.version);
}
void put(Encoder& out, const Launch& m) {
  put(out, m.attempt);
  out.boolean(m.in_memory_file);
  out.text(m.request);
}
void put(Encoder& out, const Stop& m) {
  put(out, m.attempt);
  out.boolean(m.without_grace);
  out.u64(m.grace_ms);
  out.u64(m.code);
}
void put(Encoder& out, const SetLimit& m) {
  put(out, m.attempt);
  out.u64(m.limit_ms);
}
void put(Encoder& out, const SendSignal& m) {
  put(out, m.attempt);
  out.u64(m.signal);
}
void put(Encoder& out, const KillTree& m) {
  put(out, m.attempt);
}
void put(Encoder& out, const Forget& m) {
  out.u64(m.attempts.size());
  for (const auto& attempt : m.attempts) put(out, attempt);
}
void put(Encoder& out, const Welcome& m) {
  out.u64(m.version);
  out.u64(m.pid);
  out.boolean(m.isolation == Isolation::kCgroup);
  out.boolean(m.can_switch_user);
  out.text(m.folder);
  out.text(cut(m.detail));
  out.u64(m.guards.size());
  for (const GuardState& state : m.guards) {
    out.u64(static_cast<std::uint64_t>(state.guard));
    out.boolean(state.held);
    out.text(cut(state.why));
  }
}
void put(Encoder& out, const Refused& m) {
  out.text(cut(m.why));
}
void put(Encoder& out, const Launched& m) {
  put(out, m.attempt);
  out.u64(m.supervisor_pid);
}
void put(Encoder& out, const Exists& m) {
  put(out, m.attempt);
}
void put(Encoder& out, const LaunchFailed& m) {
  put(out, m.attempt);
  out.text(cut(m.why));
}
void put(Encoder& out, const StopSent& m) {
  put(out, m.attempt);
  out.boolean(m.delivered);
}
void put(Encoder& out, const TreeState& m) {
  put(out, m.attempt);
  out.boolean(m.empty);
}
void put(Encoder& out, const ForgetRefused& m) {
  put(out, m.attempt);
}

void put(Encoder& out, const RemoveOutput& m) {
  out.u64(m.jobs.size());
  for (const model::JobId job : m.jobs) out.u64(job.value);
}

void put(Encoder& out, const OpenChannel& m) {
  put(out, m.attempt);
  out.boolean(m.attach);
}
void put(Encoder& out, const OpenFile& m) {
  out.u64(m.uid);
  out.text(m.path);
}

OpenFile get_open_file(Decoder& in) {
  OpenFile m;
  m.uid = get_u32(in);
  m.path = in.text();
  const bool is_path = m.path.starts_with('/') && m.path.size() <= kMaxPath &&
                       m.path.find('\0') == std::string::npos;
  if (!is_path) in.reject();
  return m;
}

Message get_launch(Decoder& in) {
  Launch m;
  m.attempt = get_attempt(in);
  m.in_memory_file = in.boolean();
  m.request = in.text();
  if (m.request.size() > kMaxInlineRequest || m.in_memory_file != m.request.empty()) in.reject();
  return m;
}

Message get_stop(Decoder& in) {
  Stop m;
  m.attempt = get_attempt(in);
  m.without_grace = in.boolean();
  m.grace_ms = in.u64();
  m.code = get_u8(in);
  return m;
}

Message get_set_limit(Decoder& in) {
  SetLimit m;
  m.attempt = get_attempt(in);
  m.limit_ms = in.u64();
  if (m.limit_ms == 0) in.reject();
  return m;
}

Message get_send_signal(Decoder& in) {
  SendSignal m;
  m.attempt = get_attempt(in);
  m.signal = get_u8(in);
  if (!model::is_job_signal(m.signal)) in.reject();
  return m;
}

Message get_forget(Decoder& in) {
  Forget m;
  const std::size_t count = in.count();
  if (count == 0 || count > kMaxForgets) in.reject();
  for (std::size_t i = 0; i < count && in.ok(); ++i) m.attempts.push_back(get_attempt(in));
  return m;
}

Message get_remove_output(Decoder& in) {
  RemoveOutput m;
  const std::size_t count = in.count();
  if (count == 0 || count > kMaxOutputRemovals) in.reject();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    m.jobs.emplace_back(in.u64());
    if (!m.jobs.back().valid()) in.reject();
  }
  return m;
}

GuardState get_guard(Decoder& in) {
  GuardState state;
  const std::uint8_t guard = get_u8(in);
  if (guard >= kGuards) in.reject();
  state.guard = static_cast<Guard>(guard);
  state.held = in.boolean();
  state.why = get_text(in);
  return state;
}

Message get_welcome(Decoder& in) {
  Welcome m;
  m.version = get_u32(in);
  m.pid = get_u32(in);
  m.isolation = in.boolean() ? Isolation::kCgroup : Isolation::kAdvisory;
  m.can_switch_user = in.boolean();
  m.folder = get_text(in);
  m.detail = get_text(in);
  const std::size_t count = in.count();
  if (count > kGuards) in.reject();
  for (std::size_t i = 0; i < count && in.ok(); ++i) m.guards.push_back(get_guard(in));
  return m;
}

std::optional<Message> get_message(Decoder& in) {
  switch (in.u64()) {
    case 1:
      return Hello{get_u32(in)};
    case 2:
      return get_launch(in);
    case 3:
      return get_stop(in);
    case 4:
      return KillTree{get_attempt(in)};
    case 5:
      return get_forget(in);
    case 6:
      return get_welcome(in);
    case 7:
      return Refused{get_text(in)};
    case 8: {
      const model::AttemptId attempt = get_attempt(in);
      return Launched{attempt, get_u32(in)};
    }
    case 9:
      return Exists{get_attempt(in)};
    case 10: {
      const model::AttemptId attempt = get_attempt(in);
      return LaunchFailed{attempt, get_text(in)};
    }
    case 11: {
      const model::AttemptId attempt = get_attempt(in);
      return StopSent{attempt, in.boolean()};
    }
    case 12: {
      const model::AttemptId attempt = get_attempt(in);
      return TreeState{attempt, in.boolean()};
    }
    case 13:
      return ForgetRefused{get_attempt(in)};
    case 14:
      return get_set_limit(in);
    case 15: {
      const model::AttemptId attempt = get_attempt(in);
      return OpenChannel{attempt, in.boolean()};
    }
    case 16:
      return get_open_file(in);
    case 17:
      return get_send_signal(in);
    case 18:
      return get_remove_output(in);
    default:
      return std::nullopt;
  }
}

void put_terminal(Encoder& out, const std::optional<model::TerminalSize>& terminal) {
  out.boolean(terminal.has_value());
  if (!terminal) return;
  out.u64(terminal->columns);
  out.u64(terminal->rows);
}

std::optional<model::TerminalSize> get_terminal(Decoder& in) {
  if (!in.boolean()) return std::nullopt;
  model::TerminalSize size;
  size.columns = get_u16(in);
  size.rows = get_u16(in);
  if (size.columns == 0 || size.rows == 0) in.reject();
  return size;
}

// A text that ends with its only NUL.
std::string_view get_c_text(Decoder& in) {
  const std::string_view text = in.text();
  if (text.empty() || text.find('\0') != text.size() - 1) in.reject();
  return text;
}

void put_list(Encoder& out, const std::vector<std::string_view>& list) {
  out.u64(list.size());
  for (const std::string_view text : list) out.text(text);
}

std::vector<std::string_view> get_list(Decoder& in) {
  std::vector<std::string_view> list;
  const std::size_t count = in.count();
  for (std::size_t i = 0; i < count && in.ok(); ++i) list.push_back(get_c_text(in));
  return list;
}

std::vector<DeviceNumber> get_devices(Decoder& in) {
  std::vector<DeviceNumber> devices;
  const std::size_t count = in.count();
  if (count > kMaxDevices) in.reject();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint32_t major = get_u32(in);
    devices.push_back({major, get_u32(in)});
  }
  return devices;
}

// Accepts only digits, commas and dashes; the code that binds gives them a meaning.
std::string_view get_number_list(Decoder& in) {
  const std::string_view text = in.text();
  const bool well_formed = text.find_first_not_of("0123456789,-") == std::string_view::npos;
  if (text.size() > kMaxNumberList || !well_formed) in.reject();
  return text;
}

void put_container(Encoder& out, const ContainerRequest& container) {
  out.text(container.image);
  put_list(out, container.mounts);
  put_list(out, container.tmpfs);
  out.u64(container.shm_bytes);
  out.u64(container.network);
  out.u64(container.pull);
  out.text(container.entrypoint);
  out.text(container.workdir);
  out.text(container.platform);
  put_list(out, container.annotations);
  put_list(out, container.gpus);
  put_list(out, container.board_files);
}

ContainerRequest get_container(Decoder& in) {
  ContainerRequest container;
  container.image = get_c_text(in);
  container.mounts = get_list(in);
  container.tmpfs = get_list(in);
  container.shm_bytes = in.u64();
  container.network = get_u8(in);
  container.pull = get_u8(in);
  container.entrypoint = get_c_text(in);
  container.workdir = get_c_text(in);
  container.platform = get_c_text(in);
  container.annotations = get_list(in);
  container.gpus = get_list(in);
  container.board_files = get_list(in);
  if (container.network >= model::kContainerNetworks || container.pull >= model::kImagePulls) {
    in.reject();
  }
  return container;
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

// A decimal number without sign or leading zero, cut from the front of text; 0 when there is none.
std::uint64_t take_number(std::string_view& text) {
  std::uint64_t value = 0;
  std::size_t used = 0;
  while (used < text.size() && used < 19 && text[used] >= '0' && text[used] <= '9') {
    value = value * 10 + static_cast<std::uint64_t>(text[used] - '0');
    ++used;
  }
  if (used == 0 || text.front() == '0') return 0;
  text.remove_prefix(used);
  return value;
}

}  // namespace

std::string_view to_string(Guard guard) {
  switch (guard) {
    case Guard::kProcessTree:
      return "processes";
    case Guard::kUser:
      return "user";
    case Guard::kDevices:
      return "devices";
    case Guard::kMemory:
      return "memory";
    case Guard::kProcesses:
      return "process-count";
    case Guard::kCpu:
      return "cpu";
    case Guard::kFolders:
      return "folders";
    case Guard::kCores:
      return "cores";
    case Guard::kSyscalls:
      return "syscalls";
    case Guard::kProcessList:
      return "process-list";
  }
  return "?";
}

std::string encode(const Message& message) {
  std::string bytes;
  Encoder out(bytes);
  out.u64(message.index() + 1);
  std::visit([&](const auto& m) { put(out, m); }, message);
  return bytes;
}

std::optional<Message> decode(std::string_view bytes) {
  if (bytes.size() > kMaxMessage) return std::nullopt;
  Decoder in(bytes);
  std::optional<Message> message = get_message(in);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return message;
}

std::string encode_request(const LaunchRequest& r) {
  std::string bytes;
  Encoder out(bytes);
  out.u64(kProtocolVersion);
  out.text(r.boot_id);
  out.u64(r.user.uid);
  out.u64(r.umask);
  put_list(out, r.command);
  put_list(out, r.environment);
  out.text(r.workdir);
  out.text(r.output);
  out.u64(r.time_limit_ms);
  out.u64(r.grace_ms);
  out.u64(r.output_file_bytes);
  out.u64(r.output_files);
  out.u64(r.devices.size());
  for (const DeviceNumber device : r.devices) {
    out.u64(device.major);
    out.u64(device.minor);
  }
  out.u64(r.memory_bytes);
  out.u64(r.max_processes);
  out.u64(r.cpus);
  out.text(r.near_cpus);
  out.text(r.near_nodes);
  out.boolean(r.private_folders);
  out.u64(r.output_limit_bytes);
  out.text(r.error);
  out.boolean(r.truncate_output);
  out.u64(r.limit_signal);
  out.u64(r.limit_signal_before_ms);
  out.boolean(r.limit_signal_first_only);
  out.text(r.prolog);
  out.text(r.epilog);
  out.boolean(r.takes_input);
  put_terminal(out, r.terminal);
  out.u64(r.idle_timeout_ms);
  out.boolean(r.hide_processes);
  out.u64(r.start_timeout_ms);
  put_container(out, r.container);
  return bytes;
}

std::optional<LaunchRequest> decode_request(std::string_view bytes) {
  if (bytes.size() > kMaxRequest) return std::nullopt;
  Decoder in(bytes);
  LaunchRequest r;
  if (in.u64() != kProtocolVersion) return std::nullopt;
  r.boot_id = in.text();
  r.user.uid = get_u32(in);
  r.umask = get_u32(in);
  r.command = get_list(in);
  r.environment = get_list(in);
  r.workdir = get_c_text(in);
  r.output = get_c_text(in);
  r.time_limit_ms = in.u64();
  r.grace_ms = in.u64();
  r.output_file_bytes = in.u64();
  r.output_files = get_u32(in);
  r.devices = get_devices(in);
  r.memory_bytes = in.u64();
  r.max_processes = in.u64();
  r.cpus = get_u32(in);
  r.near_cpus = get_number_list(in);
  r.near_nodes = get_number_list(in);
  r.private_folders = in.boolean();
  r.output_limit_bytes = in.u64();
  r.error = get_c_text(in);
  r.truncate_output = in.boolean();
  r.limit_signal = get_u8(in);
  r.limit_signal_before_ms = in.u64();
  r.limit_signal_first_only = in.boolean();
  r.prolog = get_c_text(in);
  r.epilog = get_c_text(in);
  r.takes_input = in.boolean();
  r.terminal = get_terminal(in);
  r.idle_timeout_ms = in.u64();
  r.hide_processes = in.boolean();
  r.start_timeout_ms = in.u64();
  r.container = get_container(in);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  if (r.command.empty() || r.command.front().size() < 2 || r.umask > 0777) return std::nullopt;
  if (r.limit_signal > kMaxSignal || r.start_timeout_ms == 0) return std::nullopt;
  if (!r.takes_input && (r.terminal || r.idle_timeout_ms != 0)) return std::nullopt;
  return r;
}

std::string encode_channel_start(const ChannelStart& start) {
  std::string bytes;
  Encoder out(bytes);
  out.u64(kProtocolVersion);
  put_terminal(out, start.terminal);
  out.u64(start.port);
  out.boolean(start.without_output);
  return bytes;
}

std::optional<ChannelStart> decode_channel_start(std::string_view bytes) {
  Decoder in(bytes);
  if (in.u64() != kProtocolVersion) return std::nullopt;
  ChannelStart start;
  start.terminal = get_terminal(in);
  start.port = get_u16(in);
  start.without_output = in.boolean();
  if (!in.ok() || !in.at_end()) return std::nullopt;
  if (start.terminal && start.port != 0) return std::nullopt;
  return start;
}

std::string encode_opened_file(const OpenedFile& opened) {
  std::string bytes;
  Encoder out(bytes);
  out.i64(opened.error);
  out.text(cut(opened.why));
  return bytes;
}

std::optional<OpenedFile> decode_opened_file(std::string_view bytes) {
  Decoder in(bytes);
  OpenedFile opened;
  const std::int64_t error = in.i64();
  if (error < 0 || error > INT32_MAX) in.reject();
  opened.error = static_cast<std::int32_t>(error);
  opened.why = get_text(in);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return opened;
}

std::uint64_t pack(const StopSignal& stop) {
  constexpr std::uint64_t kMaxGrace = (std::uint64_t{1} << kGraceBits) - 1;
  const std::uint64_t grace = stop.grace_ms < kMaxGrace ? stop.grace_ms : kMaxGrace;
  return grace | static_cast<std::uint64_t>(stop.code) << kGraceBits |
         static_cast<std::uint64_t>(stop.without_grace ? 1 : 0) << (kGraceBits + 8);
}

StopSignal unpack(std::uint64_t bits) {
  StopSignal stop;
  stop.grace_ms = bits & ((std::uint64_t{1} << kGraceBits) - 1);
  stop.code = static_cast<std::uint8_t>(bits >> kGraceBits);
  stop.without_grace = ((bits >> (kGraceBits + 8)) & 1) != 0;
  return stop;
}

int stop_signal_number() {
  return SIGRTMIN + 5;
}

int limit_signal_number() {
  return SIGRTMIN + 6;
}

int send_signal_number() {
  return SIGRTMIN + 7;
}

int container_signal_number() {
  return SIGRTMIN + 8;
}

std::string attempts_dir(std::string_view folder) {
  return std::string(folder) + "/attempts";
}

std::string attempt_name(model::AttemptId attempt) {
  return number(attempt.job.value) + "-" + number(attempt.attempt);
}

std::optional<model::AttemptId> parse_attempt_name(std::string_view name) {
  const std::uint64_t job = take_number(name);
  if (job == 0 || name.empty() || name.front() != '-') return std::nullopt;
  name.remove_prefix(1);
  const std::uint64_t attempt = take_number(name);
  if (attempt == 0 || attempt > UINT32_MAX || !name.empty()) return std::nullopt;
  return model::AttemptId{model::JobId(job), static_cast<std::uint32_t>(attempt)};
}

std::string record_path(std::string_view folder, model::AttemptId attempt) {
  return attempts_dir(folder) + "/" + attempt_name(attempt);
}

OutputPlace output_place(model::JobId job) {
  return {number(job.value / 1000), number(job.value)};
}

std::string output_folder(model::AttemptId attempt) {
  const OutputPlace place = output_place(attempt.job);
  return place.thousand + "/" + place.job;
}

std::string output_name(model::AttemptId attempt, std::string_view what) {
  return number(attempt.attempt) + "." + std::string(what);
}

std::string output_path(std::string_view folder, model::AttemptId attempt) {
  return std::string(folder) + "/output/" + output_folder(attempt) + "/" + output_name(attempt);
}

std::string full_part_path(std::string_view output_path, std::uint64_t first_byte) {
  return std::string(output_path) + "." + number(first_byte);
}

std::string session_name(model::AttemptId attempt) {
  return attempt_name(attempt) + ".session";
}

std::string container_report_name(model::AttemptId attempt) {
  return attempt_name(attempt) + ".container";
}

std::string owed_epilog_name(model::AttemptId attempt) {
  return attempt_name(attempt) + ".epilog";
}

std::string root_token(std::string_view real_path, std::uint64_t device, std::uint64_t inode) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::uint64_t hash = base::hash64(real_path, device * 0x9e3779b97f4a7c15ULL ^ inode);
  std::string token;
  for (int i = 0; i < 12; ++i, hash >>= 4) token.push_back(kDigits[hash & 15]);
  return token;
}

}  // namespace gpu_platform::node
