#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/job_command.h"
#include "cli/jobs/pack.h"
#include "cli/jobs/tar.h"
#include "cli/jobs/unpack.h"
#include "cli/text/text.h"

// `jobs cp`: files into a running job and out of it, as an archive through `tar` there.

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kBetweenFigures = base::milliseconds(200);
constexpr std::size_t kShownLeftOut = 10;
// What execvp says by its exit code.
constexpr int kNoSuchProgram = 127;

// "15:/data" or "15_3:data"; nothing for a path of this machine.
struct PathInJob {
  std::string job;
  std::string path;
};

std::optional<PathInJob> path_in_job(const std::string& word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  const std::string job = word.substr(0, colon);
  if (job.find_first_not_of("0123456789_") != std::string::npos || job.front() == '_') {
    return std::nullopt;
  }
  return PathInJob{job, word.substr(colon + 1)};
}

// A path as the folder and the name in it: "/data/run/" as "/data" and "run". The name is empty for
// a folder that has none: "/", ".", "".
struct SplitPath {
  std::string folder;
  std::string name;
};

SplitPath split(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.empty() || path == "." || path == "/") return {path.empty() ? "." : path, ""};
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  SplitPath split{slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
  if (split.name == ".") return {split.folder, ""};
  return split;
}

bool is_directory(const std::string& path) {
  struct stat is{};
  return ::stat(path.c_str(), &is) == 0 && S_ISDIR(is.st_mode);
}

// "12.3 MiB, 4.1 MiB/s" on the terminal, while it goes on.
class CopyFigures {
 public:
  explicit CopyFigures(Console& console)
      : console_(console),
        is_shown_(::isatty(console.process_environment().err_fd) == 1),
        began_(console.process_environment().steady()) {}
  ~CopyFigures() { clear(); }
  CopyFigures(const CopyFigures&) = delete;
  CopyFigures& operator=(const CopyFigures&) = delete;

  void add(std::size_t bytes) {
    bytes_ += bytes;
    const base::Instant now = console_.process_environment().steady();
    if (!is_shown_ || now - told_ < kBetweenFigures) return;
    told_ = now;
    const std::int64_t ms = std::max<std::int64_t>(base::whole_milliseconds(now - began_), 1);
    const auto rate =
        static_cast<std::int64_t>(static_cast<double>(bytes_) * 1000.0 / static_cast<double>(ms));
    console_.err(fmt::format("\r\033[K{}, {}/s", readable_size(static_cast<std::int64_t>(bytes_)),
                             readable_size(rate)));
    has_line_ = true;
  }
  void clear() {
    if (std::exchange(has_line_, false)) console_.err("\r\033[K");
  }
  std::string total() const { return readable_size(static_cast<std::int64_t>(bytes_)); }

 private:
  Console& console_;
  bool is_shown_;
  base::Instant began_, told_;
  std::uint64_t bytes_ = 0;
  bool has_line_ = false;
};

class JobCopy {
 public:
  JobCopy(Console& console, Client& client) : console_(console), client_(client) {}

  int from_job(const PathInJob& source, const std::string& target) {
    const SplitPath from = split(source.path);
    if (from.name == "..") return refuse_dots(source.path);
    std::string path = target;
    if (is_directory(target) && !from.name.empty()) path = in_folder(target, from.name);
    const SplitPath to = split(path);
    if (to.name == ".." || (to.name.empty() && !is_directory(path))) return refuse_dots(target);
    Unpacker unpacker(from.name, to.name.empty() ? path + "/." : to.folder + "/" + to.name,
                      console_.process_environment().umask);
    TarParser parser({[&](const TarEntry& entry) { return unpacker.entry(entry); },
                      [&](std::string_view bytes) { return unpacker.content(bytes); },
                      [&] { return unpacker.end_of_entry(); }});
    base::Status unpacked;
    CopyFigures figures(console_);
    const auto end = run_in_job(
        client_, source.job,
        {"tar", "-c", "-f", "-", "-C", from.folder, "--", from.name.empty() ? "." : from.name},
        {nullptr, [&](std::string_view bytes) {
           figures.add(bytes.size());
           unpacked = parser.push(bytes);
           return unpacked.has_value();
         }});
    figures.clear();
    if (!end) return report(console_, end.error(), false);
    if (!unpacked) return failed(unpacked.error().message);
    if (const int code = tell_failure(source.job, *end)) return code;
    if (!parser.is_complete()) return failed("the archive of the job ended early");
    if (const auto finished = unpacker.finish(); !finished) {
      return failed(finished.error().message);
    }
    return tell_done(unpacker, figures);
  }

