#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "base/units.h"
#include "cli/text/job_names.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "gpu_platform/v1/cluster.pb.h"

// GPUs as text for people.

namespace gpu_platform::cli {

using ClusterGpus = google::protobuf::RepeatedPtrField<v1::Gpu>;
using GpuHealthList = google::protobuf::RepeatedPtrField<v1::GpuHealth>;

// "dgx-h100-1 (emulated)".
std::string marked_name(const std::string& name, bool is_emulated);

// "30 GiB/80 GiB"; the whole alone where the part is not known.
std::string memory_of(std::optional<std::uint64_t> used, std::uint64_t total);
std::string memory_of(const v1::Gpu& gpu);

// "93 %", "41 °C", "300 W"; empty where it was not read.
std::string utilization_of(const v1::Gpu& gpu);
std::string temperature_of(const v1::Gpu& gpu);
std::string power_of(const v1::Gpu& gpu);

// Its reason; that of its whole node without the name and the state, which stand beside it: "node:
// new firmware".
std::string short_reason(const v1::Gpu& gpu);

// Whether every GPU is emulated: then a headline prints it once.
bool all_emulated(const ClusterGpus& gpus);
// " (emulated)", " (8 emulated)", or nothing.
std::string emulated_mark(std::size_t emulated, std::size_t all);

// One row for each GPU: `status --all`; the labels are as "15_5 ada". Without marks, no row says
// that its GPU is emulated.
Table gpu_table(const ClusterGpus& gpus, const JobLabels& labels, bool has_marks);
// One row for each of the GPUs, of which jobs have parts.
Table parts_table(const ClusterGpus& gpus, const JobLabels& labels);
// One row for each GPU that an operator changed.
Table changed_table(const ClusterGpus& gpus, const JobLabels& names);

// Whether the GPU can do its work: free, or given to a job.
bool is_in_service(const v1::Gpu& gpu);

// How many processes of no job are on it that its reason does not name already.
std::size_t unnamed_unmanaged_processes(const v1::Gpu& gpu);

// What is wrong with a GPU: the worst first, empty for nothing.
std::vector<std::string> troubles_of(const v1::GpuHealth& health, base::Instant now);
// One row for each GPU, or only for those with something wrong. Of these the neighbours of one node
// with the same trouble are one row.
struct HealthTableOptions {
  bool with_well = false;
  bool has_marks = false;  // rows say which GPUs are emulated
};
Table health_table(const GpuHealthList& healths, base::Instant now,
                   const HealthTableOptions& options);
// All of one GPU: its story (health_story.h), and its readings as "key: value" lines.
std::string health_page(const v1::GpuHealth& health, const PageStyle& style,
                        const JobLabels& names);

}  // namespace gpu_platform::cli
