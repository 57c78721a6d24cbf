#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "base/units.h"
#include "cli/table.h"
#include "gpu_platform/v1/jobs.pb.h"

// A job as text for people.

namespace gpu_platform::cli {

// One line for each job: `jobs list`. A wide one also has the fields of the specification that have
// a `column` in the proto.
Table job_table(bool is_wide);
std::vector<std::string> job_row(const v1::Job& job, base::Instant now, bool is_wide);

// That a specification asks for, on all its nodes.
std::uint64_t total_gpus(const v1::JobSpec& spec);

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
std::string job_page(const v1::Job& job, base::Instant now);

using GpuList = google::protobuf::RepeatedPtrField<v1::GpuUse>;

// "dgx-1:0-2 dgx-2:4,6": nodes with the indices of their GPUs; the nodes alone where there are
// none.
std::string place_of(const GpuList& gpus,
                     const google::protobuf::RepeatedPtrField<std::string>& nodes);
std::string place_of(const v1::Attempt& attempt);
std::string place_of(const v1::Job& job);

// Time from submission to the start, to the end, or to now; empty when not known.
std::string waited(const v1::Job& job, base::Instant now);
// "42", and "40_3" of a member of an array.
std::string shown_id(const v1::Job& job);

}  // namespace gpu_platform::cli
