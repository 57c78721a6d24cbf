#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/member_count.h"
#include "model/gpu_metrics.h"

// What is measured of a host beside its GPUs, and the one table of it, in the manner of
// gpu_metrics.h. Counters grow since the host was booted. Of devices, the sums of all that are not
// part of another (no partitions, no loop devices, no loopback).

namespace gpu_platform::model {

struct HostMetrics {
  std::optional<std::uint32_t> cpu_percent;       // of all CPUs together, since the last reading
  std::optional<std::uint64_t> load_thousandths;  // runnable tasks over a minute
  std::optional<base::Bytes> memory_total;
  std::optional<base::Bytes> memory_available;
  std::optional<base::Bytes> swap_used;
  std::optional<base::Bytes> disk_read;
  std::optional<base::Bytes> disk_written;
  std::optional<base::Bytes> network_received;
  std::optional<base::Bytes> network_sent;
  std::optional<base::Bytes> disk_total;  // of the file system of the daemon's data
  std::optional<base::Bytes> disk_free;

  friend bool operator==(const HostMetrics&, const HostMetrics&) = default;
};

template <class Value>
struct HostMetric {
  std::string_view name;
  std::optional<Value> HostMetrics::* member = nullptr;
  GpuUnit unit = GpuUnit::kNone;
  ExportedAs exported = {};
};

template <class Value>
constexpr HostMetric<Value> host_metric(std::string_view name,
                                        std::optional<Value> HostMetrics::* member, GpuUnit unit,
                                        ExportedAs exported) {
  return {name, member, unit, exported};
}

// The order is that of the members, and of the probe's messages.
inline constexpr auto kHostMetrics = std::tuple{
    host_metric("cpu_percent", &HostMetrics::cpu_percent, GpuUnit::kPercent,
                {"gpu_platform_host_cpu_percent", "CPU use of the host (in %)."}),
    host_metric("load_thousandths", &HostMetrics::load_thousandths, GpuUnit::kPermille,
                {"gpu_platform_host_load", "Runnable tasks of the host, over a minute."}),
    host_metric("memory_total_bytes", &HostMetrics::memory_total, GpuUnit::kBytes,
                {"gpu_platform_host_memory_bytes", "Memory of the host."}),
    host_metric("memory_available_bytes", &HostMetrics::memory_available, GpuUnit::kBytes,
                {"gpu_platform_host_memory_available_bytes",
                 "Memory that new programs of the host could have."}),
    host_metric("swap_used_bytes", &HostMetrics::swap_used, GpuUnit::kBytes,
                {"gpu_platform_host_swap_used_bytes", "Swap space in use."}),
    host_metric("disk_read_bytes", &HostMetrics::disk_read, GpuUnit::kBytes,
                {"gpu_platform_host_disk_read_bytes_total", "Bytes read from the host's disks.",
                 GpuCount::kCounter}),
    host_metric("disk_written_bytes", &HostMetrics::disk_written, GpuUnit::kBytes,
                {"gpu_platform_host_disk_written_bytes_total", "Bytes written to the host's disks.",
                 GpuCount::kCounter}),
    host_metric("network_received_bytes", &HostMetrics::network_received, GpuUnit::kBytes,
                {"gpu_platform_host_network_received_bytes_total",
                 "Bytes received by the host's network devices.", GpuCount::kCounter}),
    host_metric("network_sent_bytes", &HostMetrics::network_sent, GpuUnit::kBytes,
                {"gpu_platform_host_network_sent_bytes_total",
                 "Bytes sent by the host's network devices.", GpuCount::kCounter}),
    host_metric("disk_total_bytes", &HostMetrics::disk_total, GpuUnit::kBytes,
                {"gpu_platform_host_disk_bytes", "Size of the daemon's file system."}),
    host_metric("disk_free_bytes", &HostMetrics::disk_free, GpuUnit::kBytes,
                {"gpu_platform_host_disk_free_bytes", "Free bytes of the daemon's file system."}),
};

inline constexpr std::size_t kHostMetricCount = std::tuple_size_v<decltype(kHostMetrics)>;
static_assert(base::member_count<HostMetrics>() == kHostMetricCount);

// Calls visit(row) with every row, in the table's order.
template <class Visit>
constexpr void for_each_host_metric(Visit&& visit) {
  std::apply([&](const auto&... row) { (visit(row), ...); }, kHostMetrics);
}

}  // namespace gpu_platform::model
