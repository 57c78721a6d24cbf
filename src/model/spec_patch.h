#pragma once

#include <bitset>
#include <cstddef>
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
    const std::size_t row = row_of(member);
    if (row == kSpecFieldCount || !given_.test(row)) return nullptr;
    return &SpecField<Owner, Value>{.member = member}.of(*values_);
  }

  template <class Owner, class Value>
  SpecPatch& set(Value Owner::* member, std::type_identity_t<Value> value) {
    const std::size_t row = row_of(member);
    CHECK(row != kSpecFieldCount);
    JobSpec values = *values_;
    SpecField<Owner, Value>{.member = member}.of(values) = std::move(value);
    values_ = std::move(values);
    given_.set(row);
    return *this;
  }

  template <class Owner, class Value>
  void drop(Value Owner::* member) {
    Rows rest = given_;
    if (const std::size_t row = row_of(member); row != kSpecFieldCount) rest.reset(row);
    keep(rest);
  }
  // Leaves only what is new to that specification.
  void drop_what_is_so(const JobSpec& spec);

  bool empty() const { return given_.none(); }
  // Returns whether the patch changes what the job needs of nodes.
  bool changes_request() const;

  void apply_to(JobSpec& spec) const;
  JobSpec applied_to(JobSpec spec) const {
    apply_to(spec);
    return spec;
  }

  // Calls visit(field) with the row of each member that is in it, in the table's order; its value
  // is field.of(values()).
  template <class Visit>
  void for_each_given(Visit&& visit) const {
    std::size_t row = 0;
    for_each_spec_field([&](const auto& field) {
      if (given_.test(row++)) visit(field);
    });
  }
  // The members that are not in the patch have their defaults.
  const JobSpec& values() const { return *values_; }

  friend bool operator==(const SpecPatch&, const SpecPatch&) = default;

 private:
  using Rows = std::bitset<kSpecFieldCount>;

  // Returns the row of the member; kSpecFieldCount for a member that may not change.
  template <class Owner, class Value>
  static constexpr std::size_t row_of(Value Owner::* member) {
    std::size_t row = 0;
    std::size_t found = kSpecFieldCount;
    for_each_spec_field([&](const auto& field) {
      if constexpr (std::is_same_v<decltype(field.member), Value Owner::*>) {
        if (field.member == member && field.change != Change::kNever) found = row;
      }
      ++row;
    });
    return found;
  }
  void keep(const Rows& given);

  Rows given_;  // of the table
  base::Shared<JobSpec> values_;
};

}  // namespace gpu_platform::model
