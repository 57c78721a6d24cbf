#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"

// The place where a command outside of a job and a process inside it meet: a socket of this machine
// without a file. Both must be of one user. What they tell each other has no limit as the daemon's
// requests have, and a connection shows either side when the other one has ended.

namespace gpu_platform::shims {

class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  int fd() const { return fd_; }
  base::Status send_line(std::string line) const;
  // Returns the line without its end. Nothing behind the line is read. An end of the connection is
  // an error.
  base::Result<std::string> read_line() const;

  // Lends the other side standard input, output and error: it gets descriptors of its own for them.
  base::Status lend_streams(const std::array<int, 3>& streams) const;
  // Returns what the other side lent; the caller closes them.
  base::Result<std::array<int, 3>> borrow_streams() const;

 private:
  int fd_;
};

class RendezvousPlace {
 public:
  static base::Result<RendezvousPlace> open();
  RendezvousPlace(RendezvousPlace&& other) noexcept;
  RendezvousPlace& operator=(RendezvousPlace&&) = delete;
  ~RendezvousPlace();

  const std::string& name() const { return name_; }
  int fd() const { return fd_; }  // readable when a process has come
  base::Result<Connection> accept() const;

 private:
  RendezvousPlace(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  int fd_;
  std::string name_;
};

base::Result<Connection> meet(const std::string& name);

}  // namespace gpu_platform::shims
