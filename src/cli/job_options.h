#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/convert/field_plan.h"
#include "base/result.h"
#include "base/units.h"
#include "cli/arguments.h"
#include "cli/client_names.h"
#include "cli/json_view.h"
#include "gpu_platform/v1/options.pb.h"

namespace gpu_platform::cli {

// The options that say what a job is to be, and how their values become a request's JSON. They
// follow from the fields of the API's JobSpec: each says by which options the command line knows it
// (`option` in proto/gpu_platform/v1/jobs.proto).
class JobOptions {
 public:
  enum class Of { kSubmission, kUpdate };
  explicit JobOptions(Of of);
  JobOptions(const JobOptions&) = delete;
  JobOptions& operator=(const JobOptions&) = delete;

  // Adds the options in the order of the fields. This object must outlive `arguments`.
  void define(Arguments& arguments);

  // What was given goes into the fields of `spec`, but for options that the command line works out
  // itself (OPTION_KIND_OWN). Fields that are to be cleared ("none", of an update) are named in
  // `clear`. Errors name the option.
  base::Status put(Json& spec, std::vector<std::string>& clear, base::Instant now) const;

  bool has(std::string_view flag) const;
  // Of an option that takes one value; null where it was not given.
  const std::optional<std::string>& text(std::string_view flag) const;
  // Of one that may be given several times.
  const std::vector<std::string>& texts(std::string_view flag) const;
  // "--name, --time": all of them.
  std::string names() const;

 private:
  struct Given {
    const api::FieldPlan* field = nullptr;
    const v1::CommandOption* option = nullptr;
    std::optional<std::string> text;
    std::vector<std::string> texts;
    bool is_set = false;  // of an option without a value

    bool is_given() const { return text || !texts.empty() || is_set; }
  };
  const Given& find(std::string_view flag) const;
  bool is_cleared(const Given& given) const;

  Of of_;
  std::deque<Given> given_;
};

// --gpus, which is what the job has on all of `nodes`, or --gpus-per-node into gpus, which is what
// it has on each. The error names the option.
base::Status put_gpu_count(Json& spec, const JobOptions& job, std::uint64_t nodes);

// The daemon's message about a field of the specification, with the name of its option in front:
// "time_limit_seconds: 2h asked" becomes "--time: 2h asked". Other messages stay as they are.
Failure with_option_name(Failure failure);

// "H100:1.0,A100:0.5" into gpu_types and gpu_speeds; a type without a number is as fast as the
// first. The error names the option.
base::Status put_gpu_types(Json& spec, const std::vector<std::string>& lists);

}  // namespace gpu_platform::cli
