#include "api/rest/proto_comments.h"

#include <algorithm>
#include <string_view>

#include <google/protobuf/descriptor.pb.h>

#include "base/check.h"
#include "gpu_platform/v1/descriptors.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// One space after "//", and the line breaks of the source, are of no use to a reader of the
// document; an empty line divides paragraphs.
template <class Descriptor>
std::string comment_before(const Descriptor* descriptor) {
  pb::SourceLocation location;
  if (descriptor == nullptr || !descriptor->GetSourceLocation(&location)) return {};
  std::string out;
  std::string_view rest = location.leading_comments;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (line.empty()) {
      if (!rest.empty()) out += "\n\n";
      continue;
    }
    if (!out.empty() && !out.ends_with('\n')) out.push_back(' ');
    out += line;
  }
  return out;
}

}  // namespace

ProtoComments::ProtoComments() {
  const std::string_view bytes = v1::descriptor_set();
  pb::FileDescriptorSet files;
  CHECK(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  for (const pb::FileDescriptorProto& file : files.file()) {
    CHECK(pool_.BuildFile(file) != nullptr);
  }
}

std::string ProtoComments::of(const pb::Descriptor& type) const {
  return comment_before(pool_.FindMessageTypeByName(type.full_name()));
}

std::string ProtoComments::of(const pb::FieldDescriptor& field) const {
  return comment_before(pool_.FindFieldByName(field.full_name()));
}

std::string ProtoComments::of(const pb::MethodDescriptor& call) const {
  return comment_before(pool_.FindMethodByName(call.full_name()));
}

std::string ProtoComments::of(const pb::ServiceDescriptor& service) const {
  return comment_before(pool_.FindServiceByName(service.full_name()));
}

std::string ProtoComments::of(const pb::EnumDescriptor& type) const {
  return comment_before(pool_.FindEnumTypeByName(type.full_name()));
}

}  // namespace gpu_platform::api
