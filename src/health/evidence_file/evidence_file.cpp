#include "health/evidence_file/evidence_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"

namespace gpu_platform::health {

namespace {

using Json = nlohmann::json;
using model::Evidence;
using model::EvidenceKind;
using model::EvidenceSource;

constexpr std::uint64_t kFirstNamedJob = std::uint64_t{1} << 48;
constexpr double kLastSecond = 9e9;

struct Spelling {
  std::string_view word;
  EvidenceKind kind;
};
constexpr Spelling kSpellings[] = {
    {"JOB_START", EvidenceKind::kJobStarted},
    {"JOB_END", EvidenceKind::kJobEnded},
    {"GPU_LOST", EvidenceKind::kLost},
    {"FALLEN_OFF", EvidenceKind::kLost},
    {"ECC", EvidenceKind::kEccUncorrected},
    {"ECC_DBE", EvidenceKind::kEccUncorrected},
    {"ECC_SBE", EvidenceKind::kEccCorrected},
    {"ROW_REMAP_PENDING", EvidenceKind::kRemapPending},
    {"ROW_REMAP_FAILED", EvidenceKind::kRemapFailed},
    {"PAGE_RETIREMENT_PENDING", EvidenceKind::kRetirementPending},
    {"TEMPERATURE", EvidenceKind::kHeat},
    {"THERMAL", EvidenceKind::kSlowdown},
    {"THROTTLE", EvidenceKind::kSlowdown},
    {"PCIE", EvidenceKind::kPcieWidth},
    {"NVLINK", EvidenceKind::kNvlinkDown},
    {"NODE_REBOOT", EvidenceKind::kNodeRestarted},
    {"BURN_IN", EvidenceKind::kCheck},
    {"DIAG", EvidenceKind::kCheck},
    {"HANG", EvidenceKind::kJobHung},
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-' || c == ' ') c = '_';
  }
  return out;
}

std::optional<EvidenceKind> kind_of(std::string_view word) {
  const std::string name = upper(word);
  if (const auto kind = model::parse_evidence_kind(name)) return kind;
  for (const Spelling& each : kSpellings) {
    if (each.word == name) return each.kind;
  }
  return std::nullopt;
}

EvidenceSource source_for(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::kXid:
    case EvidenceKind::kRecoveryAction:
    case EvidenceKind::kUnavailable:
    case EvidenceKind::kPoison:
      return EvidenceSource::kDriver;
    case EvidenceKind::kJobStarted:
    case EvidenceKind::kJobEnded:
    case EvidenceKind::kStartFailed:
    case EvidenceKind::kJobHung:
      return EvidenceSource::kJob;
    case EvidenceKind::kNodeCondition:
      return EvidenceSource::kCluster;
    case EvidenceKind::kNodeRestarted:
    case EvidenceKind::kReset:
    case EvidenceKind::kCheck:
      return EvidenceSource::kPlatform;
    case EvidenceKind::kComplaint:
    case EvidenceKind::kCleared:
      return EvidenceSource::kPerson;
    default:
      return EvidenceSource::kReading;
  }
}

bool is_of_job(EvidenceKind kind) {
  return kind == EvidenceKind::kJobStarted || kind == EvidenceKind::kJobEnded ||
         kind == EvidenceKind::kJobHung || kind == EvidenceKind::kStartFailed;
}
bool may_be_of_node(EvidenceKind kind) {
  return kind == EvidenceKind::kNodeCondition || kind == EvidenceKind::kNodeRestarted ||
         kind == EvidenceKind::kReset || kind == EvidenceKind::kCheck ||
         kind == EvidenceKind::kComplaint || kind == EvidenceKind::kCleared;
}

// Reads the fields of one line; the first mistake stays.
class LineReader {
 public:
  LineReader(const Json& object, std::size_t line) : object_(object), line_(line) {}

  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  const std::optional<base::Error>& error() const { return error_; }
  void fail(std::string_view field, std::string why) {
    if (error_) return;
    error_ = base::Error{base::ErrorCode::kInvalidArgument,
                         fmt::format("line {}: {}: {}", line_, field, why), std::string(field)};
  }

