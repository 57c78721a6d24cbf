#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/shared.h"
#include "model/job.h"
#include "model/job_spec.h"

namespace gpu_platform::model {

// New values for some members of a specification; the others stay as they are. A member that may
// never change (Change::kNever) is never in it. for_each_given (job_spec_fields.h) visits what is
// in it: the table is not needed here, which nearly every source includes.
class SpecPatch {
 public:
  // The rows of the table of members that a patch has room for.
  static constexpr std::size_t kMaxRows = 128;
  using Rows = std::bitset<kMaxRows>;

  // The new value; null where the member stays.
  template <class Owner, class Value>
  const Value* get(Value Owner::* member) const {
    const Value& value = part<Owner>(*values_).*member;
    return is_given(&value) ? &value : nullptr;
  }

  template <class Owner, class Value>
  SpecPatch& set(Value Owner::* member, std::type_identity_t<Value> value) {
    JobSpec values = *values_;
    Value& place = part<Owner>(values).*member;
    place = std::move(value);
    keep(values, &place);
    return *this;
  }

  template <class Owner, class Value>
  void drop(Value Owner::* member) {
    drop_value(&(part<Owner>(*values_).*member));
  }
  // Leaves only what is new to that specification.
  void drop_what_is_so(const JobSpec& spec);

  bool empty() const { return given_.none(); }
  // Returns the API's name of the first member in the table that is in the patch; empty for none.
  std::string_view first_name() const;
  // Returns whether the patch changes what the job needs of nodes.
  bool changes_request() const;

  void apply_to(JobSpec& spec) const;
  JobSpec applied_to(JobSpec spec) const {
    apply_to(spec);
    return spec;
  }

  // The rows of the members that are in the patch.
  const Rows& given() const { return given_; }
  // The members that are not in the patch have their defaults.
  const JobSpec& values() const { return *values_; }

  friend bool operator==(const SpecPatch&, const SpecPatch&) = default;

 private:
  // What has the member: the specification, or its request.
  template <class Owner, class Spec>
  static auto& part(Spec& spec) {
    if constexpr (std::is_same_v<Owner, JobSpec>) {
      return spec;
    } else {
      return spec.request;
    }
  }

  // `value` is a member of values().
  bool is_given(const void* value) const;
  void drop_value(const void* value);
  // Takes `values`, in which the member `fresh` is new and may change.
  void keep(JobSpec& values, const void* fresh);
  // Leaves only those rows.
  void leave(const Rows& rows);

  Rows given_;  // of the table
  base::Shared<JobSpec> values_;
};

}  // namespace gpu_platform::model
