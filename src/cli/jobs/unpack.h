#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/jobs/tar.h"
#include "os/descriptor.h"

namespace gpu_platform::cli {

// Writes the entries of an archive to files below one path. The archive comes from a job, which is
// not trusted: names with ".." and absolute ones are refused, no link is followed below the path,
// and links that lead out of it are not made.
class Unpacker {
 public:
  // `root` is the name that all entries begin with; empty: none. They are written as `path` and
  // below it. `umask` is taken off their permission bits.
  Unpacker(std::string root, const std::string& path, unsigned umask);

  // The callbacks of a parser, in this order.
  base::Status entry(const TarEntry& entry);
  base::Status content(std::string_view bytes);
  base::Status end_of_entry();
  // Gives the directories their permissions and times, once all is written.
  base::Status finish();

  std::uint64_t files() const { return files_; }
  // What was left out, and why: links that lead out, devices.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  using Names = std::vector<std::string>;
  struct Directory {
    Names names;
    std::uint32_t mode;
    std::int64_t modified;
  };

  base::Result<Names> names_below(const std::string& name) const;
  base::Result<os::Descriptor> parent_of(const Names& names) const;
  base::Status make_directory(const Names& names, const TarEntry& entry);
  base::Status begin_file(const Names& names, const TarEntry& entry);
  base::Status make_link(const Names& names, const TarEntry& entry);
  base::Status make_hard_link(const Names& names, const TarEntry& entry);
  const std::string& last_of(const Names& names) const;
  std::string shown(const Names& names) const;

  std::string root_;
  std::string folder_;  // in which `path` lies
  std::string name_;    // of `path` there
  unsigned umask_;
  os::Descriptor file_;
  TarEntry current_;
  std::vector<Directory> directories_;
  std::uint64_t files_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace gpu_platform::cli
