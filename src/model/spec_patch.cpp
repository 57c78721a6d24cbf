#include "model/spec_patch.h"

namespace gpu_platform::model {

void SpecPatch::drop_what_is_so(const JobSpec& spec) {
  std::uint64_t fresh = 0;
  std::uint64_t bit = 1;
  for_each_spec_field([&](const auto& field) {
    if (!(field.of(*values_) == field.of(spec))) fresh |= bit;
    bit <<= 1;
  });
  keep(given_ & fresh);
}

void SpecPatch::apply_to(JobSpec& spec) const {
  for_each_given([&](const auto& field) { field.of(spec) = field.of(*values_); });
  if (get(&JobSpec::time_limit) != nullptr) spec.time_limit_default_of.reset();
}

void SpecPatch::keep(std::uint64_t given) {
  given_ = given;
  JobSpec values;
  for_each_given([&](const auto& field) { field.of(values) = field.of(*values_); });
  values_ = std::move(values);
}

}  // namespace gpu_platform::model
