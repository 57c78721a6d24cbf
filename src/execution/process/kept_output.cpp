#include "execution/process/kept_output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "node/protocol.h"

namespace gpu_platform::execution {

namespace {

struct Part {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t inode = 0;
};

// Closes when it goes out of scope.
struct OpenFile {
  explicit OpenFile(const std::string& path)
      : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int fd;
};

std::optional<std::uint64_t> start_of_part(std::string_view file, std::string_view current) {
  if (!file.starts_with(current) || file.size() < current.size() + 2) return std::nullopt;
  if (file[current.size()] != '.') return std::nullopt;
  const std::string_view digits = file.substr(current.size() + 1);
  std::uint64_t start = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), start);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return start;
}

// Full parts, ascending.
std::vector<Part> full_parts(const std::string& path) {
  std::vector<Part> parts;
  const std::size_t slash = path.rfind('/');
  DIR* const folder = opendir(path.substr(0, slash).c_str());
  if (folder == nullptr) return parts;
  while (const dirent* entry = readdir(folder)) {
    const auto start = start_of_part(entry->d_name, path.substr(slash + 1));
    struct stat about{};
    if (!start || stat(node::full_part_path(path, *start).c_str(), &about) != 0) continue;
    parts.push_back({*start, static_cast<std::uint64_t>(about.st_size), about.st_ino});
  }
  closedir(folder);
  std::ranges::sort(parts, {}, &Part::start);
  return parts;
}

base::Result<OutputRange> read_range(int fd, const std::string& path, std::uint64_t file_start,
                                     std::uint64_t offset, std::size_t most) {
  OutputRange range;
  range.offset = std::max(offset, file_start);
  range.bytes.resize(most);
  const ssize_t got =
      pread(fd, range.bytes.data(), most, static_cast<off_t>(range.offset - file_start));
  if (got < 0) return std::unexpected(base::system_error("read " + path, errno));
  range.bytes.resize(static_cast<std::size_t>(got));
  return range;
}

// Nothing when the files changed underneath.
std::optional<base::Result<OutputRange>> try_read(const std::string& path, std::uint64_t offset,
                                                  std::size_t most) {
  const OpenFile current(path);
  struct stat about{};
  const bool has_current = current.fd >= 0 && fstat(current.fd, &about) == 0;
  if (!has_current && errno != ENOENT) {
    return base::Result<OutputRange>(std::unexpected(base::system_error("open " + path, errno)));
  }
  const std::vector<Part> parts = full_parts(path);
  for (const Part& part : parts) {
    if (has_current && part.inode == about.st_ino) return std::nullopt;  // became full meanwhile
  }
  for (const Part& part : parts) {
    if (offset >= part.start + part.size) continue;
    const std::string part_path = node::full_part_path(path, part.start);
    const OpenFile file(part_path);
    if (file.fd < 0) return std::nullopt;  // dropped meanwhile
    return read_range(file.fd, part_path, part.start, offset, most);
  }
  if (!has_current) return base::Result<OutputRange>(OutputRange{offset, {}});
  const std::uint64_t start = parts.empty() ? 0 : parts.back().start + parts.back().size;
  return read_range(current.fd, path, start, offset, most);
}

}  // namespace

std::string kept_output_path(const std::string& folder, model::AttemptId attempt) {
  return node::output_path(folder, attempt);
}

bool has_kept_output(const std::string& folder, model::JobId job) {
  const std::string path = kept_output_path(folder, {job, 1});
  return access(path.substr(0, path.rfind('/')).c_str(), F_OK) == 0 || errno != ENOENT;
}

model::JobId last_kept_output(const std::string& folder) {
  model::JobId last;
  const std::filesystem::directory_iterator end;
  std::error_code error;
  for (std::filesystem::directory_iterator group(folder + "/output", error); !error && group != end;
       group.increment(error)) {
    std::error_code gone;  // the launcher removes what is kept for long enough
    for (std::filesystem::directory_iterator job(group->path(), gone); !gone && job != end;
         job.increment(gone)) {
      const std::string name = job->path().filename().string();
      std::uint64_t id = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
      const bool is_id = read.ec == std::errc() && read.ptr == name.data() + name.size();
      if (is_id) last = std::max(last, model::JobId(id));
    }
  }
  return last;
}

bool has_output_files(const std::string& path) {
  return access(path.c_str(), F_OK) == 0 || !full_parts(path).empty();
}

std::string container_step(const std::string& folder, model::AttemptId attempt) {
  constexpr std::string_view kDoing = "doing: ";
  const OpenFile file(folder + "/attempts/" + node::container_report_name(attempt));
  char text[1024];
  const ssize_t got = file.fd < 0 ? 0 : pread(file.fd, text, sizeof text, 0);
  std::string_view line(text, got < 0 ? 0 : static_cast<std::size_t>(got));
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with(kDoing)) return {};
  std::string step(line.substr(kDoing.size()));
  std::ranges::replace_if(step, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return step;
}

base::Result<OutputRange> read_kept_output(const std::string& path, std::uint64_t offset,
                                           std::size_t most) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (auto range = try_read(path, offset, most)) return *std::move(range);
  }
  return base::fail(base::ErrorCode::kUnavailable,
                    "the output changes faster than it can be read: " + path);
}

}  // namespace gpu_platform::execution
