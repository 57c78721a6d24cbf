#include "model/spec_patch.h"

#include "base/check.h"
#include "model/job_spec_fields.h"

namespace gpu_platform::model {
namespace {

static_assert(kSpecFieldCount < SpecPatch::kMaxRows);

// Returns the row of a member of the specification; kSpecFieldCount for one that may not change.
std::size_t row_of(const JobSpec& spec, const void* member) {
  std::size_t row = 0;
  std::size_t found = kSpecFieldCount;
  for_each_spec_field([&](const auto& field) {
    if (&field.of(spec) == member && field.change != Change::kNever) found = row;
    ++row;
  });
  return found;
}

}  // namespace

bool SpecPatch::is_given(const void* value) const {
  return given_.test(row_of(*values_, value));
}

void SpecPatch::drop_value(const void* value) {
  Rows rest = given_;
  leave(rest.reset(row_of(*values_, value)));
}

void SpecPatch::drop_what_is_so(const JobSpec& spec) {
  Rows fresh;
  std::size_t row = 0;
  for_each_spec_field(
      [&](const auto& field) { fresh.set(row++, !(field.of(*values_) == field.of(spec))); });
  leave(given_ & fresh);
}

std::string_view SpecPatch::first_name() const {
  std::string_view name;
  for_each_given(*this, [&](const auto& field) {
    if (name.empty()) name = field.name;
  });
  return name;
}

// The first rows of the table are those of the request.
bool SpecPatch::changes_request() const {
  constexpr std::size_t kRequestRows = std::tuple_size_v<decltype(kRequestFields)>;
  return (given_ << (kMaxRows - kRequestRows)).any();
}

void SpecPatch::apply_to(JobSpec& spec) const {
  for_each_given(*this, [&](const auto& field) { field.of(spec) = field.of(*values_); });
  if (get(&JobSpec::time_limit) != nullptr) spec.time_limit_default_of.reset();
  if (get(&ResourceRequest::share_per_gpu) != nullptr) {
    spec.request.tenant = is_part(spec.request) ? Tenant{spec.uid, spec.team} : Tenant();
  }
}

void SpecPatch::keep(JobSpec& values, const void* fresh) {
  const std::size_t row = row_of(values, fresh);
  CHECK(row != kSpecFieldCount);
  values_ = std::move(values);
  given_.set(row);
}

void SpecPatch::leave(const Rows& rows) {
  given_ = rows;
  JobSpec values;
  for_each_given(*this, [&](const auto& field) { field.of(values) = field.of(*values_); });
  values_ = std::move(values);
}

}  // namespace gpu_platform::model
