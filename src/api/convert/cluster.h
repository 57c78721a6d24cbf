#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "api/convert/job.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "model/gpu_reading.h"
#include "model/node.h"

namespace gpu_platform::api {

// Returns the newest reading of the GPU with that UUID; null if there is none.
using ReadingOf = std::function<std::shared_ptr<const model::GpuReading>(std::string_view uuid)>;

using GpuParts = google::protobuf::RepeatedPtrField<v1::GpuPart>;

// Adds the parts of the GPU that jobs hold, without their walls.
void add_parts(const model::Gpu& gpu, GpuParts& out);
// Returns what new jobs may get of the GPU of that node, in GPUs.
double free_gpus_of(const model::Node& node, const model::Gpu& gpu);

// Fill cleared messages; they cannot fail. `reading` is null if there is none.
void to_proto(const model::Node& node, v1::Node& out);
void to_proto(const model::Gpu& gpu, const model::Node& node, std::uint32_t index,
              const model::GpuReading* reading, v1::Gpu& out);

// Fills in all nodes and GPUs with their totals; the caller sets the figures of jobs.
void to_proto(const Nodes& nodes, const ReadingOf& reading_of, v1::Status& out);

}  // namespace gpu_platform::api
