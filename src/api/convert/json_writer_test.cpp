#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <google/protobuf/timestamp.pb.h>
#include <gtest/gtest.h>

#include "api/convert/field_selection.h"
#include "api/convert/json_writer.h"
#include "api/convert/odd_message_test.h"
#include "api/convert/text_forms.h"
#include "base/base64.h"
#include "base/prng.h"
#include "base/utc.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// The writer reads a message's encoding. These tests hold its text against that of a plain writer,
// which asks reflection for each field.

namespace gpu_platform::api {
namespace {

namespace pb = google::protobuf;

// ---- the plain writer

void append_object(std::string& out, const pb::Message& message, const MessagePlan& plan);

template <class Number>
void append_number(std::string& out, Number value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, static_cast<std::size_t>(end - text));
}

// The shortest decimal that reads back as the same double.
void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  append_number(out, value);
}

void append_timestamp(std::string& out, const pb::Message& message) {
  const auto& timestamp = static_cast<const pb::Timestamp&>(message);
  out.push_back('"');
  base::append_rfc3339(out, base::Instant(timestamp.seconds() * 1'000'000'000 + timestamp.nanos()));
  out.push_back('"');
}

void append_enum(std::string& out, const FieldPlan& plan, int number) {
  const std::string_view name = enum_name(plan, number);
  if (name.empty()) {
    out += "null";
    return;
  }
  out.push_back('"');
  out += name;
  out.push_back('"');
}

// One value that is not a list or a map.
void append_single(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                   const FieldPlan& plan) {
  const pb::FieldDescriptor* field = plan.field;
  std::string scratch;
  switch (plan.kind) {
    case JsonKind::kBool:
      out += reflection.GetBool(message, field) ? "true" : "false";
      return;
    case JsonKind::kInt32:
      append_number(out, reflection.GetInt32(message, field));
      return;
    case JsonKind::kInt64:
      append_number(out, reflection.GetInt64(message, field));
      return;
    case JsonKind::kUint32:
      append_number(out, reflection.GetUInt32(message, field));
      return;
    case JsonKind::kUint64:
      append_number(out, reflection.GetUInt64(message, field));
      return;
    case JsonKind::kDouble:
      append_double(out, reflection.GetDouble(message, field));
      return;
    case JsonKind::kString:
      append_json_string(out, reflection.GetStringReference(message, field, &scratch));
      return;
    case JsonKind::kBytes:
      out.push_back('"');
      base::append_base64(out, reflection.GetStringReference(message, field, &scratch));
      out.push_back('"');
      return;
    case JsonKind::kEnum:
      append_enum(out, plan, reflection.GetEnumValue(message, field));
      return;
    case JsonKind::kTimestamp:
      append_timestamp(out, reflection.GetMessage(message, field));
      return;
    case JsonKind::kMessage:
      append_object(out, reflection.GetMessage(message, field), *plan.message);
      return;
    case JsonKind::kMap:
      return;
  }
}

void append_element(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                    const FieldPlan& plan, int index) {
  const pb::FieldDescriptor* field = plan.field;
  std::string scratch;
  switch (plan.kind) {
    case JsonKind::kBool:
      out += reflection.GetRepeatedBool(message, field, index) ? "true" : "false";
      return;
    case JsonKind::kInt32:
      append_number(out, reflection.GetRepeatedInt32(message, field, index));
      return;
    case JsonKind::kInt64:
      append_number(out, reflection.GetRepeatedInt64(message, field, index));
      return;
    case JsonKind::kUint32:
      append_number(out, reflection.GetRepeatedUInt32(message, field, index));
      return;
    case JsonKind::kUint64:
      append_number(out, reflection.GetRepeatedUInt64(message, field, index));
      return;
    case JsonKind::kDouble:
      append_double(out, reflection.GetRepeatedDouble(message, field, index));
      return;
    case JsonKind::kString:
      append_json_string(out,
                         reflection.GetRepeatedStringReference(message, field, index, &scratch));
      return;
    case JsonKind::kBytes:
      out.push_back('"');
      base::append_base64(out,
                          reflection.GetRepeatedStringReference(message, field, index, &scratch));
      out.push_back('"');
      return;
    case JsonKind::kEnum:
      append_enum(out, plan, reflection.GetRepeatedEnumValue(message, field, index));
      return;
    case JsonKind::kTimestamp:
      append_timestamp(out, reflection.GetRepeatedMessage(message, field, index));
      return;
    case JsonKind::kMessage:
      append_object(out, reflection.GetRepeatedMessage(message, field, index), *plan.message);
      return;
    case JsonKind::kMap:
      return;
  }
}

void append_list(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                 const FieldPlan& plan) {
  out.push_back('[');
  const int size = reflection.FieldSize(message, plan.field);
  for (int i = 0; i < size; ++i) {
    if (i > 0) out.push_back(',');
    append_element(out, message, reflection, plan, i);
  }
  out.push_back(']');
}

void append_map(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                const FieldPlan& plan) {
  const int size = reflection.FieldSize(message, plan.field);
  std::vector<std::pair<std::string, const pb::Message*>> entries;
  entries.reserve(static_cast<std::size_t>(size));
  const FieldPlan& key = plan.map_entry->fields[0];
  for (int i = 0; i < size; ++i) {
    const pb::Message& entry = reflection.GetRepeatedMessage(message, plan.field, i);
    entries.emplace_back(entry.GetReflection()->GetString(entry, key.field), &entry);
  }
  std::ranges::sort(entries);
  out.push_back('{');
  bool is_first = true;
  for (const auto& [name, entry] : entries) {
    if (!is_first) out.push_back(',');
    is_first = false;
    append_json_string(out, name);
    out.push_back(':');
    append_single(out, *entry, *entry->GetReflection(), plan.map_value());
  }
  out.push_back('}');
}

void append_object(std::string& out, const pb::Message& message, const MessagePlan& plan) {
  const pb::Reflection& reflection = *message.GetReflection();
  out.push_back('{');
  bool is_first = true;
  for (const FieldPlan& field : plan.fields) {
    if (field.is_input_only) continue;
    if (!is_first) out.push_back(',');
    is_first = false;
    append_json_string(out, field.name);
    out.push_back(':');
    if (field.kind == JsonKind::kMap) {
      append_map(out, message, reflection, field);
    } else if (field.is_repeated) {
      append_list(out, message, reflection, field);
    } else if (field.has_presence && !reflection.HasField(message, field.field)) {
      out += "null";
    } else {
      append_single(out, message, reflection, field);
    }
  }
  out.push_back('}');
}

std::string plainly(const pb::Message& message, const MessagePlan& plan) {
  std::string out;
  append_object(out, message, plan);
  return out;
}

constexpr int kDepth = 4;

// The messages of a file, those of calls and their parts alike.
void expect_all_alike(const pb::FileDescriptor& file, std::uint64_t percent) {
  base::Prng random(percent + 1);
  for (int i = 0; i < file.message_type_count(); ++i) {
    const pb::Descriptor& type = *file.message_type(i);
    const pb::Message& prototype = *pb::MessageFactory::generated_factory()->GetPrototype(&type);
    for (int round = 0; round < 20; ++round) {
      const std::unique_ptr<pb::Message> message(prototype.New());
      fill_oddly(*message, random, {.percent = percent, .depth = kDepth});
      ASSERT_EQ(to_json(*message), plainly(*message, plan_of(type))) << type.full_name();
    }
  }
}

TEST(JsonWriter, WritesWhatThePlainWriterDoesOfEveryMessage) {
  const pb::FileDescriptor& jobs = *v1::Job::descriptor()->file();
  const pb::FileDescriptor& cluster = *v1::Node::descriptor()->file();
  for (const std::uint64_t percent : {0, 30, 70, 100}) {
    expect_all_alike(jobs, percent);
    expect_all_alike(cluster, percent);
  }
}

TEST(JsonWriter, WritesWhatThePlainWriterDoesOfSelectedFields) {
  const auto selection = FieldSelection::parse(
      "steps,spec.labels,spec.gpu_speeds,spec.notify,attempts.gpus.share,start_guaranteed,id",
      *v1::Job::descriptor());
  ASSERT_TRUE(selection.has_value());
  base::Prng random(7);
  for (int round = 0; round < 200; ++round) {
    v1::Job job;
    fill_oddly(job, random, {.percent = 60, .depth = kDepth});
    std::string out;
    append_json(out, job, selection->plan());
    ASSERT_EQ(out, plainly(job, selection->plan()));
  }
}

}  // namespace
}  // namespace gpu_platform::api
