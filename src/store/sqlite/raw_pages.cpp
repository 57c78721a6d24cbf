#include "store/sqlite/raw_pages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "os/descriptor.h"

namespace gpu_platform::store {

namespace {

constexpr std::uint64_t kDatabaseHeaderBytes = 100;
constexpr std::uint64_t kLogHeaderBytes = 32;
constexpr std::uint64_t kLogFrameHeaderBytes = 24;
constexpr std::uint64_t kUsualPageBytes = 4096;

std::uint64_t big_endian_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

bool is_page_size(std::uint64_t size) {
  return size >= 512 && size <= 65536 && std::has_single_bit(size);
}

// A file that is read page by page.
class RawFile {
 public:
  explicit RawFile(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status{};
    if (fd_.get() >= 0 && ::fstat(fd_.get(), &status) == 0) {
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }

  std::uint64_t size() const { return size_; }
  // What there is of so many bytes; less at the end, and where the disk gives none.
  std::string read(std::uint64_t offset, std::uint64_t size) const {
    std::string bytes(size, '\0');
    std::size_t got = 0;
    while (got < size) {
      const ssize_t n =
          ::pread(fd_.get(), bytes.data() + got, size - got, static_cast<off_t>(offset + got));
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    bytes.resize(got);
    return bytes;
  }

 private:
  os::Descriptor fd_;
  std::uint64_t size_ = 0;
};

// Reads numbers from a page or a record; past the end there are zeros and ok() is false.
class Cursor {
 public:
  Cursor(std::string_view bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  // SQLite's own form: the highest bits first, at most nine bytes.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t byte = next();
      value = value << 7 | (byte & 0x7f);
      if ((byte & 0x80) == 0) return value;
    }
    return value << 8 | next();
  }
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  std::size_t at() const { return at_; }
  bool ok() const { return ok_; }

 private:
  std::uint64_t next() {
    if (at_ >= bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<unsigned char>(bytes_[at_++]);
  }

  std::string_view bytes_;
  std::size_t at_;
  bool ok_ = true;
};

// One value of a record by its serial type; false: the type is none of ours.
bool read_value(std::uint64_t type, Cursor& body, RawValue& value) {
  constexpr std::uint64_t kIntegerBytes[] = {0, 1, 2, 3, 4, 6, 8};
  if (type == 0) return true;
  value.kind = RawValue::Kind::kInteger;
  if (type == 8 || type == 9) {
    value.integer = static_cast<std::int64_t>(type) - 8;
    return true;
  }
  if (type < std::size(kIntegerBytes)) {
    const std::uint64_t size = kIntegerBytes[type];
    const std::string_view bytes = body.take(size);
    if (bytes.size() != size) return false;
    const std::uint64_t unused = 64 - 8 * size;
    // Sign-extended.
    value.integer = static_cast<std::int64_t>(big_endian_at(bytes, 0, size) << unused) >>
                    static_cast<int>(unused);
    return true;
  }
  if (type < 12) return false;
  value.kind = type % 2 == 0 ? RawValue::Kind::kBlob : RawValue::Kind::kText;
  const std::uint64_t size = (type - 12) / 2;
  value.bytes = body.take(size);
  return value.bytes.size() == size;
}

bool read_record(std::string_view record, std::vector<RawValue>& values) {
  constexpr std::size_t kMaxColumns = 16;
  values.clear();
  Cursor header(record, 0);
  const std::uint64_t header_bytes = header.varint();
  if (!header.ok() || header_bytes > record.size()) return false;
  Cursor body(record, header_bytes);
  while (header.at() < header_bytes) {
    const std::uint64_t type = header.varint();
    if (!header.ok() || values.size() == kMaxColumns) return false;
    if (!read_value(type, body, values.emplace_back())) return false;
  }
  return body.ok() && !values.empty();
}

// The place of one image of a page.
struct PageImage {
  std::uint64_t offset = 0;
  bool is_in_log = false;
};

// Of the images of a page, seen from a frame of the log: a transaction has its frames together, in
// the order of the pages.
enum class Which { kNext, kLatest, kFormer };

class RawReader {
 public:
  using Visit = std::function<base::Status(const RawRow&)>;

  RawReader(const std::filesystem::path& database, const std::filesystem::path& wal,
            const Visit& visit)
      : database_(database), log_(wal), visit_(visit) {
    page_bytes_ = find_page_bytes();
    const std::uint64_t frame = kLogFrameHeaderBytes + page_bytes_;
    for (std::uint64_t at = kLogHeaderBytes; at + frame <= log_.size(); at += frame) {
      const std::string header = log_.read(at, kLogFrameHeaderBytes);
      if (header.size() < kLogFrameHeaderBytes) break;
      const std::uint64_t page = big_endian_at(header, 0, 4);
      images_[page].push_back({at + kLogFrameHeaderBytes, true});
    }
  }

  base::Status run() {
    for (std::uint64_t at = 0; at < database_.size(); at += page_bytes_) {
      TRY(visit_page(at / page_bytes_ + 1, {at, false}));
    }
    for (const auto& [page, images] : images_) {
      for (const PageImage& image : images) TRY(visit_page(page, image));
    }
    return {};
  }

 private:
  std::uint64_t find_page_bytes() const {
    const std::string log = log_.read(0, kLogHeaderBytes);
    const std::string header = database_.read(0, kDatabaseHeaderBytes);
    if (header.size() == kDatabaseHeaderBytes && header.starts_with("SQLite format 3")) {
      const std::uint64_t said = big_endian_at(header, 16, 2);
      const std::uint64_t size = said == 1 ? 65536 : said;
      if (is_page_size(size)) return size;
    }
    if (log.size() == kLogHeaderBytes && is_page_size(big_endian_at(log, 8, 4))) {
      return big_endian_at(log, 8, 4);
    }
    return kUsualPageBytes;
  }

  std::string read(const PageImage& image) const {
    return (image.is_in_log ? log_ : database_).read(image.offset, page_bytes_);
  }

  base::Status visit_page(std::uint64_t number, const PageImage& image) {
    const std::string page = read(image);
    const std::size_t begin = number == 1 ? kDatabaseHeaderBytes : 0;
    if (page.size() < page_bytes_) return {};
    const auto kind = static_cast<unsigned char>(page[begin]);
    constexpr unsigned char kIndexInterior = 0x02;
    constexpr unsigned char kIndexLeaf = 0x0a;
    constexpr unsigned char kTableLeaf = 0x0d;
    if (kind != kTableLeaf && kind != kIndexLeaf && kind != kIndexInterior) return {};
    const std::size_t header_bytes = kind == kIndexInterior ? 12 : 8;
    const std::uint64_t cells =
        std::min(big_endian_at(page, begin + 3, 2), (page_bytes_ - begin - header_bytes) / 2);
    for (std::uint64_t cell = 0; cell < cells; ++cell) {
      std::size_t at = big_endian_at(page, begin + header_bytes + 2 * cell, 2);
      if (kind == kIndexInterior) at += 4;  // the page of the smaller keys
      if (at >= page_bytes_) continue;
      TRY(visit_cell(page, at, kind == kTableLeaf, image));
    }
    return {};
  }

  base::Status visit_cell(std::string_view page, std::size_t at, bool is_table,
                          const PageImage& image) {
    Cursor cursor(page, at);
    const std::uint64_t size = cursor.varint();
    row_.has_rowid = is_table;
    row_.rowid = is_table ? static_cast<std::int64_t>(cursor.varint()) : 0;
    if (!cursor.ok() || size == 0 || size > database_.size() + log_.size()) return {};
    const std::uint64_t local = local_bytes(size, is_table);
    const std::string_view begin = cursor.take(local);
    if (begin.size() != local) return {};
    if (local == size) return visit_record(begin);
    const std::string_view next = cursor.take(4);
    if (next.size() != 4) return {};
    // The pages that the rest lies in may have been written again since, or not yet.
    std::set<std::string> seen;
    for (const Which which : {Which::kNext, Which::kLatest, Which::kFormer}) {
      record_ = begin;
      const bool is_whole = add_overflow(big_endian_at(next, 0, 4), size, image, which);
      if (is_whole && seen.insert(record_).second) TRY(visit_record(record_));
    }
    return {};
  }

  base::Status visit_record(std::string_view record) {
    return read_record(record, row_.values) ? visit_(row_) : base::Status{};
  }

  std::uint64_t local_bytes(std::uint64_t size, bool is_table) const {
    const std::uint64_t most = is_table ? page_bytes_ - 35 : (page_bytes_ - 12) * 64 / 255 - 23;
    if (size <= most) return size;
    const std::uint64_t least = (page_bytes_ - 12) * 32 / 255 - 23;
    const std::uint64_t fitting = least + (size - least) % (page_bytes_ - 4);
    return fitting <= most ? fitting : least;
  }

  // Adds to record_ what lies in other pages, up to `size`.
  bool add_overflow(std::uint64_t page, std::uint64_t size, const PageImage& from, Which which) {
    while (record_.size() < size) {
      if (page == 0) return false;
      const std::string bytes = read(image_for(page, from, which));
      if (bytes.size() < page_bytes_) return false;
      page = big_endian_at(bytes, 0, 4);
      record_.append(bytes, 4, std::min(size - record_.size(), page_bytes_ - 4));
    }
    return true;
  }

  // Of a page that a row of `from` goes on in.
  PageImage image_for(std::uint64_t page, const PageImage& from, Which which) const {
    const PageImage in_database{(page - 1) * page_bytes_, false};
    const auto found = images_.find(page);
    if (found == images_.end()) return in_database;
    const std::vector<PageImage>& images = found->second;
    if (which == Which::kLatest) return images.back();
    if (!from.is_in_log) return in_database;
    const auto next = std::ranges::lower_bound(images, from.offset, {}, &PageImage::offset);
    if (which == Which::kNext) return next == images.end() ? images.back() : *next;
    return next == images.begin() ? in_database : *std::prev(next);
  }

  RawFile database_;
  RawFile log_;
  const Visit& visit_;
  std::uint64_t page_bytes_ = kUsualPageBytes;
  std::map<std::uint64_t, std::vector<PageImage>> images_;  // of the log, by page, ascending
  RawRow row_;
  std::string record_;
};

}  // namespace

base::Status visit_raw_rows(const std::filesystem::path& database, const std::filesystem::path& wal,
                            const std::function<base::Status(const RawRow&)>& visit) {
  return RawReader(database, wal, visit).run();
}

}  // namespace gpu_platform::store
