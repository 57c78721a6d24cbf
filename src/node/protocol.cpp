#include "node/protocol.h"

#include <signal.h>

#include <algorithm>
#include <iterator>

#include "base/codec.h"
#include "base/hash.h"
#include "base/message_fields.h"
#include "model/job.h"
#include "model/job_signal.h"
#include "model/job_spec.h"

namespace gpu_platform::node {

namespace {

using base::Decoder;
using base::Encoder;
using base::FieldReader;
using base::FieldsOf;
using base::FieldWriter;

constexpr std::uint64_t kGraceBits = 48;
constexpr std::uint8_t kMaxSignal = 64;

// Fields of each message, for writing and for reading; the number of a message is its place in
// Message, counted from 1.

void fields(auto& f, FieldsOf<model::AttemptId> auto& m) {
  f.number(m.job.value);
  f.number(m.attempt);
  f.check(m.job.valid() && m.attempt != 0);
}

void fields(auto& f, FieldsOf<Hello> auto& m) {
  f.number(m.version);
}

void fields(auto& f, FieldsOf<Launch> auto& m) {
  fields(f, m.attempt);
  f.flag(m.in_memory_file);
  f.text(m.request);
  f.check(m.request.size() <= kMaxInlineRequest && m.in_memory_file == m.request.empty());
}

void fields(auto& f, FieldsOf<Stop> auto& m) {
  fields(f, m.attempt);
  f.flag(m.without_grace);
  f.number(m.grace_ms);
  f.number(m.code);
}

void fields(auto& f, FieldsOf<SetLimit> auto& m) {
  fields(f, m.attempt);
  f.number(m.limit_ms);
  f.check(m.limit_ms != 0);
}

void fields(auto& f, FieldsOf<SendSignal> auto& m) {
  fields(f, m.attempt);
  f.number(m.signal);
  f.check(model::is_job_signal(m.signal));
}

void fields(auto& f, FieldsOf<WarnOfMemory> auto& m) {
  fields(f, m.attempt);
  f.number(m.used_mib);
  f.number(m.part_mib);
}

void fields(auto& f, FieldsOf<KillTree> auto& m) {
  fields(f, m.attempt);
}

void fields(auto& f, FieldsOf<Forget> auto& m) {
  f.list(m.attempts, [&](auto& attempt) { fields(f, attempt); }, kMaxForgets);
  f.check(!m.attempts.empty());
}

void fields(auto& f, FieldsOf<RemoveOutput> auto& m) {
  const auto job_id = [&](auto& job) {
    f.number(job.value);
    f.check(job.valid());
  };
  f.list(m.jobs, job_id, kMaxOutputRemovals);
  f.check(!m.jobs.empty());
}

void fields(auto& f, FieldsOf<OpenChannel> auto& m) {
  fields(f, m.attempt);
  f.flag(m.attach);
}

void fields(auto& f, FieldsOf<OpenFile> auto& m) {
  f.number(m.uid);
  f.text(m.path);
  f.check(m.path.starts_with('/') && m.path.size() <= kMaxPath &&
          m.path.find('\0') == std::string::npos);
}

// A name that cannot be an option, a path or anything else than a UUID of NVIDIA's.
bool is_uuid(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.front() != '-' && text.size() <= kMaxUuid &&
         std::ranges::all_of(text, is_allowed);
}

bool is_file_name(std::string_view text) {
  return text.starts_with('/') && text.size() <= kMaxPath &&
         text.find('\0') == std::string_view::npos;
}

void fields(auto& f, FieldsOf<BoardFiles> auto& m) {
  f.text(m.library);
  f.text(m.state);
  f.text(m.nvidia_smi);
  f.check(is_file_name(m.library) && is_file_name(m.state) && is_file_name(m.nvidia_smi));
}

void uuid_field(auto& f, auto& uuid) {
  f.text(uuid);
  f.check(is_uuid(uuid));
}

void fields(auto& f, FieldsOf<RunDriver> auto& m) {
  f.choice(m.verb, kDriverVerbs);
  f.list(m.gpus, [&](auto& uuid) { uuid_field(f, uuid); }, kMaxDriverGpus);
  f.number(m.watts);
  f.number(m.deadline_ms);
  f.optional(m.board, [&](auto& board) { fields(f, board); });
  f.check(!m.gpus.empty() && m.deadline_ms != 0);
  f.check((m.verb == DriverVerb::kPower) == (m.watts != 0));
}

void fields(auto& f, FieldsOf<TimeSliceJob> auto& m) {
  fields(f, m.attempt);
  f.number(m.weight);
  f.check(m.weight != 0);
}

void fields(auto& f, FieldsOf<TimeSlices> auto& m) {
  uuid_field(f, m.gpu);
  f.number(m.slice_ms);
  f.list(m.jobs, [&](auto& job) { fields(f, job); }, kMaxTimeSliceJobs);
  f.check(m.slice_ms != 0 && m.slice_ms <= kMaxSliceMs);
}

void fields(auto& f, FieldsOf<GpuIsIdle> auto& m) {
  uuid_field(f, m.gpu);
}

void fields(auto& f, FieldsOf<MpsJob> auto& m) {
  fields(f, m.attempt);
  f.number(m.percent);
  f.number(m.memory_mib);
  f.check(m.percent >= 1 && m.percent <= 100 && m.memory_mib != 0);
}

void fields(auto& f, FieldsOf<MpsServer> auto& m) {
  uuid_field(f, m.gpu);
  f.number(m.uid);
  f.text(m.program);
  f.optional(m.board, [&](auto& board) { fields(f, board); });
  f.list(m.jobs, [&](auto& job) { fields(f, job); }, kMaxMpsJobs);
  f.flag(m.private_folders);
  f.check(is_file_name(m.program));
}

void fields(auto& f, FieldsOf<MpsState> auto& m) {
  uuid_field(f, m.gpu);
  f.number(m.uid);
  f.flag(m.is_ready);
  f.flag(m.is_lost);
  f.text(m.folder);
  f.list(m.jobs, [&](auto& attempt) { fields(f, attempt); }, kMaxMpsJobs);
  f.cut_text(m.why, kMaxText);
  f.check(m.folder.size() <= kMaxPath && m.is_ready == is_file_name(m.folder));
  f.check(!m.is_ready || !m.is_lost);
}

constexpr std::size_t kMaxFailure = 512;

void fields(auto& f, FieldsOf<DriverResult> auto& m) {
  uuid_field(f, m.gpu);
  f.cut_text(m.failure, kMaxFailure);
}

void fields(auto& f, FieldsOf<DriverAnswer> auto& m) {
  f.list(m.gpus, [&](auto& result) { fields(f, result); }, kMaxDriverGpus);
  f.cut_text(m.detail, kMaxText);
  f.flag(m.is_refused);
  f.flag(m.is_untried);
  f.check(!m.gpus.empty());
}

void fields(auto& f, FieldsOf<GuardState> auto& m) {
  f.choice(m.guard, kGuards);
  f.flag(m.held);
  f.cut_text(m.why, kMaxText);
}

void fields(auto& f, FieldsOf<Welcome> auto& m) {
  f.number(m.version);
  f.number(m.pid);
  f.either(m.isolation, Isolation::kCgroup, Isolation::kAdvisory);
  f.flag(m.can_switch_user);
  f.text(m.folder);
  f.check(m.folder.size() <= kMaxText);
  f.cut_text(m.detail, kMaxText);
  f.list(m.guards, [&](auto& guard) { fields(f, guard); }, kGuards);
}

void fields(auto& f, FieldsOf<Refused> auto& m) {
  f.cut_text(m.why, kMaxText);
}

void fields(auto& f, FieldsOf<Launched> auto& m) {
  fields(f, m.attempt);
  f.number(m.supervisor_pid);
}

void fields(auto& f, FieldsOf<Exists> auto& m) {
  fields(f, m.attempt);
}

void fields(auto& f, FieldsOf<LaunchFailed> auto& m) {
  fields(f, m.attempt);
  f.cut_text(m.why, kMaxText);
}

void fields(auto& f, FieldsOf<StopSent> auto& m) {
  fields(f, m.attempt);
  f.flag(m.delivered);
}

void fields(auto& f, FieldsOf<TreeState> auto& m) {
  fields(f, m.attempt);
  f.flag(m.empty);
}

void fields(auto& f, FieldsOf<ForgetRefused> auto& m) {
  fields(f, m.attempt);
}

template <std::size_t I = 0>
std::optional<Message> message_of(std::uint64_t number, FieldReader& f) {
  if constexpr (I == std::variant_size_v<Message>) {
    return std::nullopt;
  } else {
    if (number != I + 1) return message_of<I + 1>(number, f);
    std::variant_alternative_t<I, Message> m;
    fields(f, m);
    return m;
  }
}

// ---- what to run, and what a channel is for

// A text that ends with its only NUL.
void c_text(auto& f, auto& text) {
  f.text(text);
  f.check(!text.empty() && text.find('\0') == text.size() - 1);
}

void c_texts(auto& f, auto& list) {
  f.list(list, [&](auto& text) { c_text(f, text); });
}

// Accepts only digits, commas and dashes; the code that binds gives them a meaning.
void number_list(auto& f, auto& text) {
  f.text(text);
  f.check(text.size() <= kMaxNumberList &&
          text.find_first_not_of("0123456789,-") == std::string_view::npos);
}

void fields(auto& f, FieldsOf<model::TerminalSize> auto& m) {
  f.number(m.columns);
  f.number(m.rows);
  f.check(m.columns != 0 && m.rows != 0);
}

void fields(auto& f, FieldsOf<DeviceNumber> auto& m) {
  f.number(m.major);
  f.number(m.minor);
}

void fields(auto& f, FieldsOf<ContainerRequest> auto& m) {
  c_text(f, m.image);
  c_texts(f, m.mounts);
  c_texts(f, m.tmpfs);
  f.number(m.shm_bytes);
  f.number(m.network);
  f.number(m.pull);
  c_text(f, m.entrypoint);
  c_text(f, m.workdir);
  c_text(f, m.platform);
  c_texts(f, m.annotations);
  c_texts(f, m.gpus);
  c_texts(f, m.board_files);
  f.check(m.network < model::kContainerNetworks && m.pull < model::kImagePulls);
}

void fields(auto& f, FieldsOf<LaunchRequest> auto& m) {
  f.text(m.boot_id);
  f.number(m.user.uid);
  f.number(m.umask);
  c_texts(f, m.command);
  c_texts(f, m.environment);
  c_text(f, m.workdir);
  c_text(f, m.output);
  f.number(m.time_limit_ms);
  f.number(m.grace_ms);
  f.number(m.output_file_bytes);
  f.number(m.output_files);
  f.list(m.devices, [&](auto& device) { fields(f, device); }, kMaxDevices);
  f.number(m.memory_bytes);
  f.number(m.max_processes);
  f.number(m.cpus);
  number_list(f, m.near_cpus);
  number_list(f, m.near_nodes);
  f.flag(m.private_folders);
  f.number(m.output_limit_bytes);
  c_text(f, m.error);
  f.flag(m.truncate_output);
  f.number(m.limit_signal);
  f.number(m.limit_signal_before_ms);
  f.flag(m.limit_signal_first_only);
  c_text(f, m.prolog);
  c_text(f, m.epilog);
  f.flag(m.takes_input);
  f.optional(m.terminal, [&](auto& size) { fields(f, size); });
  f.number(m.idle_timeout_ms);
  f.flag(m.hide_processes);
  f.number(m.start_timeout_ms);
  fields(f, m.container);
  f.flag(m.takes_turns);
  c_text(f, m.mps_gpu);
  c_text(f, m.mps_program);
  f.check(!m.command.empty() && m.command.front().size() >= 2 && m.umask <= 0777);
  f.check(m.limit_signal <= kMaxSignal && m.start_timeout_ms != 0);
  f.check(m.takes_input || (!m.terminal && m.idle_timeout_ms == 0));
  const bool has_mps = m.mps_gpu.size() > 1;
  f.check(has_mps == (m.mps_program.size() > 1));
  f.check(!has_mps ||
          (is_uuid(m.mps_gpu.substr(0, m.mps_gpu.size() - 1)) && m.mps_program.front() == '/'));
}

void fields(auto& f, FieldsOf<ChannelStart> auto& m) {
  f.optional(m.terminal, [&](auto& size) { fields(f, size); });
  f.number(m.port);
  f.flag(m.without_output);
  f.check(!m.terminal || m.port == 0);
}

std::string versioned(const auto& value) {
  std::string bytes;
  Encoder out(bytes);
  out.u64(kProtocolVersion);
  FieldWriter writer(out);
  fields(writer, value);
  return bytes;
}

template <class Value>
std::optional<Value> read_versioned(std::string_view bytes) {
  Decoder in(bytes);
  if (in.u64() != kProtocolVersion) return std::nullopt;
  Value value;
  FieldReader reader(in);
  fields(reader, value);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return value;
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

bool hides_other_gpus(const std::vector<GuardState>& guards) {
  return std::ranges::any_of(guards, [](const GuardState& state) {
    return state.guard == Guard::kDevices && (state.held || state.why == kRunsAsDaemonsUser);
  });
}

namespace {
constexpr std::string_view kDriverVerbNames[kDriverVerbs] = {"reset", "quick-check", "deep-check",
                                                             "power"};
}

std::string_view to_string(DriverVerb verb) {
  return kDriverVerbNames[static_cast<std::size_t>(verb)];
}

std::optional<DriverVerb> parse_driver_verb(std::string_view name) {
  const auto* found = std::ranges::find(kDriverVerbNames, name);
  if (found == std::end(kDriverVerbNames)) return std::nullopt;
  return static_cast<DriverVerb>(found - std::begin(kDriverVerbNames));
}

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
  FieldWriter writer(out);
  std::visit([&](const auto& m) { fields(writer, m); }, message);
  return bytes;
}

std::optional<Message> decode(std::string_view bytes) {
  if (bytes.size() > kMaxMessage) return std::nullopt;
  Decoder in(bytes);
  const std::uint64_t number = in.u64();
  FieldReader reader(in);
  std::optional<Message> message = message_of(number, reader);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return message;
}

std::string encode_request(const LaunchRequest& request) {
  return versioned(request);
}

std::optional<LaunchRequest> decode_request(std::string_view bytes) {
  if (bytes.size() > kMaxRequest) return std::nullopt;
  return read_versioned<LaunchRequest>(bytes);
}

std::string encode_channel_start(const ChannelStart& start) {
  return versioned(start);
}

std::optional<ChannelStart> decode_channel_start(std::string_view bytes) {
  return read_versioned<ChannelStart>(bytes);
}

std::string encode_opened_file(const OpenedFile& opened) {
  std::string bytes;
  Encoder out(bytes);
  out.i64(opened.error);
  out.text(std::string_view(opened.why).substr(0, kMaxText));
  return bytes;
}

std::optional<OpenedFile> decode_opened_file(std::string_view bytes) {
  Decoder in(bytes);
  OpenedFile opened;
  const std::int64_t error = in.i64();
  if (error < 0 || error > INT32_MAX) in.reject();
  opened.error = static_cast<std::int32_t>(error);
  FieldReader(in).cut_text(opened.why, kMaxText);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return opened;
}

std::string encode_driver_answer(const DriverAnswer& answer) {
  return versioned(answer);
}

std::optional<DriverAnswer> decode_driver_answer(std::string_view bytes) {
  if (bytes.size() > kMaxDriverAnswer) return std::nullopt;
  return read_versioned<DriverAnswer>(bytes);
}

DriverAnswer failed_answer(const std::vector<std::string>& gpus, std::string_view why) {
  DriverAnswer answer;
  for (const std::string& gpu : gpus) answer.gpus.push_back({gpu, std::string(why)});
  return answer;
}

DriverAnswer refused_answer(const std::vector<std::string>& gpus, std::string_view why) {
  DriverAnswer answer = failed_answer(gpus, why);
  answer.is_refused = true;
  return answer;
}

DriverAnswer untried_answer(const std::vector<std::string>& gpus, std::string_view why) {
  DriverAnswer answer = failed_answer(gpus, why);
  answer.is_untried = true;
  return answer;
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

WarnOfMemory warning_of_idle(model::AttemptId attempt, std::uint32_t stops_in_minutes) {
  return {attempt, stops_in_minutes, 0};
}

std::optional<std::uint32_t> minutes_of_idle(const WarnOfMemory& warning) {
  return warning.part_mib == 0 ? std::optional(warning.used_mib) : std::nullopt;
}

std::uint64_t pack(const WarnOfMemory& warning) {
  return std::uint64_t{warning.used_mib} << 32 | warning.part_mib;
}

WarnOfMemory unpack_warning(std::uint64_t bits) {
  return {{}, static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
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

int warning_signal_number() {
  return SIGRTMIN + 9;
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

std::string mps_name(std::string_view gpu, std::uint32_t uid) {
  constexpr std::size_t kDigits = 16;
  const std::size_t kind = gpu.find('-');  // "GPU-", "MIG-"
  std::string name;
  for (const char c : gpu.substr(kind == std::string_view::npos ? 0 : kind + 1)) {
    if (c != '-' && name.size() < kDigits) name.push_back(c);
  }
  return name + "-" + std::to_string(uid);
}

std::string mps_folder(std::string_view token, std::string_view gpu, std::uint32_t uid) {
  return std::string(kMpsRoot) + "/" + std::string(token) + "/" + mps_name(gpu, uid);
}

std::string root_token(std::string_view real_path, std::uint64_t device, std::uint64_t inode) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::uint64_t hash = base::hash64(real_path, device * 0x9e3779b97f4a7c15ULL ^ inode);
  std::string token;
  for (int i = 0; i < 12; ++i, hash >>= 4) token.push_back(kDigits[hash & 15]);
  return token;
}

}  // namespace gpu_platform::node
