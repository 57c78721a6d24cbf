#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "api/convert/field_plan.h"
#include "base/result.h"

namespace gpu_platform::api {

// The fields of an answer that a client asks for: "id,state,spec.name". A path names a field of the
// answer by its JSON name, and after a dot a field of the object or of the objects in the list
// there. A field that is named as a whole has all of its parts. The answer has the fields in its
// own order.
//
// Immutable; safe from any thread.
class FieldSelection {
 public:
  static constexpr std::size_t kMaxBytes = 2048;

  // kInvalidArgument (field "fields"): an empty or unknown path; the message lists the known names.
  static base::Result<FieldSelection> parse(std::string_view text,
                                            const google::protobuf::Descriptor& answer);

  const MessagePlan& plan() const { return *plans_.front(); }
  // Returns the plan of the objects in a field of the answer; null if the field is not selected or
  // has no objects.
  const MessagePlan* plan_of_field(std::string_view name) const;

 private:
  FieldSelection() = default;
  base::Result<std::unique_ptr<MessagePlan>> select(const MessagePlan& whole,
                                                    std::vector<std::string_view> paths);

  std::vector<std::unique_ptr<MessagePlan>> plans_;  // the answer's first
};

}  // namespace gpu_platform::api
