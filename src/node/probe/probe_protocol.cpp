#include "node/probe/probe_protocol.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "base/codec.h"
#include "hardware/cpu_list.h"

namespace gpu_platform::node {
namespace {

using base::Decoder;
using base::Encoder;
using hardware::GpuDescription;
using hardware::GpuReading;
using hardware::Inventory;

enum class Kind : std::uint64_t {
  kHello = 1,
  kInventory = 2,
  kReadings = 3,
  kError = 4,
  kReadNow = 5,
  kEvents = 6,
  kKernelLog = 7,
};

// ---- one value: overloads by type, so that a structure is the list of its fields
// ------------------

void put(Encoder& out, const std::string& value) {
  out.text(value);
}
void put(Encoder& out, bool value) {
  out.boolean(value);
}
void put(Encoder& out, std::uint32_t value) {
  out.u64(value);
}
void put(Encoder& out, std::uint64_t value) {
  out.u64(value);
}
void put(Encoder& out, std::int32_t value) {
  out.i64(value);
}
void put(Encoder& out, base::Bytes value) {
  out.i64(value.value());
}
void put(Encoder& out, base::Milliwatts value) {
  out.i64(value.value());
}
void put(Encoder& out, const hardware::CpuSet& value) {
  out.text(hardware::format_cpu_list(value));
}
void put(Encoder& out, const hardware::ComputeCapability& value) {
  out.u64(value.major);
  out.u64(value.minor);
}

template <class T>
void put(Encoder& out, const std::optional<T>& value);

template <class Enum>
  requires std::is_enum_v<Enum>
void put(Encoder& out, Enum value) {
  out.u64(static_cast<std::uint64_t>(value));
}

void put(Encoder& out, const hardware::GpuProcess& value) {
  put(out, value.pid);
  put(out, value.memory);
  put(out, value.uses);
  put(out, value.sm_percent);
}

void put(Encoder& out, const model::GpuSlowMetrics& value);
void put(Encoder& out, const model::HostMetrics& value);

void put(Encoder& out, const std::vector<hardware::GpuProcess>& values) {
  out.u64(values.size());
  for (const hardware::GpuProcess& process : values) put(out, process);
}

template <class T>
void put(Encoder& out, const std::optional<T>& value) {
  out.boolean(value.has_value());
  if (value) put(out, *value);
}

void take(Decoder& in, std::string& value) {
  value = in.text();
}
void take(Decoder& in, bool& value) {
  value = in.boolean();
}
void take(Decoder& in, std::uint64_t& value) {
  value = in.u64();
}
void take(Decoder& in, std::uint32_t& value) {
  const std::uint64_t wide = in.u64();
  if (wide > std::numeric_limits<std::uint32_t>::max()) in.reject();
  value = static_cast<std::uint32_t>(wide);
}
void take(Decoder& in, std::int32_t& value) {
  const std::int64_t wide = in.i64();
  if (wide != static_cast<std::int32_t>(wide)) in.reject();
  value = static_cast<std::int32_t>(wide);
}
void take(Decoder& in, base::Bytes& value) {
  value = base::Bytes(in.i64());
  if (value.value() < 0) in.reject();
}
void take(Decoder& in, base::Milliwatts& value) {
  value = base::Milliwatts(in.i64());
}
void take(Decoder& in, hardware::CpuSet& value) {
  auto cpus = hardware::parse_cpu_list(in.text());
  if (!cpus) in.reject();
  value = std::move(cpus).value_or(hardware::CpuSet{});
}
void take(Decoder& in, hardware::ComputeCapability& value) {
  take(in, value.major);
  take(in, value.minor);
}

template <class Enum>
void take_enum(Decoder& in, Enum& value, Enum last) {
  const std::uint64_t number = in.u64();
  if (number > static_cast<std::uint64_t>(last)) in.reject();
  value = static_cast<Enum>(number);
}

void take(Decoder& in, model::RecoveryAction& value) {
  take_enum(in, value, model::RecoveryAction::kUnknown);
}
void take(Decoder& in, hardware::LinkKind& value) {
  take_enum(in, value, hardware::LinkKind::kSystem);
}
void take(Decoder& in, hardware::GpuEventKind& value) {
  take_enum(in, value, hardware::GpuEventKind::kOther);
}
void take(Decoder& in, hardware::GpuCondition& value) {
  take_enum(in, value, hardware::GpuCondition::kNotAnswering);
}
void take(Decoder& in, hardware::ProblemKind& value) {
  take_enum(in, value, hardware::ProblemKind::kOther);
}

void take(Decoder& in, hardware::KernelLineKind& value) {
  take_enum(in, value, hardware::KernelLineKind::kSwitchError);
}

template <class T>
void take(Decoder& in, std::optional<T>& value);

void take(Decoder& in, hardware::GpuProcess& value) {
  take(in, value.pid);
  take(in, value.memory);
  take(in, value.uses);
  take(in, value.sm_percent);
}

void take(Decoder& in, model::GpuSlowMetrics& value);
void take(Decoder& in, model::HostMetrics& value);

template <class T>
void take_list(Decoder& in, std::vector<T>& values) {
  values.resize(in.count());
  for (T& value : values) take(in, value);
}

void take(Decoder& in, std::vector<hardware::GpuProcess>& values) {
  take_list(in, values);
}

template <class T>
void take(Decoder& in, std::optional<T>& value) {
  if (in.boolean()) {
    take(in, value.emplace());
  } else {
    value.reset();
  }
}

// ---- structures: one list of fields for both directions
// ------------------------------------------

template <class Host, class Visit>
void fields_of_host(Host& host, Visit visit) {
  visit(host.name, host.boot_id, host.cpus, host.memory, host.sockets, host.cores);
}

template <class Node, class Visit>
void fields_of_numa_node(Node& node, Visit visit) {
  visit(node.id, node.cpus, node.memory, node.socket);
}

template <class Driver, class Visit>
void fields_of_driver(Driver& driver, Visit visit) {
  visit(driver.driver_version, driver.library_version, driver.cuda_version);
}

template <class Gpu, class Visit>
void fields_of_description(Gpu& gpu, Visit visit) {
  visit(gpu.index, gpu.uuid, gpu.model, gpu.serial, gpu.pci_address, gpu.minor, gpu.memory,
        gpu.numa_node, gpu.cpus, gpu.power_limit, gpu.power_limit_min, gpu.power_limit_max,
        gpu.compute_capability, gpu.mig_enabled, gpu.max_mig_devices, gpu.ecc_enabled,
        gpu.persistence_enabled, gpu.pcie_generation_max, gpu.pcie_width_max, gpu.slowdown_c,
        gpu.problem);
}

template <class Link, class Visit>
void fields_of_link(Link& link, Visit visit) {
  visit(link.a, link.b, link.kind, link.nvlinks, link.nvlink_version);
}

// The metrics that are members of the struct itself.
template <class Metrics, class Visit>
void fields_of_metrics(Metrics& metrics, Visit visit) {
  model::for_each_metric_of(metrics, [&](const auto&, auto& member) { visit(member); });
}

template <class Reading, class Visit>
void fields_of_reading(Reading& gpu, Visit visit) {
  using Metrics =
      std::conditional_t<std::is_const_v<Reading>, const model::GpuMetrics, model::GpuMetrics>;
  visit(gpu.index, gpu.condition, gpu.problem);
  fields_of_metrics<Metrics>(gpu, visit);
  visit(gpu.processes, gpu.slow);
}

template <class Event, class Visit>
void fields_of_event(Event& event, Visit visit) {
  visit(event.index, event.uuid, event.kind, event.type, event.value, event.gpu_instance,
        event.count);
}

// All but the registers.
template <class Line, class Visit>
void fields_of_kernel_line(Line& line, Visit visit) {
  visit(line.kind, line.place, line.code, line.is_fatal, line.pid, line.gpu_instance, line.text,
        line.count);
}

struct Writer {
  Encoder& out;
  void operator()(const auto&... fields) const { (put(out, fields), ...); }
};

struct Reader {
  Decoder& in;
  void operator()(auto&... fields) const { (take(in, fields), ...); }
};

void put(Encoder& out, const model::GpuSlowMetrics& value) {
  fields_of_metrics(value, Writer{out});
}
void take(Decoder& in, model::GpuSlowMetrics& value) {
  fields_of_metrics(value, Reader{in});
}

void put(Encoder& out, const model::HostMetrics& value) {
  model::for_each_host_metric([&](const auto& row) { put(out, value.*row.member); });
}
void take(Decoder& in, model::HostMetrics& value) {
  model::for_each_host_metric([&](const auto& row) { take(in, value.*row.member); });
}

// Returns the maximum for one GPU, so that the message keeps its bound for any number of GPUs.
std::size_t max_processes(std::size_t gpus) {
  constexpr std::size_t kOfAll = 4096;
  return std::min(kMaxReportedProcesses, kOfAll / std::max<std::size_t>(gpus, 1));
}

void encode_body(Encoder& out, const ProbeHello& hello) {
  out.u64(hello.version);
}
void encode_body(Encoder& out, const ProbeError& error) {
  out.text(error.message);
}

void encode_body(Encoder& out, const Inventory& inventory) {
  const Writer write{out};
  fields_of_host(inventory.host, write);
  out.u64(inventory.host.numa_nodes.size());
  for (const auto& node : inventory.host.numa_nodes) fields_of_numa_node(node, write);
  fields_of_driver(inventory.driver, write);
  out.u64(inventory.gpus.size());
  for (const GpuDescription& gpu : inventory.gpus) fields_of_description(gpu, write);
  out.u64(inventory.links.size());
  for (const hardware::GpuLink& link : inventory.links) fields_of_link(link, write);
  write(inventory.fallback);
  out.boolean(inventory.problem.has_value());
  if (inventory.problem) write(inventory.problem->kind, inventory.problem->message);
}

void encode_body(Encoder& out, const ProbeReadings& readings) {
  const Writer write{out};
  out.u64(readings.gpus.size());
  const std::size_t most = max_processes(readings.gpus.size());
  for (const GpuReading& gpu : readings.gpus) {
    if (gpu.processes && gpu.processes->size() > most) {
      GpuReading fewer = gpu;
      fewer.processes->resize(most);
      fields_of_reading(fewer, write);
    } else {
      fields_of_reading(gpu, write);
    }
  }
  out.i64(readings.began_ns);
  write(readings.events, readings.slow_reads, readings.is_partial, readings.host,
        readings.is_energy_new);
}

void encode_body(Encoder& out, const ProbeEvents& events) {
  const Writer write{out};
  out.u64(events.events.size());
  for (const hardware::GpuEvent& event : events.events) fields_of_event(event, write);
  write(events.dropped);
  out.i64(events.until_ns);
}

void encode_body(Encoder& out, const ProbeKernelLog& log) {
  const Writer write{out};
  out.u64(log.lines.size());
  for (const hardware::KernelLine& line : log.lines) {
    fields_of_kernel_line(line, write);
    out.u64(line.registers.size());
    for (const std::uint32_t value : line.registers) write(value);
  }
  write(log.lost, log.problem);
}

// A damaged count must not cost memory: an entry is far larger here than in the message.
std::size_t gpu_count(Decoder& in) {
  const std::size_t count = in.count();
  if (count <= kMaxReportedGpus) return count;
  in.reject();
  return 0;
}

Inventory decode_inventory(Decoder& in) {
  Inventory inventory;
  const Reader read{in};
  fields_of_host(inventory.host, read);
  inventory.host.numa_nodes.resize(in.count());
  for (hardware::NumaNode& node : inventory.host.numa_nodes) fields_of_numa_node(node, read);
  fields_of_driver(inventory.driver, read);
  inventory.gpus.resize(gpu_count(in));
  for (GpuDescription& gpu : inventory.gpus) fields_of_description(gpu, read);
  inventory.links.resize(in.count());
  for (hardware::GpuLink& link : inventory.links) fields_of_link(link, read);
  read(inventory.fallback);
  if (in.boolean()) {
    hardware::LibraryProblem& problem = inventory.problem.emplace();
    read(problem.kind, problem.message);
  }
  return inventory;
}

ProbeReadings decode_readings(Decoder& in) {
  ProbeReadings readings;
  const Reader read{in};
  readings.gpus.resize(gpu_count(in));
  for (GpuReading& gpu : readings.gpus) fields_of_reading(gpu, read);
  readings.began_ns = in.i64();
  read(readings.events, readings.slow_reads, readings.is_partial, readings.host,
       readings.is_energy_new);
  return readings;
}

ProbeEvents decode_events(Decoder& in) {
  ProbeEvents events;
  const Reader read{in};
  events.events.resize(in.count());
  for (hardware::GpuEvent& event : events.events) fields_of_event(event, read);
  read(events.dropped);
  events.until_ns = in.i64();
  return events;
}

ProbeKernelLog decode_kernel_log(Decoder& in) {
  ProbeKernelLog log;
  const Reader read{in};
  log.lines.resize(in.count());
  for (hardware::KernelLine& line : log.lines) {
    fields_of_kernel_line(line, read);
    line.registers.resize(in.count());
    for (std::uint32_t& value : line.registers) read(value);
  }
  read(log.lost, log.problem);
  return log;
}

constexpr Kind kind_of(const ProbeHello&) {
  return Kind::kHello;
}
constexpr Kind kind_of(const Inventory&) {
  return Kind::kInventory;
}
constexpr Kind kind_of(const ProbeReadings&) {
  return Kind::kReadings;
}
constexpr Kind kind_of(const ProbeError&) {
  return Kind::kError;
}
constexpr Kind kind_of(const ProbeEvents&) {
  return Kind::kEvents;
}
constexpr Kind kind_of(const ProbeKernelLog&) {
  return Kind::kKernelLog;
}

std::unexpected<base::Error> malformed(std::string_view what) {
  return base::fail(base::ErrorCode::kDataLoss, fmt::format("probe protocol: {}", what));
}

}  // namespace

std::string encode(const ProbeMessage& message) {
  std::string bytes;
  Encoder out(bytes);
  std::visit(
      [&](const auto& body) {
        out.u64(static_cast<std::uint64_t>(kind_of(body)));
        encode_body(out, body);
      },
      message);
  return bytes;
}

base::Result<ProbeMessage> decode_probe_message(std::string_view bytes) {
  if (bytes.size() > kMaxProbeMessage) return malformed("message too long");
  Decoder in(bytes);
  ProbeMessage message;
  switch (static_cast<Kind>(in.u64())) {
    case Kind::kHello: {
      ProbeHello hello;
      take(in, hello.version);
      if (in.ok() && hello.version != kProbeProtocolVersion) {
        return malformed(fmt::format("the probe has protocol version {}, the daemon {}",
                                     hello.version, kProbeProtocolVersion));
      }
      message = hello;
      break;
    }
    case Kind::kInventory:
      message = decode_inventory(in);
      break;
    case Kind::kReadings:
      message = decode_readings(in);
      break;
    case Kind::kError:
      message = ProbeError{std::string(in.text())};
      break;
    case Kind::kEvents:
      message = decode_events(in);
      break;
    case Kind::kKernelLog:
      message = decode_kernel_log(in);
      break;
    default:
      return malformed("unknown message");
  }
  if (!in.ok() || !in.at_end()) return malformed("damaged message");
  return message;
}

std::string encode(const ReadNow& request) {
  std::string bytes;
  Encoder out(bytes);
  out.u64(static_cast<std::uint64_t>(Kind::kReadNow));
  out.u64(request.uuids.size());
  for (const std::string& uuid : request.uuids) out.text(uuid);
  put(out, request.with_energy);
  return bytes;
}

base::Result<ReadNow> decode_probe_request(std::string_view bytes) {
  Decoder in(bytes);
  if (static_cast<Kind>(in.u64()) != Kind::kReadNow) return malformed("unknown request");
  ReadNow request;
  request.uuids.resize(gpu_count(in));
  for (std::string& uuid : request.uuids) uuid = in.text();
  take(in, request.with_energy);
  if (!in.ok() || !in.at_end()) return malformed("damaged request");
  return request;
}

}  // namespace gpu_platform::node
