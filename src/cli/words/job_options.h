#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/convert/field_plan.h"
#include "base/result.h"
#include "base/units.h"
#include "cli/client_names.h"
#include "cli/words/arguments.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/options.pb.h"

namespace gpu_platform::cli {

// The options that define a job, and the request that their values make. They follow from the
// fields of the API's JobSpec: each has the options of the command line that set it (`option` in
// proto/gpu_platform/v1/jobs.proto).
class JobOptions {
 public:
  enum class Of { kSubmission, kUpdate };
  explicit JobOptions(Of of);
  JobOptions(const JobOptions&) = delete;
  JobOptions& operator=(const JobOptions&) = delete;

  // Adds the options in the order of the fields. This object must outlive `arguments`.
  void define(Arguments& arguments);

  // Takes what `earlier`, made for the same, gives and these options do not. Variables, labels and
  // annotations add up, and these options win where a name is in both. Of --time and --gpu-time,
  // one here takes the place of the other one there.
  void fill_from(const JobOptions& earlier);

  // Puts what was given into the fields of `spec`, in place of what is there, but for options that
  // the command line works out itself (OPTION_KIND_OWN). Labels and annotations are added. Fields
  // that are to be cleared ("none", of an update) are named in `clear`. Errors name the option.
  base::Status put(v1::JobSpec& spec, std::vector<std::string>& clear, base::Instant now) const;

  bool has(std::string_view flag) const;
  // The value of an option; null if it was not given.
  const std::optional<std::string>& text(std::string_view flag) const;
  // The values of an option that may be repeated.
  const std::vector<std::string>& texts(std::string_view flag) const;
  // Returns the option of that field that was given, or the first that the field has; empty if it
  // has none.
  std::string option_of(std::string_view field) const;
  // Returns the value of that option as it was typed; empty unless it was given once.
  std::string typed(std::string_view flag) const;
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
  base::Status put_given(const Given& given, v1::JobSpec& spec, base::Instant now) const;
  bool is_cleared(const Given& given) const;

  Of of_;
  std::deque<Given> given_;
};

// Puts --gpus, which is what the job has on all of `nodes`, or --gpus-per-node into gpus, which is
// what it has on each. The error names the option.
// A part of one GPU ("0.5") becomes one GPU and its share.
base::Status put_gpu_count(v1::JobSpec& spec, const JobOptions& job, std::uint64_t nodes);

// Puts "H100:1.0,A100:0.5" into gpu_types and gpu_speeds, in place of what is there; a type without
// a number is as fast as the first. Without lists nothing changes. The error names the option.
base::Status put_gpu_types(v1::JobSpec& spec, const std::vector<std::string>& lists);

// Returns the failure with the option in place of the field that the daemon names: "gpus 9: why"
// becomes "--gpus 9: why", with the value as it was typed, and "gpu_types[0]: why" becomes
// "--gpu-type: why". Of the options of one field it is the one that was given. Other failures stay
// as they are.
Failure with_option_name(Failure failure, const JobOptions* given = nullptr);
// The same for a sentence whose field is known by its first word: "gpus 64: why".
std::string with_option_name(const std::string& sentence);

}  // namespace gpu_platform::cli
