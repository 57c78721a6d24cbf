#include "store/sqlite/durable_mark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "os/descriptor.h"
#include "store/sqlite/data_dir.h"

namespace gpu_platform::store {

namespace {

constexpr std::string_view kMarkerText =
    "A gpu-platform store was made here; its database is store.db. Do not copy this file.\n";
// The text and the two places have a block of the disk each.
constexpr std::size_t kMarkerBlock = 4096;
constexpr std::size_t kMarkerBytes = 3 * kMarkerBlock;

// One place of the file, as it is in memory: little-endian machines only, like the database's
// checksums.
struct MarkPlace {
  std::array<char, 8> magic{'g', 'p', 'm', 'a', 'r', 'k', '0', '1'};
  std::uint64_t turn = 0;  // the higher one is newer
  std::uint64_t last_seq = 0;
  std::int64_t at_ns = 0;
  std::uint64_t last_job = 0;
  std::uint64_t batch_first = 0;
  std::uint64_t batch_checksum = 0;
  std::uint64_t copied_seq = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t checksum = 0;
};
static_assert(std::endian::native == std::endian::little && sizeof(MarkPlace) == 80);

std::uint64_t checksum_of(const MarkPlace& place) {
  return base::hash64({reinterpret_cast<const char*>(&place), offsetof(MarkPlace, checksum)},
                      kMarkerBlock);
}

MarkPlace place_of(const Mark& mark, std::uint64_t turn) {
  MarkPlace place;
  place.turn = turn;
  place.last_seq = mark.last_seq;
  place.at_ns = mark.at.unix_ns();
  place.last_job = mark.last_job;
  place.batch_first = mark.batch_first;
  place.batch_checksum = mark.batch_checksum;
  place.copied_seq = mark.copied_seq;
  place.copied_bytes = mark.copied_bytes;
  place.checksum = checksum_of(place);
  return place;
}

off_t offset_of(std::uint64_t turn) {
  return static_cast<off_t>(kMarkerBlock * (1 + turn % 2));
}

// The newer one of the valid places.
std::optional<MarkPlace> newest_place(int fd) {
  std::optional<MarkPlace> newest;
  for (const std::uint64_t side : {0, 1}) {
    MarkPlace place;
    if (::pread(fd, &place, sizeof place, offset_of(side)) != static_cast<ssize_t>(sizeof place)) {
      continue;
    }
    const bool is_valid = place.magic == MarkPlace{}.magic &&
                          place.checksum == checksum_of(place) && place.turn % 2 == side;
    if (is_valid && (!newest || place.turn > newest->turn)) newest = place;
  }
  return newest;
}

}  // namespace

std::optional<Mark> read_mark(const std::filesystem::path& marker) {
  const os::Descriptor fd(::open(marker.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) return std::nullopt;
  const auto place = newest_place(fd.get());
  if (!place) return std::nullopt;
  return Mark{.last_seq = place->last_seq,
              .at = base::Instant(place->at_ns),
              .last_job = place->last_job,
              .batch_first = place->batch_first,
              .batch_checksum = place->batch_checksum,
              .copied_seq = place->copied_seq,
              .copied_bytes = place->copied_bytes};
}

base::Status make_marker(const std::filesystem::path& marker, const Mark& mark) {
  std::string bytes(kMarkerBytes, '\0');
  bytes.replace(0, kMarkerText.size(), kMarkerText);
  const MarkPlace place = place_of(mark, 1);
  std::memcpy(bytes.data() + offset_of(1), &place, sizeof place);
  return write_private_file(marker, bytes);
}

MarkWriter::MarkWriter(const std::filesystem::path& marker) {
  const os::Descriptor fd(::open(marker.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  // A page without a block of the disk could kill the process when it is written.
  if (fd.get() < 0 || ::posix_fallocate(fd.get(), 0, kMarkerBytes) != 0) return;
  void* const map = ::mmap(nullptr, kMarkerBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return;
  file_.reset(static_cast<char*>(map));
  if (const auto newest = newest_place(fd.get())) turn_ = newest->turn;
}

void MarkWriter::write(const Mark& mark) {
  if (file_ == nullptr) return;
  const MarkPlace place = place_of(mark, ++turn_);
  std::memcpy(file_.get() + offset_of(turn_), &place, sizeof place);
}

void MarkWriter::Unmap::operator()(char* file) const {
  ::munmap(file, kMarkerBytes);
}

}  // namespace gpu_platform::store
