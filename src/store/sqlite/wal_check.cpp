#include "store/sqlite/wal_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagic = 0x377f0682;  // the lowest bit set: checksums of big-endian words

std::uint32_t number_of(const unsigned char* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | static_cast<std::uint32_t>(bytes[3]);
}

// The log's running checksum (https://www.sqlite.org/fileformat2.html#checksum_algorithm).
struct Checksum {
  bool is_big_endian = false;
  std::uint32_t first = 0;
  std::uint32_t second = 0;

  void add(const unsigned char* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 8) {
      first += word(bytes + i) + second;
      second += word(bytes + i + 4) + first;
    }
  }
  bool matches(const unsigned char* stored) const {
    return first == number_of(stored) && second == number_of(stored + 4);
  }

 private:
  std::uint32_t word(const unsigned char* bytes) const {
    const std::uint32_t value = number_of(bytes);
    return is_big_endian ? value : __builtin_bswap32(value);
  }
};

struct Header {
  Checksum checksum;
  std::size_t page_bytes = 0;
  std::array<unsigned char, 8> salt{};
};

bool read_header(const std::array<unsigned char, kHeaderBytes>& bytes, Header& header) {
  const std::uint32_t magic = number_of(bytes.data());
  if ((magic & ~1U) != kMagic) return false;
  header.page_bytes = number_of(bytes.data() + 8);
  if (header.page_bytes < 512 || header.page_bytes > 65536 ||
      !std::has_single_bit(header.page_bytes)) {
    return false;
  }
  std::copy_n(bytes.data() + 16, header.salt.size(), header.salt.begin());
  header.checksum.is_big_endian = (magic & 1) != 0;
  header.checksum.add(bytes.data(), 24);
  return header.checksum.matches(bytes.data() + 24);
}

}  // namespace

base::Result<WalSummary> check_wal(const std::filesystem::path& wal) {
  WalSummary summary;
  std::ifstream in(wal, std::ios::binary);
  if (!in) {
    if (errno == ENOENT) return summary;
    return std::unexpected(base::system_error("open " + wal.string(), errno));
  }
  summary.is_present = true;
  std::array<unsigned char, kHeaderBytes> raw{};
  if (!in.read(reinterpret_cast<char*>(raw.data()), raw.size())) return summary;
  // Space that a crash left unwritten.
  if (std::ranges::all_of(raw, [](unsigned char byte) { return byte == 0; })) return summary;
  Header header;
  if (!read_header(raw, header)) {
    return fail(ErrorCode::kDataLoss, fmt::format("{}: the header does not verify", wal.string()));
  }

  std::vector<unsigned char> frame(kFrameHeaderBytes + header.page_bytes);
  std::uint64_t first_bad = 0;
  int commits_behind = 0;
  for (std::uint64_t number = 1;
       in.read(reinterpret_cast<char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
       ++number) {
    const bool is_current = std::equal(header.salt.begin(), header.salt.end(), frame.data() + 8);
    const std::uint32_t pages_after = number_of(frame.data() + 4);
    if (first_bad == 0) {
      header.checksum.add(frame.data(), 8);
      header.checksum.add(frame.data() + kFrameHeaderBytes, header.page_bytes);
      if (!is_current || !header.checksum.matches(frame.data() + 16)) first_bad = number;
    }
    if (first_bad == 0 && pages_after != 0) {
      summary.valid_frames = number;
      summary.database_pages = pages_after;
    }
    if (first_bad != 0 && is_current && pages_after != 0) ++commits_behind;
  }
  if (commits_behind > 1) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{}: frame {} does not verify, and {} commits follow it", wal.string(),
                            first_bad, commits_behind));
  }
  return summary;
}

}  // namespace gpu_platform::store