  std::string text(const char* key) {
    if (!has(key)) return {};
    const Json& value = object_.at(key);
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return value.dump();
    fail(key, "it must be text");
    return {};
  }
  bool flag(const char* key) {
    if (!has(key)) return false;
    const Json& value = object_.at(key);
    if (value.is_boolean()) return value.get<bool>();
    fail(key, "it must be true or false");
    return false;
  }
  std::int64_t number(const char* key, std::int64_t least, std::int64_t most, std::int64_t absent) {
    return has(key) ? number_of(object_.at(key), key, least, most) : absent;
  }
  std::int64_t number_of(const Json& value, const char* key, std::int64_t least,
                         std::int64_t most) {
    std::optional<double> number;
    if (value.is_number()) number = value.get<double>();
    if (value.is_string()) number = parse_number(value.get_ref<const std::string&>());
    if (!number || !std::isfinite(*number) || *number < static_cast<double>(least) ||
        *number > static_cast<double>(most)) {
      fail(key, fmt::format("{} is not a number from {} to {}", value.dump(), least, most));
      return least;
    }
    return static_cast<std::int64_t>(*number);
  }
  base::Instant time_at(const char* key) {
    const Json& value = object_.at(key);
    if (value.is_number()) {
      const double seconds = value.get<double>();
      if (seconds > 0 && seconds < kLastSecond) return instant(seconds);
    } else if (value.is_string()) {
      const std::string& text = value.get_ref<const std::string&>();
      if (const auto at = base::parse_rfc3339(text)) return *at;
      if (const auto seconds = parse_number(text);
          seconds && *seconds > 0 && *seconds < kLastSecond) {
        return instant(*seconds);
      }
    }
    fail(key, fmt::format("{} is not a time: write \"2026-07-01T12:00:00Z\" or seconds since 1970",
                          value.dump()));
    return {};
  }
  const Json& at(const char* key) const { return object_.at(key); }

 private:
  static base::Instant instant(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds);
    const auto rest = static_cast<std::int64_t>((seconds - static_cast<double>(whole)) * 1e6);
    return base::Instant(whole * 1'000'000'000 + rest * 1'000);
  }
  static std::optional<double> parse_number(const std::string& text) {
    if (text.starts_with("0x") || text.starts_with("0X")) {
      std::uint64_t number = 0;
      const char* const end = text.data() + text.size();
      const auto [last, error] = std::from_chars(text.data() + 2, end, number, 16);
      return error == std::errc() && last == end ? std::optional(static_cast<double>(number))
                                                 : std::nullopt;
    }
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
  }

  const Json& object_;
  std::size_t line_;
  std::optional<base::Error> error_;
};

bool is_uuid(std::string_view name) {
  return name.starts_with("GPU-") || name.starts_with("MIG-");
}

class FileReader {
 public:
  base::Result<EvidenceFile> read(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      const std::size_t first = line.find_first_not_of(" \t\r");
      if (first == std::string_view::npos || line[first] == '#') continue;
      TRY(read_line(line, number));
    }
    finish();
    return std::move(file_);
  }

 private:
  base::Status read_line(std::string_view line, std::size_t number);
  base::Status read_event(LineReader& reader, std::size_t number, EvidenceKind kind);
  void read_gpus(LineReader& reader, EvidenceLine& line);
  GpuName gpu_of(LineReader& reader, const Json& value, const char* key, const std::string& node);
  model::JobId job_of(LineReader& reader);
  void read_end(LineReader& reader, EvidenceLine& line);
  void finish();

  EvidenceFile file_;
  std::map<std::string, model::JobId, std::less<>> jobs_;
  std::map<std::string, GpuName, std::less<>> by_uuid_;  // those that an index names, too
  std::map<std::string, std::string, std::less<>> node_of_;
  std::set<std::string> unknown_;
};

base::Status FileReader::read_line(std::string_view line, std::size_t number) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) {
    return base::invalid("", fmt::format("line {}: it is not a JSON object: write one event a "
                                         "line, as docs/health-evidence.md shows",
                                         number));
  }
  LineReader reader(object, number);
  if (!reader.has("kind")) {
    // The head of a story, as labelled sets have it.
    if (reader.has("story")) {
      if (reader.has("until")) file_.until = std::max(file_.until, reader.time_at("until"));
      return {};
    }
    reader.fail("kind", "it is missing; write what was seen, such as \"xid\" or \"job_ended\"");
    return std::unexpected(*reader.error());
  }
  const std::string word = reader.text("kind");
  if (upper(word) == "INVENTORY") {
    const auto most = std::int64_t{1} << 32;
    file_.inventory.push_back({reader.text("gpu_type"),
                               static_cast<std::size_t>(reader.number("gpus", 1, most, 1)),
                               static_cast<std::size_t>(reader.number("nodes", 1, most, 1))});
    if (reader.error()) return std::unexpected(*reader.error());
    return {};
  }
  const auto kind = kind_of(word);
  if (!kind) {
    if (upper(word) == "END" && reader.has("at")) {
      file_.until = std::max(file_.until, reader.time_at("at"));
    } else if (unknown_.insert(word).second) {
      file_.notes.push_back(fmt::format(
          "line {}: kind \"{}\" is not known, and such lines are skipped", number, word));
    }
    return {};
  }
  return read_event(reader, number, *kind);
}

