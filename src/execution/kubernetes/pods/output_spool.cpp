#include "execution/kubernetes/pods/output_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "execution/process/kept_output.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

base::Result<OutputSpool> OutputSpool::open(std::string folder, std::uint64_t limit_bytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || chmod(folder.c_str(), 0700) != 0) {
    return base::fail(base::ErrorCode::kInternal,
                      fmt::format("the folder {} cannot be made: {}", folder,
                                  error ? error.message() : ::strerrordesc_np(errno)));
  }
  return OutputSpool(std::move(folder), limit_bytes);
}

std::string OutputSpool::path(model::AttemptId attempt) const {
  return kept_output_path(folder_, attempt);
}

base::Status OutputSpool::store(Written& written, const std::string& path, std::string_view bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const bool begins = written.bytes == 0;
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (begins ? O_TRUNC : O_APPEND);
  const os::Descriptor file(::open(path.c_str(), flags, 0600));
  if (!file.is_open()) return std::unexpected(base::system_error("open " + path, errno));
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(base::system_error("write " + path, errno));
    bytes.remove_prefix(static_cast<std::size_t>(n));
    written.bytes += static_cast<std::uint64_t>(n);
  }
  return {};
}

base::Status OutputSpool::append(model::AttemptId attempt, std::uint32_t rank,
                                 std::string_view bytes) {
  Written& written = written_[attempt];
  written.by_rank[rank] += bytes.size();
  if (written.is_cut || bytes.empty()) return {};
  const std::string file = path(attempt);
  if (limit_bytes_ == 0 || written.bytes + bytes.size() <= limit_bytes_) {
    return store(written, file, bytes);
  }
  TRY(store(written, file, bytes.substr(0, limit_bytes_ - written.bytes)));
  written.is_cut = true;
  return store(written, file,
               fmt::format("\n[gpu-platform: more than {} bytes of output are not kept "
                           "(execution.output_limit)]\n",
                           limit_bytes_));
}

base::Status OutputSpool::complete(model::AttemptId attempt, std::uint32_t rank,
                                   std::string_view all) {
  const std::uint64_t had = written_[attempt].by_rank[rank];
  return had >= all.size() ? base::Status() : append(attempt, rank, all.substr(had));
}

std::uint64_t OutputSpool::received(model::AttemptId attempt, std::uint32_t rank) const {
  const auto written = written_.find(attempt);
  if (written == written_.end()) return 0;
  const auto bytes = written->second.by_rank.find(rank);
  return bytes == written->second.by_rank.end() ? 0 : bytes->second;
}

void OutputSpool::close(model::AttemptId attempt) {
  written_.erase(attempt);
}

void OutputSpool::remove(model::JobId job) const {
  std::error_code ignored;
  std::filesystem::remove_all(std::filesystem::path(path({job, 1})).parent_path(), ignored);
}

}  // namespace gpu_platform::execution
