#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace gpu_platform::outbound {

// A folder for the files of one test, which goes with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gp-outbound-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  // Both return the file's path.
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  std::string script(const std::string& name, std::string_view text) const {
    const std::string path = write(name, fmt::format("#!/bin/sh\n{}\n", text));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // Readable and writable by its owner alone.
  std::string secret(const std::string& name, std::string_view text) const {
    const std::string path = write(name, text);
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gpu_platform::outbound
