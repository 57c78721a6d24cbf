#include "api/convert/odd_message_test.h"

#include <limits>
#include <string>

#include <google/protobuf/timestamp.pb.h>
#include <gtest/gtest.h>

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

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

double odd_double(base::Prng& random, const Oddness& oddness) {
  using Limits = std::numeric_limits<double>;
  const double odd[] = {0.0,
                        0.1,
                        1e300,
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::max(),
                        -1.5,
                        -0.0,  // read back as the whole number 0
                        Limits::infinity(),
                        Limits::quiet_NaN()};
  return odd[random.below(std::size(odd) - (oddness.is_sayable ? 3 : 0))];
}

// Calls set(value) with an odd value of the field's type; messages are the caller's.
template <class Set>
void with_odd_value(const Field& field, base::Prng& random, const Oddness& oddness, Set&& set) {
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
      return set(odd_double(random, oddness));
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
int odd_enum(const Field& field, base::Prng& random, const Oddness& oddness) {
  const auto count = static_cast<std::uint64_t>(field.enum_type()->value_count());
  if (oddness.is_sayable) {  // the first one, which is null, is nothing in a list
    return field.enum_type()->value(1 + static_cast<int>(random.below(count - 1)))->number();
  }
  const std::uint64_t choice = random.below(count + 2);
  if (choice < count) return field.enum_type()->value(static_cast<int>(choice))->number();
  return choice == count ? 1000 : -1;
}

void fill_message(pb::Message& message, base::Prng& random, const Oddness& oddness) {
  if (auto* const at = dynamic_cast<pb::Timestamp*>(&message)) {
    at->set_seconds(static_cast<std::int64_t>(random.below(9'000'000'000)));
    at->set_nanos(static_cast<std::int32_t>(random.below(1'000'000'000)));
  } else if (oddness.depth > 0) {
    fill_oddly(message, random, {oddness.percent, oddness.depth - 1, oddness.is_sayable});
  }
}

void fill_one(pb::Message& message, const Field& field, base::Prng& random,
              const Oddness& oddness) {
  const pb::Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
    fill_message(field.is_repeated() ? *reflection.AddMessage(&message, &field)
                                     : *reflection.MutableMessage(&message, &field),
                 random, oddness);
  } else if (field.cpp_type() == Field::CPPTYPE_ENUM) {
    const int value = odd_enum(field, random, oddness);
    field.is_repeated() ? reflection.AddEnumValue(&message, &field, value)
                        : reflection.SetEnumValue(&message, &field, value);
  } else if (field.is_repeated()) {
    with_odd_value(field, random, oddness, Adder{message, field});
  } else {
    with_odd_value(field, random, oddness, Setter{message, field});
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

}  // namespace

void fill_oddly(pb::Message& message, base::Prng& random, const Oddness& oddness) {
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (!random.chance(oddness.percent, 100)) continue;
    const Field& field = *type.field(i);
    const std::uint64_t count = field.is_repeated() ? 1 + random.below(3) : 1;
    for (std::uint64_t n = 0; n < count; ++n) fill_one(message, field, random, oddness);
    if (field.is_map()) number_keys(message, field);
  }
}

}  // namespace gpu_platform::api
