#include "cli/jobs/tar.h"

#include <algorithm>
#include <climits>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::cli {

namespace {

// The places of the fields of a header.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12},
    kModified{136, 12}, kChecksum{148, 8}, kTarget{157, 100}, kMagic{257, 8}, kPrefix{345, 155};
constexpr std::size_t kTypeAt = 156;
constexpr std::uint64_t kMaxLongText = 64 * 1024;
// The first size that eleven octal digits do not hold.
constexpr std::uint64_t kLargeSize = std::uint64_t{1} << 33U;

base::Status malformed(std::string_view what) {
  return base::fail(base::ErrorCode::kInternal, fmt::format("the archive is damaged: {}", what));
}

std::string_view field_of(std::string_view block, Field field) {
  return block.substr(field.at, field.size);
}

// Up to the NUL.
std::string text_of(std::string_view block, Field field) {
  const std::string_view text = field_of(block, field);
  return std::string(text.substr(0, text.find('\0')));
}

// Octal, or GNU's binary form for large numbers.
std::optional<std::uint64_t> number_of(std::string_view block, Field field) {
  const std::string_view text = field_of(block, field);
  std::uint64_t number = 0;
  if ((static_cast<unsigned char>(text[0]) & 0x80U) != 0) {
    for (const char c : text.substr(1)) {
      if (number >> 55U != 0) return std::nullopt;
      number = number << 8U | static_cast<unsigned char>(c);
    }
    return number;
  }
  for (const char c : text) {
    if (c == ' ' || c == '\0') {
      if (number != 0) break;
      continue;
    }
    if (c < '0' || c > '7') return std::nullopt;
    number = number * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

// The sum of all bytes, those of the sum itself taken as blanks.
std::uint64_t checksum_of(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_sum = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += is_sum ? std::uint64_t{' '} : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

void put(std::string& block, Field field, std::string_view text) {
  block.replace(field.at, std::min(text.size(), field.size), text.substr(0, field.size));
}

void put_number(std::string& block, Field field, std::uint64_t number) {
  put(block, field, fmt::format("{:0{}o}", number, field.size - 1));
}

void put_size(std::string& block, std::uint64_t size) {
  if (size < kLargeSize) return put_number(block, kSize, size);
  block[kSize.at] = static_cast<char>(0x80);
  for (std::size_t i = 0; i < 8; ++i) {
    block[kSize.at + kSize.size - 1 - i] = static_cast<char>(size >> (8 * i) & 0xffU);
  }
}

char letter_of(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::kDirectory:
      return '5';
    case TarEntry::Type::kLink:
      return '2';
    case TarEntry::Type::kHardLink:
      return '1';
    default:
      return '0';
  }
}

std::string block_of(const TarEntry& entry, char type) {
  std::string block(kTarBlock, '\0');
  put(block, kName, entry.name);
  put_number(block, kMode, entry.mode);
  put_number(block, kUid, 0);
  put_number(block, kGid, 0);
  put_size(block, entry.size);
  put_number(block, kModified,
             static_cast<std::uint64_t>(std::max<std::int64_t>(entry.modified, 0)));
  block[kTypeAt] = type;
  put(block, kTarget, entry.target);
  put(block, kMagic, std::string_view("ustar  \0", 8));  // GNU's, as its long names are used
  put(block, kChecksum, fmt::format("{:06o}", checksum_of(block)));
  block[kChecksum.at + 7] = ' ';
  return block;
}

// GNU's way to give a text that has no room in the header of the next entry.
std::string long_text(char type, const std::string& text) {
  TarEntry entry;
  entry.name = "././@LongLink";
  entry.size = text.size() + 1;
  return block_of(entry, type) + text + std::string(1 + tar_padding(entry.size), '\0');
}

TarEntry::Type type_of(char letter, const std::string& name) {
  switch (letter) {
    case '0':
    case '\0':
    case '7':
      return name.ends_with('/') ? TarEntry::Type::kDirectory : TarEntry::Type::kFile;
    case '5':
      return TarEntry::Type::kDirectory;
    case '2':
      return TarEntry::Type::kLink;
    case '1':
      return TarEntry::Type::kHardLink;
    default:
      return TarEntry::Type::kOther;
  }
}

// The value of a key in pax's "LENGTH KEY=VALUE\n" records.
std::optional<std::string> pax_value(std::string_view text, std::string_view key) {
  std::optional<std::string> found;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    const auto length = base::parse_count(std::string(text.substr(0, blank)), 1, kMaxLongText);
    if (blank == std::string_view::npos || !length || *length > text.size() ||
        *length < blank + 2) {
      break;
    }
    const std::string_view record = text.substr(blank + 1, *length - blank - 2);
    if (record.starts_with(key) && record.substr(key.size()).starts_with('=')) {
      found = record.substr(key.size() + 1);
    }
    text.remove_prefix(*length);
  }
  return found;
}

}  // namespace

std::string tar_header(const TarEntry& entry) {
  std::string blocks;
  if (entry.name.size() > kName.size) blocks += long_text('L', entry.name);
  if (entry.target.size() > kTarget.size) blocks += long_text('K', entry.target);
  return blocks + block_of(entry, letter_of(entry.type));
}

std::size_t tar_padding(std::uint64_t size) {
  return static_cast<std::size_t>((kTarBlock - size % kTarBlock) % kTarBlock);
}

std::string tar_end() {
  return std::string(2 * kTarBlock, '\0');
}

base::Status TarParser::push(std::string_view bytes) {
  while (!bytes.empty() && !is_complete_) {
    if (reading_ == Reading::kHeader) {
      const std::size_t count = std::min(bytes.size(), kTarBlock - block_.size());
      block_ += bytes.substr(0, count);
      bytes.remove_prefix(count);
      if (block_.size() == kTarBlock) TRY(take_header());
      continue;
    }
    if (left_ > 0) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_));
      TRY(take_content(bytes.substr(0, count)));
      bytes.remove_prefix(count);
      left_ -= count;
    } else {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), padding_));
      bytes.remove_prefix(count);
      padding_ -= count;
    }
    if (left_ == 0 && padding_ == 0) TRY(end_content());
  }
  return {};
}

