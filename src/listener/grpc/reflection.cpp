#include <array>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <google/protobuf/descriptor.pb.h>

#include "api/convert/services.h"
#include "base/check.h"
#include "gpu_platform/v1/descriptors.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "listener/grpc/methods.h"
#include "listener/grpc/wire.h"

namespace gpu_platform::listener {

namespace {

namespace pb = google::protobuf;
namespace protocol = grpc::reflection::v1;

// Those of the protocols beside the platform's own calls.
std::array<const pb::FileDescriptor*, 2> own_files() {
  return {protocol::ServerReflectionRequest::descriptor()->file(),
          grpc::health::v1::HealthCheckRequest::descriptor()->file()};
}

// The files of the calls, with their comments.
class Catalogue {
 public:
  Catalogue() {
    const std::string_view bytes = v1::descriptor_set();
    pb::FileDescriptorSet files;
    CHECK(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    for (pb::FileDescriptorProto& file : *files.mutable_file()) add(std::move(file));
    for (const pb::FileDescriptor* file : own_files()) {
      pb::FileDescriptorProto own;
      file->CopyTo(&own);
      add(std::move(own));
    }
  }

  const pb::DescriptorPool& pool() const { return pool_; }
  // Appends the file behind those that it imports, each once.
  void append(const pb::FileDescriptor& file, std::set<std::string>& told,
              protocol::FileDescriptorResponse& out) const {
    if (!told.insert(file.name()).second) return;
    for (int i = 0; i < file.dependency_count(); ++i) append(*file.dependency(i), told, out);
    out.add_file_descriptor_proto(bytes_.at(file.name()));
  }

 private:
  void add(pb::FileDescriptorProto file) {
    CHECK(pool_.BuildFile(file) != nullptr);
    bytes_.emplace(file.name(), file.SerializeAsString());
  }

  pb::DescriptorPool pool_;
  std::map<std::string, std::string> bytes_;
};

const Catalogue& catalogue() {
  static const Catalogue kCatalogue;
  return kCatalogue;
}

const pb::FileDescriptor* file_of_extension(const protocol::ExtensionRequest& asked) {
  const pb::DescriptorPool& pool = catalogue().pool();
  const auto* type = pool.FindMessageTypeByName(asked.containing_type());
  if (type == nullptr) return nullptr;
  const auto* extension = pool.FindExtensionByNumber(type, asked.extension_number());
  return extension == nullptr ? nullptr : extension->file();
}

void refuse_question(std::string_view what, protocol::ServerReflectionResponse& out) {
  protocol::ErrorResponse& error = *out.mutable_error_response();
  error.set_error_code(static_cast<int>(GrpcCode::kNotFound));
  error.set_error_message(fmt::format("there is no {}", what));
}

void put_file(const pb::FileDescriptor* file, const std::string& what,
              protocol::ServerReflectionResponse& out) {
  if (file == nullptr) return refuse_question(what, out);
  std::set<std::string> told;
  catalogue().append(*file, told, *out.mutable_file_descriptor_response());
}

void put_services(protocol::ServerReflectionResponse& out) {
  protocol::ListServiceResponse& list = *out.mutable_list_services_response();
  for (const pb::ServiceDescriptor* service : api::services()) {
    list.add_service()->set_name(service->full_name());
  }
  for (const pb::FileDescriptor* file : own_files()) {
    list.add_service()->set_name(file->service(0)->full_name());
  }
}

void put_extensions(const std::string& type, protocol::ServerReflectionResponse& out) {
  const pb::DescriptorPool& pool = catalogue().pool();
  const auto* message = pool.FindMessageTypeByName(type);
  if (message == nullptr) return refuse_question("message of the name " + type, out);
  std::vector<const pb::FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  protocol::ExtensionNumberResponse& list = *out.mutable_all_extension_numbers_response();
  list.set_base_type_name(type);
  for (const auto* extension : extensions) list.add_extension_number(extension->number());
}

}  // namespace

base::Result<std::string> reflect(std::string_view bytes) {
  protocol::ServerReflectionResponse out;
  protocol::ServerReflectionRequest& question = *out.mutable_original_request();
  if (!question.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return base::invalid("request", "request: these bytes are no ServerReflectionRequest");
  }
  out.set_valid_host(question.host());
  const pb::DescriptorPool& pool = catalogue().pool();
  using Question = protocol::ServerReflectionRequest;
  switch (question.message_request_case()) {
    case Question::kFileByFilename:
      put_file(pool.FindFileByName(question.file_by_filename()),
               "file " + question.file_by_filename(), out);
      break;
    case Question::kFileContainingSymbol:
      put_file(pool.FindFileContainingSymbol(question.file_containing_symbol()),
               "name " + question.file_containing_symbol(), out);
      break;
    case Question::kFileContainingExtension:
      put_file(file_of_extension(question.file_containing_extension()), "extension of that number",
               out);
      break;
    case Question::kAllExtensionNumbersOfType:
      put_extensions(question.all_extension_numbers_of_type(), out);
      break;
    case Question::kListServices:
      put_services(out);
      break;
    case Question::MESSAGE_REQUEST_NOT_SET:
      return base::invalid("request", "request: the question is missing");
  }
  return out.SerializeAsString();
}

}  // namespace gpu_platform::listener
