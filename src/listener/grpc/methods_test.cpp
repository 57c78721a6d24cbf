#include "listener/grpc/methods.h"

#include <set>

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "api/convert/services.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"

namespace gpu_platform::listener {
namespace {

namespace protocol = grpc::reflection::v1;

const google::protobuf::MethodDescriptor& method(const char* name) {
  const auto found = find_method(name);
  EXPECT_TRUE(found && found->call != nullptr) << name;
  return *found->call;
}

TEST(GrpcMethods, EveryCallIsFoundByItsName) {
  for (const auto* service : api::services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
      EXPECT_TRUE(find_method(path).has_value()) << path;
    }
  }
  EXPECT_EQ(find_method("/gpu_platform.v1.JobService/ExecInJob")->kind, GrpcMethod::Kind::kChannel);
  for (const char* wrong :
       {"", "/", "gpu_platform.v1.JobService/GetJob", "/gpu_platform.v1.JobService/GetJob/",
        "/gpu_platform.v1.JobService/getjob", "/v1/jobs"}) {
    EXPECT_FALSE(find_method(wrong).has_value()) << wrong;
  }
}

TEST(GrpcMethods, ARequestHasTheFieldsThatAreSetAlone) {
  v1::SubmitJobRequest request;
  request.mutable_spec()->add_command("true");
  request.mutable_spec()->set_gpus(0);  // has presence: it is given
  (*request.mutable_spec()->mutable_environment())["A"] = "ä\"\n";
  const auto json = request_for_daemon(method("/gpu_platform.v1.JobService/SubmitJob"),
                                       request.SerializeAsString());
  ASSERT_TRUE(json.has_value()) << json.error().message;
  EXPECT_EQ(*json, R"({"spec":{"command":["true"],"gpus":0,"environment":{"A":"ä\"\n"}}})");
}

TEST(GrpcMethods, WhatJsonCannotSayIsRefusedByName) {
  const auto& submit = method("/gpu_platform.v1.JobService/SubmitJob");
  const auto refusal = [](const auto& call, const auto& message) {
    const auto json = request_for_daemon(call, message.SerializeAsString());
    return json ? "taken: " + *json : json.error().field;
  };
  v1::SubmitJobRequest request;
  request.mutable_spec()->set_numa(static_cast<v1::NumaPolicy>(77));
  EXPECT_EQ(refusal(submit, request), "spec.numa");
  v1::CreateReservationRequest reservation;
  reservation.mutable_begin()->set_seconds(-1);
  const auto& reserve = method("/gpu_platform.v1.ReservationService/CreateReservation");
  EXPECT_EQ(refusal(reserve, reservation), "begin");
  reservation.mutable_begin()->set_seconds(INT64_MAX);
  EXPECT_EQ(refusal(reserve, reservation), "begin");
  reservation.mutable_begin()->set_seconds(0);
  reservation.mutable_begin()->set_nanos(1'000'000'000);
  EXPECT_EQ(refusal(reserve, reservation), "begin");
  v1::WaitJobRequest wait;
  wait.set_timeout_seconds(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(refusal(method("/gpu_platform.v1.JobService/WaitJob"), wait), "timeout_seconds");
  // A field of a number that no version knows, and a text that is not UTF-8.
  EXPECT_EQ(request_for_daemon(submit, "\xf8\x7f\x01").error().field, "request");
  EXPECT_EQ(request_for_daemon(submit, "\x0a\x04\x0a\x02\xff\xfe").error().field, "request");
  EXPECT_EQ(request_for_daemon(submit, "\x0a\x7f").error().field, "request");
}

protocol::ServerReflectionResponse asked(const protocol::ServerReflectionRequest& question) {
  const auto bytes = reflect(question.SerializeAsString());
  EXPECT_TRUE(bytes.has_value());
  protocol::ServerReflectionResponse answer;
  EXPECT_TRUE(answer.ParseFromString(bytes.value_or("")));
  EXPECT_EQ(answer.original_request().SerializeAsString(), question.SerializeAsString());
  return answer;
}

TEST(GrpcReflection, ListsTheServicesAndShowsTheirFilesWithAllThatTheyImport) {
  protocol::ServerReflectionRequest question;
  question.set_list_services("");
  const auto services = asked(question).list_services_response();
  EXPECT_EQ(static_cast<std::size_t>(services.service_size()), api::services().size() + 2);
  for (const auto& service : services.service()) {
    question.set_file_containing_symbol(service.name());
    const auto files = asked(question).file_descriptor_response();
    google::protobuf::DescriptorPool pool;
    for (const std::string& bytes : files.file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      ASSERT_TRUE(file.ParseFromString(bytes));
      ASSERT_NE(pool.BuildFile(file), nullptr) << file.name();
    }
    EXPECT_NE(pool.FindServiceByName(service.name()), nullptr) << service.name();
  }
}

TEST(GrpcReflection, AnswersTheOtherQuestionsAndSaysWhatIsNotThere) {
  protocol::ServerReflectionRequest question;
  question.set_file_by_filename("gpu_platform/v1/jobs.proto");
  EXPECT_GT(asked(question).file_descriptor_response().file_descriptor_proto_size(), 1);
  question.set_all_extension_numbers_of_type("google.protobuf.MethodOptions");
  EXPECT_EQ(asked(question).all_extension_numbers_response().extension_number_size(), 2);
  question.mutable_file_containing_extension()->set_containing_type(
      "google.protobuf.MethodOptions");
  question.mutable_file_containing_extension()->set_extension_number(50701);
  EXPECT_TRUE(asked(question).has_file_descriptor_response());
  question.mutable_file_containing_extension()->set_extension_number(1);
  EXPECT_EQ(asked(question).error_response().error_code(), 5);
  question.set_file_by_filename("../../etc/passwd");
  EXPECT_EQ(asked(question).error_response().error_code(), 5);
  question.set_file_containing_symbol("");
  EXPECT_EQ(asked(question).error_response().error_code(), 5);
  EXPECT_FALSE(reflect("").has_value());
  EXPECT_FALSE(reflect("\xff").has_value());
}

}  // namespace
}  // namespace gpu_platform::listener
