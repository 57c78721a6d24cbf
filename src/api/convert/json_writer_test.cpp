#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <google/protobuf/timestamp.pb.h>
#include <gtest/gtest.h>

#include "api/convert/field_selection.h"
#include "api/convert/json_writer.h"
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

// ---- odd messages

using Field = pb::FieldDescriptor;

std::string odd_text(base::Prng& random) {
  static const std::string kTexts[] = {"",
                                       "plain",
                                       "\"quoted\" \\ and / and \x7f",
                                       std::string("\0\x01\b\f\n\r\t\x1f", 8),
                                       "träin \u2028 \U0001f600",
                                       "bad \xff\xc3 end \xed\xa0\x80",
                                       std::string(300, 'x')};
  return kTexts[random.below(std::size(kTexts))];
}

// Zero, the ends of its range, or anything.
template <class Number>
Number odd_number(base::Prng& random) {
  using Limits = std::numeric_limits<Number>;
  const Number ends[] = {Number{}, Number{1}, Limits::lowest(), Limits::max()};
  const std::size_t choice = random.below(std::size(ends) + 2);
  if (choice < std::size(ends)) return ends[choice];
  return static_cast<Number>(random.next());
}

double odd_double(base::Prng& random) {
  using Limits = std::numeric_limits<double>;
  const double odd[] = {0.0,
                        -0.0,
                        0.1,
                        1e300,
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::max(),
                        -1.5,
                        Limits::infinity(),
                        Limits::quiet_NaN()};
  return odd[random.below(std::size(odd))];
}

// Calls set(value) with an odd value of the field's type; messages are the caller's.
template <class Set>
void with_odd_value(const Field& field, base::Prng& random, Set&& set) {
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return set(random.chance(1, 2));
    case Field::CPPTYPE_INT32:
      return set(odd_number<std::int32_t>(random));
    case Field::CPPTYPE_INT64:
      return set(odd_number<std::int64_t>(random));
    case Field::CPPTYPE_UINT32:
      return set(odd_number<std::uint32_t>(random));
    case Field::CPPTYPE_UINT64:
      return set(odd_number<std::uint64_t>(random));
    case Field::CPPTYPE_DOUBLE:
      return set(odd_double(random));
    case Field::CPPTYPE_STRING:
      return set(odd_text(random));
    default:
      FAIL() << field.full_name();
  }
}

struct Setter {
  pb::Message& message;
  const Field& field;
  const pb::Reflection& reflection = *message.GetReflection();

  void operator()(bool value) const { reflection.SetBool(&message, &field, value); }
  void operator()(std::int32_t value) const { reflection.SetInt32(&message, &field, value); }
  void operator()(std::int64_t value) const { reflection.SetInt64(&message, &field, value); }
  void operator()(std::uint32_t value) const { reflection.SetUInt32(&message, &field, value); }
  void operator()(std::uint64_t value) const { reflection.SetUInt64(&message, &field, value); }
  void operator()(double value) const { reflection.SetDouble(&message, &field, value); }
  void operator()(const std::string& value) const { reflection.SetString(&message, &field, value); }
};

struct Adder {
  pb::Message& message;
  const Field& field;
  const pb::Reflection& reflection = *message.GetReflection();

  void operator()(bool value) const { reflection.AddBool(&message, &field, value); }
  void operator()(std::int32_t value) const { reflection.AddInt32(&message, &field, value); }
  void operator()(std::int64_t value) const { reflection.AddInt64(&message, &field, value); }
  void operator()(std::uint32_t value) const { reflection.AddUInt32(&message, &field, value); }
  void operator()(std::uint64_t value) const { reflection.AddUInt64(&message, &field, value); }
  void operator()(double value) const { reflection.AddDouble(&message, &field, value); }
  void operator()(const std::string& value) const { reflection.AddString(&message, &field, value); }
};

// A value that the enumeration has, or one of a later version.
int odd_enum(const Field& field, base::Prng& random) {
  const auto count = static_cast<std::uint64_t>(field.enum_type()->value_count());
  const std::uint64_t choice = random.below(count + 2);
  if (choice < count) return field.enum_type()->value(static_cast<int>(choice))->number();
  return choice == count ? 1000 : -1;
}

void fill(pb::Message& message, base::Prng& random, std::uint64_t percent, int depth);

void fill_message(pb::Message& message, base::Prng& random, std::uint64_t percent, int depth) {
  if (auto* const at = dynamic_cast<pb::Timestamp*>(&message)) {
    at->set_seconds(static_cast<std::int64_t>(random.below(9'000'000'000)));
    at->set_nanos(static_cast<std::int32_t>(random.below(1'000'000'000)));
  } else if (depth > 0) {
    fill(message, random, percent, depth - 1);
  }
}

void fill_one(pb::Message& message, const Field& field, base::Prng& random, std::uint64_t percent,
              int depth) {
  const pb::Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
    fill_message(field.is_repeated() ? *reflection.AddMessage(&message, &field)
                                     : *reflection.MutableMessage(&message, &field),
                 random, percent, depth);
  } else if (field.cpp_type() == Field::CPPTYPE_ENUM) {
    const int value = odd_enum(field, random);
    field.is_repeated() ? reflection.AddEnumValue(&message, &field, value)
                        : reflection.SetEnumValue(&message, &field, value);
  } else if (field.is_repeated()) {
    with_odd_value(field, random, Adder{message, field});
  } else {
    with_odd_value(field, random, Setter{message, field});
  }
}

// The key of a map's entry: each one once.
void number_keys(pb::Message& message, const Field& map) {
  const pb::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < reflection.FieldSize(message, &map); ++i) {
    pb::Message* const entry = reflection.MutableRepeatedMessage(&message, &map, i);
    const std::string key = "key \"" + std::to_string(100 - i);
    entry->GetReflection()->SetString(entry, map.message_type()->map_key(), key);
  }
}

// Fills this share of the fields, lists with up to three elements.
void fill(pb::Message& message, base::Prng& random, std::uint64_t percent, int depth) {
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (!random.chance(percent, 100)) continue;
    const Field& field = *type.field(i);
    const std::uint64_t count = field.is_repeated() ? 1 + random.below(3) : 1;
    for (std::uint64_t n = 0; n < count; ++n) fill_one(message, field, random, percent, depth);
    if (field.is_map()) number_keys(message, field);
  }
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
      fill(*message, random, percent, kDepth);
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
    fill(job, random, 60, kDepth);
    std::string out;
    append_json(out, job, selection->plan());
    ASSERT_EQ(out, plainly(job, selection->plan()));
  }
}

}  // namespace
}  // namespace gpu_platform::api