base::Status FileReader::read_event(LineReader& reader, std::size_t number, EvidenceKind kind) {
  EvidenceLine line;
  line.line = number;
  Evidence& piece = line.piece;
  piece.kind = kind;
  if (!reader.has("at")) {
    reader.fail("at", "it is missing; write \"2026-07-01T12:00:00Z\" or seconds since 1970");
    return std::unexpected(*reader.error());
  }
  piece.at = reader.time_at("at");
  piece.last = reader.has("last") ? std::max(piece.at, reader.time_at("last")) : piece.at;
  constexpr std::int64_t kMaxCode = std::numeric_limits<std::uint32_t>::max();
  constexpr std::int64_t kMaxValue = std::int64_t{1} << 52;
  piece.code =
      static_cast<std::uint32_t>(reader.number(reader.has("xid") ? "xid" : "code", 0, kMaxCode, 0));
  piece.value = reader.number("value", -kMaxValue, kMaxValue, 0);
  piece.count = static_cast<std::uint32_t>(reader.number("count", 1, kMaxCode, 1));
  piece.is_over = reader.flag("over") || reader.flag("is_over");
  piece.pid = static_cast<std::uint32_t>(reader.number("pid", 0, kMaxCode, 0));
  if (reader.has("instance")) {
    piece.gpu_instance = static_cast<std::uint32_t>(reader.number("instance", 0, kMaxCode, 0));
  }
  piece.user = reader.text("user");
  piece.program = reader.text("program");
  piece.text = reader.text("text");
  piece.job = job_of(reader);
  piece.source = source_for(kind);
  if (reader.has("source")) {
    const std::string word = upper(reader.text("source"));
    bool is_known = false;
    for (std::size_t i = 0; i < model::kEvidenceSources; ++i) {
      const auto source = static_cast<EvidenceSource>(i);
      if (to_string(source) != word) continue;
      piece.source = source;
      is_known = true;
    }
    if (!is_known) {
      reader.fail("source", fmt::format("\"{}\" is none of driver, reading, kernel_log, job, "
                                        "cluster, platform, person",
                                        word));
    }
  }
  if (reader.has("registers")) {
    const Json& registers = reader.at("registers");
    if (!registers.is_array() || registers.size() > 16) {
      reader.fail("registers", "it must be a list of up to seven numbers");
    } else {
      for (const Json& each : registers) {
        piece.registers.push_back(
            static_cast<std::uint32_t>(reader.number_of(each, "registers", 0, kMaxCode)));
      }
    }
  }
  if (kind == EvidenceKind::kXid && !reader.has("xid") && !reader.has("code")) {
    reader.fail("xid", "it is missing; write the number of the XID");
  }
  read_gpus(reader, line);
  read_end(reader, line);
  if (is_of_job(kind) && !piece.job.valid() && line.gpus.empty()) {
    reader.fail("job", "it is missing; write a number or a name");
  } else if (kind == EvidenceKind::kJobStarted && line.gpus.empty()) {
    reader.fail("gpus", "it is missing; list the GPUs of the job, such as [0, 1]");
  } else if (!is_of_job(kind) && line.gpus.empty()) {
    if (!may_be_of_node(kind)) {
      reader.fail("gpu", "it is missing; write its index on \"node\", \"node:3\", or its UUID");
    } else if (line.node.empty()) {
      reader.fail("node", "it is missing; write the node's name, or the GPU's in \"gpu\"");
    }
  }
  if (reader.error()) return std::unexpected(*reader.error());
  file_.lines.push_back(std::move(line));
  return {};
}

