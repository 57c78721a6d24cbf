#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/shared.h"
#include "model/job_spec_fields.h"

namespace gpu_platform::model {

// New values for some members of a specification; the others stay as they are. A member that may
// never change (Change::kNever) is never in it.
class SpecPatch {
 public:
  // The new value; null where the member stays.
  template <class Owner, class Value>
  const Value* get(Value Owner::* member) const {
    if ((given_ & bit_of(member)) == 0) return nullptr;
    return &SpecField<Owner, Value>{.member = member}.of(*values_);
  }

  template <class Owner, class Value>
  SpecPatch& set(Value Owner::* member, std::type_identity_t<Value> value) {
    const std::uint64_t bit = bit_of(member);
    CHECK(bit != 0);
    JobSpec values = *values_;
    SpecField<Owner, Value>{.member = member}.of(values) = std::move(value);
    values_ = std::move(values);
    given_ |= bit;
    return *this;
  }

  template <class Owner, class Value>
  void drop(Value Owner::* member) {
    keep(given_ & ~bit_of(member));
  }
  // Leaves only what is new to that specification.
  void drop_what_is_so(const JobSpec& spec);

  bool empty() const { return given_ == 0; }
  // Returns whether the patch changes what the job needs of nodes.
  bool changes_request() const { return (given_ & kRequestBits) != 0; }

  void apply_to(JobSpec& spec) const;
  JobSpec applied_to(JobSpec spec) const {
    apply_to(spec);
    return spec;
  }

  // Calls visit(field) with the row of each member that is in it, in the table's order; its value
  // is field.of(values()).
  template <class Visit>
  void for_each_given(Visit&& visit) const {
    std::uint64_t rest = given_;
    for_each_spec_field([&](const auto& field) {
      if ((rest & 1) != 0) visit(field);
      rest >>= 1;
    });
  }
  // The members that are not in the patch have their defaults.
  const JobSpec& values() const { return *values_; }

  friend bool operator==(const SpecPatch&, const SpecPatch&) = default;

 private:
  // Returns the row of the member; zero for a member that may not change.
  template <class Owner, class Value>
  static constexpr std::uint64_t bit_of(Value Owner::* member) {
    std::uint64_t bit = 1;
    std::uint64_t found = 0;
    for_each_spec_field([&](const auto& field) {
      if constexpr (std::is_same_v<decltype(field.member), Value Owner::*>) {
        if (field.member == member && field.change != Change::kNever) found = bit;
      }
      bit <<= 1;
    });
    return found;
  }
  void keep(std::uint64_t given);

  // The first rows of the table.
  static constexpr std::uint64_t kRequestBits =
      (std::uint64_t{1} << std::tuple_size_v<decltype(kRequestFields)>)-1;

  std::uint64_t given_ = 0;  // bit i: the table's row i
  base::Shared<JobSpec> values_;
};
static_assert(kSpecFieldCount <= 64, "more rows than SpecPatch has bits");

}  // namespace gpu_platform::model
