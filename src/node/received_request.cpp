#include "node/received_request.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpu_platform::node {

std::string_view map_request(int fd) {
  struct stat about{};
  if (fd < 0 || fstat(fd, &about) != 0 || about.st_size <= 0 ||
      static_cast<std::uint64_t>(about.st_size) > kMaxRequest) {
    return {};
  }
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_WRITE) == 0 || (seals & F_SEAL_SHRINK) == 0) return {};
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) return {};
  return {static_cast<const char*>(map), size};
}

void release_request(std::string_view bytes) {
  if (!bytes.empty()) munmap(const_cast<char*>(bytes.data()), bytes.size());
}

std::string error_of(const LaunchRequest& request, std::string_view boot_id) {
  if (request.boot_id != boot_id) return "the start was decided in another boot of this node";
  if (request.output.size() <= 1 && request.output_files == 0) return "no output file is allowed";
  return {};
}

}  // namespace gpu_platform::node