GpuName FileReader::gpu_of(LineReader& reader, const Json& value, const char* key,
                           const std::string& node) {
  if (value.is_object()) {
    const std::string its_node = value.contains("node") && value["node"].is_string()
                                     ? value["node"].get<std::string>()
                                     : node;
    if (value.contains("gpu")) return gpu_of(reader, value["gpu"], key, its_node);
    if (value.contains("uuid")) return gpu_of(reader, value["uuid"], key, its_node);
  }
  std::string name;
  if (value.is_number_unsigned()) name = value.dump();
  if (value.is_string()) name = value.get<std::string>();
  if (name.empty()) {
    reader.fail(key, fmt::format("{} names no GPU: write its index on \"node\", \"node:3\", or "
                                 "its UUID",
                                 value.dump()));
    return {};
  }
  if (is_uuid(name)) {
    if (!node.empty()) node_of_.emplace(name, node);
    return {node, name, {}};
  }
  const std::size_t colon = name.find(':');
  const bool has_node = colon != std::string::npos && colon == name.rfind(':') && colon > 0 &&
                        name.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                        colon + 1 < name.size();
  if (has_node) return {name.substr(0, colon), name, {}};
  if (node.empty()) {
    reader.fail("node",
                fmt::format("it is missing; GPU {} needs it, or write \"node:{}\"", name, name));
  }
  return {node, fmt::format("{}:{}", node, name), {}};
}

void FileReader::read_gpus(LineReader& reader, EvidenceLine& line) {
  line.node = reader.text("node");
  const std::string type = reader.text("gpu_type");
  if (reader.has("gpu")) {
    line.gpus.push_back(gpu_of(reader, reader.at("gpu"), "gpu", line.node));
    if (reader.has("uuid")) {
      const std::string uuid = reader.text("uuid");
      if (!is_uuid(line.gpus.back().gpu)) by_uuid_.insert_or_assign(uuid, line.gpus.back());
    }
  } else if (reader.has("uuid")) {
    line.gpus.push_back(gpu_of(reader, reader.at("uuid"), "uuid", line.node));
  }
  if (reader.has("gpus")) {
    const Json& gpus = reader.at("gpus");
    if (!gpus.is_array() || gpus.empty()) {
      reader.fail("gpus", "it must be a list of GPUs, such as [0, 1] or [\"n1:0\", \"n2:0\"]");
      return;
    }
    for (const Json& each : gpus) line.gpus.push_back(gpu_of(reader, each, "gpus", line.node));
  }
  for (GpuName& gpu : line.gpus) {
    gpu.type = type;
    if (line.node.empty()) line.node = gpu.node;
  }
}

model::JobId FileReader::job_of(LineReader& reader) {
  const std::string name = reader.text("job");
  if (name.empty()) return {};
  const auto found = jobs_.find(name);
  if (found != jobs_.end()) return found->second;
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data(), end, number);
  const bool is_number =
      error == std::errc() && last == end && number > 0 && number < kFirstNamedJob;
  const model::JobId id(is_number ? number : kFirstNamedJob + jobs_.size());
  jobs_.emplace(name, id);
  file_.job_names.emplace(id, name);
  return id;
}

void FileReader::read_end(LineReader& reader, EvidenceLine& line) {
  if (line.piece.kind != EvidenceKind::kJobEnded) return;
  JobEnd end = line.piece.code == 0 ? JobEnd::kCompleted : JobEnd::kFailed;
  if (reader.has("ended")) {
    const std::string word = upper(reader.text("ended"));
    if (word == "COMPLETED") {
      end = JobEnd::kCompleted;
    } else if (word == "FAILED") {
      end = JobEnd::kFailed;
    } else if (word == "CANCELLED") {
      end = JobEnd::kCancelled;
    } else if (word == "TIMEOUT") {
      end = JobEnd::kTimeout;
    } else {
      reader.fail("ended", fmt::format("\"{}\" is none of completed, failed, cancelled, timeout",
                                       reader.text("ended")));
    }
  }
  if (end == JobEnd::kCompleted) line.piece.code = 0;
  if (end != JobEnd::kCompleted && line.piece.code == 0) line.piece.code = 1;
  line.end = end;
}

void FileReader::finish() {
  for (EvidenceLine& line : file_.lines) {
    for (GpuName& gpu : line.gpus) {
      const auto alias = by_uuid_.find(gpu.gpu);
      if (alias != by_uuid_.end()) {
        gpu.node = alias->second.node;
        gpu.gpu = alias->second.gpu;
      } else if (gpu.node.empty()) {
        const auto node = node_of_.find(gpu.gpu);
        if (node != node_of_.end()) gpu.node = node->second;
      }
    }
    file_.until = std::max(file_.until, line.piece.last);
  }
  std::ranges::stable_sort(file_.lines, [](const EvidenceLine& a, const EvidenceLine& b) {
    return a.piece.at < b.piece.at;
  });
}

}  // namespace

base::Result<EvidenceFile> read_evidence(std::string_view text) {
  return FileReader().read(text);
}

}  // namespace gpu_platform::health
