#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// The format in which `jobs cp` sends files through `tar` in the job: POSIX ustar, with GNU's and
// pax's long names. Pure: no files here.

namespace gpu_platform::cli {

struct TarEntry {
  enum class Type : std::uint8_t { kFile, kDirectory, kLink, kHardLink, kOther };

  std::string name;  // as it is written; may be anything
  Type type = Type::kFile;
  std::uint32_t mode = 0;     // permission bits, and those above
  std::uint64_t size = 0;     // bytes of content that follow
  std::int64_t modified = 0;  // seconds since 1970
  std::string target;         // of links
};

inline constexpr std::size_t kTarBlock = 512;

// The blocks before an entry's content.
std::string tar_header(const TarEntry& entry);
// Fills the content up to a whole block.
std::size_t tar_padding(std::uint64_t size);
// Ends an archive.
std::string tar_end();

// Reads an archive that comes in pieces of any size.
class TarParser {
 public:
  struct Events {
    std::function<base::Status(const TarEntry&)> entry;
    std::function<base::Status(std::string_view)> content;  // of the last entry
    std::function<base::Status()> end_of_entry;
  };
  explicit TarParser(Events events) : events_(std::move(events)) {}

  // An error of the format or of an event; then nothing more may be pushed.
  base::Status push(std::string_view bytes);
  // The archive is over: its end has been read.
  bool is_complete() const { return is_complete_; }

 private:
  enum class Reading : std::uint8_t { kHeader, kContent, kLongText, kSkipped };

  base::Status take_header();
  base::Status take_content(std::string_view bytes);
  base::Status end_content();
  base::Status begin_entry(TarEntry entry, char type);

  Events events_;
  std::string block_;  // of a header, as far as it has come
  Reading reading_ = Reading::kHeader;
  char long_type_ = 0;
  std::string long_text_;
  std::string long_name_, long_target_;  // for the next entry
  std::optional<std::uint64_t> long_size_;
  std::uint64_t left_ = 0;     // content
  std::uint64_t padding_ = 0;  // behind it
  bool is_complete_ = false;
};

}  // namespace gpu_platform::cli