  int to_job(const std::string& source, const PathInJob& target) {
    SplitPath from = split(source);
    SplitPath to = split(target.path);
    if (from.name.empty() || from.name == "..") {
      // "." has no name to be given there, so its name is looked up.
      std::error_code error;
      from = split(std::filesystem::canonical(source, error).string());
    }
    const auto is_folder = to.name.empty() ? Called<bool>(true) : is_folder_in_job(target);
    if (!is_folder) return report(console_, is_folder.error(), false);
    if (*is_folder) to = {target.path.empty() ? "." : target.path, from.name};
    if (to.name.empty() || to.name == "..") return refuse_dots(source);
    auto packer = Packer::open(source, to.name);
    if (!packer) return failed(packer.error().message);
    CopyFigures figures(console_);
    const auto end =
        run_in_job(client_, target.job, {"tar", "-x", "-o", "-f", "-", "-C", to.folder},
                   {[&](std::span<char> into) {
                      const std::size_t count = packer->read(into);
                      figures.add(count);
                      return count;
                    },
                    [](std::string_view) { return true; }});
    figures.clear();
    if (!end) return report(console_, end.error(), false);
    if (const int code = tell_failure(target.job, *end)) return code;
    return tell_done(*packer, figures);
  }

 private:
  static std::string in_folder(const std::string& folder, const std::string& name) {
    return folder.ends_with('/') ? folder + name : folder + "/" + name;
  }

  // Without `test` there it is taken for the name that is wanted.
  Called<bool> is_folder_in_job(const PathInJob& target) {
    const auto end = run_in_job(client_, target.job, {"test", "-d", target.path},
                                {nullptr, [](std::string_view) { return true; }});
    if (!end) return std::unexpected(end.error());
    return end->was_started && end->code == 0;
  }

  int failed(const std::string& why) {
    console_.error(why);
    return kFailure;
  }
  int refuse_dots(const std::string& path) {
    return failed(fmt::format("'{}' has no name: end the path with one", path));
  }

  // 0: tar has done it.
  int tell_failure(const std::string& job, const CommandEnd& end) {
    if (!end.was_started && end.code == kNoSuchProgram) {
      return failed(fmt::format(
          "job {0} has no tar, through which files are copied: install it in the job's image, or "
          "copy one file with 'gpu-platform jobs exec {0} -- cat FILE'",
          job));
    }
    if (end.was_started && end.code == 0) return kOk;
    std::string why = end.errors;
    while (why.ends_with('\n')) why.pop_back();
    for (std::size_t at = why.find('\n'); at != std::string::npos; at = why.find('\n', at)) {
      why.replace(at, 1, "; ");
    }
    return failed(fmt::format("tar in job {}: {}", job,
                              why.empty() ? fmt::format("exit code {}", end.code) : why));
  }

  template <class Side>
  int tell_done(const Side& side, const CopyFigures& figures) {
    const std::vector<std::string>& left_out = side.left_out();
    for (std::size_t i = 0; i < std::min(left_out.size(), kShownLeftOut); ++i) {
      console_.warning("left out: " + left_out[i]);
    }
    if (left_out.size() > kShownLeftOut) {
      console_.warning(fmt::format("left out: {} more", left_out.size() - kShownLeftOut));
    }
    if (::isatty(console_.process_environment().err_fd) == 1) {
      console_.note(fmt::format("copied {}, {}", counted(side.files(), "file"), figures.total()));
    }
    return left_out.empty() ? kOk : kFailure;
  }

  Console& console_;
  Client& client_;
};

}  // namespace

int run_jobs_cp(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> words;
  Arguments arguments(text);
  arguments.words("SOURCE TARGET", words, 2, 2,
                  "what to copy and where to; ID:PATH is a path in a running job, relative to its "
                  "directory. A directory is copied with all that is in it");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto from = path_in_job(words[0]);
  const auto to = path_in_job(words[1]);
  if (from.has_value() == to.has_value()) {
    return usage_error(console,
                       from ? "both paths are in jobs: copy to this machine first"
                            : "no path is in a job: write one as ID:PATH, as in 42:/data/out",
                       text.name);
  }
  JobCopy copy(console, *client);
  return from ? copy.from_job(*from, words[1]) : copy.to_job(words[0], *to);
}

}  // namespace gpu_platform::cli
