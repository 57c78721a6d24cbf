#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "base/units.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "gpu_platform/v1/jobs.pb.h"

// A job as text for people.

namespace gpu_platform::cli {

// "100 MiB".
std::string size_text(std::uint64_t bytes);

// Returns where the job runs, why it waits, or how it ended.
std::string place_or_reason(const v1::Job& job);

// A field of the specification that has a `column` in the proto: wide lists show it.
struct SpecColumn {
  std::string title;
  std::function<std::string(const v1::Job& job, base::Instant now)> cell;
};
std::vector<SpecColumn> spec_columns();

// The files that its output and its standard error go to; before the first attempt as they were
// asked for. Standard error: empty if it goes to the output's.
std::string output_file(const v1::Job& job);
std::string error_file(const v1::Job& job);

// How it ended, "exit code 3", "signal SIGKILL", "lost: NODE_LOST"; empty before.
std::string result_of(const v1::Job& job);
std::string result_of(const v1::Attempt& attempt);

// "12 % of 4 CPUs, 45 % of 16 GiB, 20 % of 1h"; empty where nothing is known.
std::string efficiency_of(const v1::Job& job);

// All of a job, as "key: value" lines: `jobs describe`.
std::string job_page(const v1::Job& job, const PageStyle& style);

using GpuList = google::protobuf::RepeatedPtrField<v1::GpuUse>;

// "dgx-1:0-2 dgx-2:4,6": nodes with the indices of their GPUs; the nodes alone where there are
// none. "0.5 of dgx-1:3" for a part.
std::string place_of(const GpuList& gpus,
                     const google::protobuf::RepeatedPtrField<std::string>& nodes);
std::string place_of(const v1::Attempt& attempt);
std::string place_of(const v1::Job& job);

// The time that it waited until its latest start, its end, or now, without the time that earlier
// attempts ran; nothing when that is not known.
std::optional<base::Duration> waiting_time(const v1::Job& job, base::Instant now);
std::string waited(const v1::Job& job, base::Instant now);
// The time that its latest attempt has run; nothing before.
std::optional<base::Duration> running_time(const v1::Job& job, base::Instant now);
std::string ran(const v1::Job& job, base::Instant now);
// "42", and "40_3" of a member of an array.
std::string shown_id(const v1::Job& job);

}  // namespace gpu_platform::cli
