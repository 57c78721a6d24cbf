#pragma once

#include <string_view>

#include <google/protobuf/message.h>

#include "gpu_platform/v1/use.pb.h"

namespace gpu_platform::cli {

// Calls visit(name, metric) with each metric of the message that is known, in the order of its
// fields.
template <class Visit>
void for_each_metric(const google::protobuf::Message& message, Visit&& visit) {
  const auto* const descriptor = message.GetDescriptor();
  const auto* const reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* const field = descriptor->field(i);
    if (field->message_type() != v1::MetricUse::descriptor() || field->is_repeated()) continue;
    if (!reflection->HasField(message, field)) continue;
    visit(std::string_view(field->name()),
          static_cast<const v1::MetricUse&>(reflection->GetMessage(message, field)));
  }
}

}  // namespace gpu_platform::cli