base::Status TarParser::take_header() {
  const std::string block = std::exchange(block_, {});
  if (block.find_first_not_of('\0') == std::string::npos) {
    is_complete_ = true;
    return {};
  }
  const auto sum = number_of(block, kChecksum);
  if (sum != checksum_of(block)) return malformed("a header has a wrong checksum");
  const auto size = number_of(block, kSize);
  const auto mode = number_of(block, kMode);
  if (!size || !mode || *size > INT64_MAX) return malformed("a header has no size");
  TarEntry entry;
  entry.name = text_of(block, kName);
  const bool is_ustar = field_of(block, kMagic).starts_with(std::string_view("ustar\0", 6));
  if (const std::string prefix = text_of(block, kPrefix); is_ustar && !prefix.empty()) {
    entry.name = prefix + "/" + entry.name;
  }
  entry.target = text_of(block, kTarget);
  entry.mode = static_cast<std::uint32_t>(*mode & 07777U);
  entry.size = *size;
  entry.modified = static_cast<std::int64_t>(number_of(block, kModified).value_or(0));
  return begin_entry(std::move(entry), block[kTypeAt]);
}

base::Status TarParser::begin_entry(TarEntry entry, char type) {
  left_ = entry.size;
  const bool is_text = type == 'L' || type == 'K' || type == 'x' || type == 'g';
  if (is_text) {
    if (left_ > kMaxLongText) return malformed("a name is too long");
    long_type_ = type;
    long_text_.clear();
    reading_ = Reading::kLongText;
  } else {
    if (!long_name_.empty()) entry.name = std::exchange(long_name_, {});
    if (!long_target_.empty()) entry.target = std::exchange(long_target_, {});
    if (const auto size = std::exchange(long_size_, std::nullopt)) left_ = entry.size = *size;
    entry.type = type_of(type, entry.name);
    const bool has_content = entry.type == TarEntry::Type::kFile;
    // Links may give the size of what they lead to, without its bytes.
    const bool is_link =
        entry.type == TarEntry::Type::kLink || entry.type == TarEntry::Type::kHardLink;
    if (is_link) left_ = entry.size = 0;
    reading_ = has_content ? Reading::kContent : Reading::kSkipped;
    TRY(events_.entry(entry));
  }
  padding_ = tar_padding(left_);
  return left_ == 0 ? end_content() : base::Status();
}

base::Status TarParser::take_content(std::string_view bytes) {
  if (reading_ == Reading::kContent) return events_.content(bytes);
  if (reading_ == Reading::kLongText) long_text_ += bytes;
  return {};
}

base::Status TarParser::end_content() {
  const Reading was = std::exchange(reading_, Reading::kHeader);
  if (was != Reading::kLongText) return events_.end_of_entry();
  const std::string text = long_text_.substr(0, long_text_.find('\0'));
  if (long_type_ == 'L') long_name_ = text;
  if (long_type_ == 'K') long_target_ = text;
  if (long_type_ != 'x') return {};
  if (const auto name = pax_value(long_text_, "path")) long_name_ = *name;
  if (const auto target = pax_value(long_text_, "linkpath")) long_target_ = *target;
  if (const auto size = pax_value(long_text_, "size")) {
    const auto number = base::parse_count(*size, 0, INT64_MAX);
    if (!number) return malformed("a header has no size");
    long_size_ = *number;
  }
  return {};
}

}  // namespace gpu_platform::cli
