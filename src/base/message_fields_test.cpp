#include "base/message_fields.h"

#include <gtest/gtest.h>

namespace gpu_platform::base {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen };

struct Sample {
  std::uint16_t number = 0;
  bool flag = false;
  std::string text;
  std::string why;
  Colour colour = Colour::kRed;
  Colour other = Colour::kRed;
  std::vector<std::uint32_t> list;
  std::optional<std::uint8_t> maybe;

  friend bool operator==(const Sample&, const Sample&) = default;
};

void fields(auto& f, FieldsOf<Sample> auto& m) {
  f.number(m.number);
  f.flag(m.flag);
  f.text(m.text);
  f.cut_text(m.why, 4);
  f.choice(m.colour, 2);
  f.either(m.other, Colour::kGreen, Colour::kRed);
  f.list(m.list, [&](auto& item) { f.number(item); }, 3);
  f.optional(m.maybe, [&](auto& value) { f.number(value); });
  f.check(m.number != 7);
}

std::string encoded(const Sample& sample) {
  std::string bytes;
  Encoder out(bytes);
  FieldWriter writer(out);
  fields(writer, sample);
  return bytes;
}

std::optional<Sample> decoded(std::string_view bytes) {
  Decoder in(bytes);
  Sample sample;
  FieldReader reader(in);
  fields(reader, sample);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return sample;
}

const Sample kFull{300, true, "text", "why", Colour::kGreen, Colour::kGreen, {1, 2, 3}, 9};

TEST(MessageFields, ReadBackAsTheyWereWritten) {
  for (const Sample& sample : {Sample(), kFull}) EXPECT_EQ(decoded(encoded(sample)), sample);
}

TEST(MessageFields, AreRefusedWhenCut) {
  const std::string bytes = encoded(kFull);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decoded(bytes.substr(0, size)).has_value()) << size;
  }
}

TEST(MessageFields, AreCheckedWhenRead) {
  Sample sample = kFull;
  sample.number = 7;
  EXPECT_FALSE(decoded(encoded(sample)).has_value());
  sample = kFull;
  sample.colour = static_cast<Colour>(2);
  EXPECT_FALSE(decoded(encoded(sample)).has_value());
  sample = kFull;
  sample.list.push_back(4);
  EXPECT_FALSE(decoded(encoded(sample)).has_value());
  std::string bytes;
  Encoder(bytes).u64(65'536);
  EXPECT_FALSE(decoded(bytes + encoded(kFull).substr(2)).has_value()) << "more than 16 bits";
}

TEST(MessageFields, LongTextsAreCutAndLongerOnesRefused) {
  Sample sample;
  sample.why = "because";
  EXPECT_EQ(decoded(encoded(sample))->why, "beca");
  const std::string bytes = encoded({.why = "why!"});
  std::string longer = bytes;
  longer.replace(bytes.find("\4why!"), 5, "\5why!!");
  EXPECT_FALSE(decoded(longer).has_value());
}

}  // namespace
}  // namespace gpu_platform::base
