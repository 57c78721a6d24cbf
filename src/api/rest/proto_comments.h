#pragma once

#include <string>

#include <google/protobuf/descriptor.h>

namespace gpu_platform::api {

// The comments of the .proto files, for the documents that are made of them: each without its line
// breaks, with an empty line between paragraphs. Empty: there is none.
//
// The program's own descriptors have no comments, so this reads the files' descriptors anew. Cost
// of making one: all files.
class ProtoComments {
 public:
  ProtoComments();

  std::string of(const google::protobuf::Descriptor& type) const;
  std::string of(const google::protobuf::FieldDescriptor& field) const;
  std::string of(const google::protobuf::MethodDescriptor& call) const;
  std::string of(const google::protobuf::ServiceDescriptor& service) const;
  std::string of(const google::protobuf::EnumDescriptor& type) const;

 private:
  google::protobuf::DescriptorPool pool_;
};

}  // namespace gpu_platform::api
