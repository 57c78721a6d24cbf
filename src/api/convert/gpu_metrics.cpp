#include "api/convert/gpu_metrics.h"

#include <array>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "base/check.h"

namespace gpu_platform::api {

namespace {

using google::protobuf::FieldDescriptor;
using MetricFields = std::array<const FieldDescriptor*, model::kGpuMetricCount>;

class MetricWriter {
 public:
  MetricWriter(google::protobuf::Message& out, const FieldDescriptor& field, model::GpuUnit unit)
      : out_(out), field_(field), reflection_(*out.GetReflection()), unit_(unit) {}

  void put(bool value) { reflection_.SetBool(&out_, &field_, value); }
  void put(model::RecoveryAction value) {
    reflection_.SetString(&out_, &field_, std::string(model::to_string(value)));
  }
  template <class Number>
  void put(Number value) {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection_.SetDouble(&out_, &field_, in_unit_of_api(value));
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection_.SetUInt32(&out_, &field_, static_cast<std::uint32_t>(whole(value)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection_.SetUInt64(&out_, &field_, whole(value));
      case FieldDescriptor::CPPTYPE_STRING:  // the only set of bits
        for (std::string& name : model::throttle_names(whole(value))) {
          reflection_.AddString(&out_, &field_, std::move(name));
        }
        return;
      default:
        CHECK(false);
    }
  }

 private:
  template <class Value>
  static auto number_in(Value value) {
    if constexpr (requires { value.value(); }) {
      return value.value();
    } else {
      return value;
    }
  }
  template <class Value>
  static std::uint64_t whole(Value value) {
    return static_cast<std::uint64_t>(number_in(value));
  }
  // The API has watts, and percent.
  template <class Value>
  double in_unit_of_api(Value value) const {
    const auto number = static_cast<double>(number_in(value));
    if (unit_ == model::GpuUnit::kMilliwatts) return number / 1000;
    return unit_ == model::GpuUnit::kPermille ? number / 10 : number;
  }

  google::protobuf::Message& out_;
  const FieldDescriptor& field_;
  const google::protobuf::Reflection& reflection_;
  const model::GpuUnit unit_;
};

// Null for the metrics that the message does not have.
MetricFields fields_of(const google::protobuf::Descriptor& message, model::GpuMessage which) {
  MetricFields fields{};
  std::size_t i = 0;
  model::for_each_gpu_metric([&](const auto& row) {
    const std::size_t at = i++;
    if (row.message != which) return;
    fields[at] = message.FindFieldByName(std::string(row.name));
    CHECK(fields[at] != nullptr);
  });
  return fields;
}

void put(const model::GpuMetrics& gpu, const MetricFields& fields, google::protobuf::Message& out) {
  std::size_t i = 0;
  model::for_each_gpu_metric([&](const auto& row) {
    const FieldDescriptor* const field = fields[i++];
    if (field == nullptr) return;
    if (const auto value = row.of(gpu)) MetricWriter(out, *field, row.unit).put(*value);
  });
}

}  // namespace

void put_metrics(const model::GpuMetrics& gpu, v1::Gpu& out) {
  static const MetricFields kFields = fields_of(*v1::Gpu::descriptor(), model::GpuMessage::kGpu);
  put(gpu, kFields, out);
}

void put_metrics(const model::GpuMetrics& gpu, v1::GpuHealth& out) {
  static const MetricFields kFields =
      fields_of(*v1::GpuHealth::descriptor(), model::GpuMessage::kGpuHealth);
  put(gpu, kFields, out);
}

}  // namespace gpu_platform::api
