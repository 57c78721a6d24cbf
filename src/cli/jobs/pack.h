#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/jobs/tar.h"
#include "os/descriptor.h"

namespace gpu_platform::cli {

// A file or a directory with all that is in it as an archive, made while it is read. Links are sent
// as links, only `path` itself is followed; other kinds of files are left out. A file that becomes
// shorter meanwhile is filled with zeros, so that the archive stays whole.
class Packer {
 public:
  // `root` is the name of `path` in the archive.
  static base::Result<Packer> open(const std::string& path, const std::string& root);

  // The next bytes; 0: the end, or an error.
  std::size_t read(std::span<char> into);

  std::uint64_t files() const { return files_; }
  // What was left out, and why.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Found {
    std::string path;
    std::string name;
  };

  Packer() = default;
  void begin_next();
  void add_children(const Found& found);
  bool begin_file(const Found& found, TarEntry& entry);

  std::vector<Found> found_;  // to be sent, the last first
  std::string ready_;         // bytes of headers and padding
  std::size_t taken_ = 0;     // of them
  os::Descriptor file_;
  std::uint64_t left_ = 0;  // of the file's content
  std::size_t padding_ = 0;
  bool has_ended_ = false;
  bool is_root_ = true;
  std::uint64_t files_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace gpu_platform::cli
