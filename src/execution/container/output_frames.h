#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpu_platform::execution {

// Writes all of it. Gives up where the reader is gone: the container goes on.
void write_all(int fd, std::string_view bytes);

// The output of a container without a terminal, as engines send it: each part has eight bytes
// before it, which stream, three zeros, its size with the highest byte first. Parts come in any
// pieces; they are written to descriptors 1 and 2.
class OutputFrames {
 public:
  struct Piece {
    int fd = 1;
    std::string_view bytes;  // may be empty
  };

  void take(std::string_view bytes);
  // Takes the next piece off the front of `bytes`, which are not empty.
  Piece next(std::string_view& bytes);

 private:
  static constexpr std::size_t kHead = 8;

  void begin_part();

  std::string head_;
  std::size_t left_ = 0;
  int fd_ = 1;
};

}  // namespace gpu_platform::execution
