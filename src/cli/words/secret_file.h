#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/descriptor.h"

// A new file for a secret, which no other user can read.

namespace gpu_platform::cli {

// Created empty before there is a secret, so that each secret has its place. Without put(), the
// destructor removes it again.
class SecretFile {
 public:
  // The file must not exist yet. Its mode is 0600.
  static base::Result<SecretFile> create(const std::string& path);
  SecretFile(SecretFile&& other) noexcept;
  SecretFile& operator=(SecretFile&&) = delete;
  ~SecretFile();

  // Writes the secret as one line. Root gives the file to `owner`, an account of this host; empty:
  // to none.
  base::Status put(std::string_view secret, const std::string& owner);

 private:
  SecretFile(std::string path, os::Descriptor file);

  std::string path_;  // empty: it stays
  os::Descriptor file_;
};

}  // namespace gpu_platform::cli
