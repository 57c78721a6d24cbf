#include "model/spec_patch.h"

namespace gpu_platform::model {

void SpecPatch::drop_what_is_so(const JobSpec& spec) {
  Rows fresh;
  std::size_t row = 0;
  for_each_spec_field(
      [&](const auto& field) { fresh.set(row++, !(field.of(*values_) == field.of(spec))); });
  keep(given_ & fresh);
}

// The first rows of the table are those of the request.
bool SpecPatch::changes_request() const {
  constexpr std::size_t kRequestRows = std::tuple_size_v<decltype(kRequestFields)>;
  return (given_ << (kSpecFieldCount - kRequestRows)).any();
}

void SpecPatch::apply_to(JobSpec& spec) const {
  for_each_given([&](const auto& field) { field.of(spec) = field.of(*values_); });
  if (get(&JobSpec::time_limit) != nullptr) spec.time_limit_default_of.reset();
}

void SpecPatch::keep(const Rows& given) {
  given_ = given;
  JobSpec values;
  for_each_given([&](const auto& field) { field.of(values) = field.of(*values_); });
  values_ = std::move(values);
}

}  // namespace gpu_platform::model
