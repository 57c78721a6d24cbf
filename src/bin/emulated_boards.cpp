#include "bin/emulated_boards.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "os/child_process.h"

namespace gpu_platform::bin {

namespace {

constexpr std::uint32_t kMaxNodes = 1024;

struct Spec {
  std::uint32_t count = 1;
  std::string_view board;
};

base::Result<Spec> parse_spec(std::string_view text) {
  Spec spec{1, text};
  const std::size_t x = text.find('x');
  if (x != std::string_view::npos && x > 0) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + x, spec.count);
    if (error == std::errc() && end == text.data() + x) {
      spec.board = text.substr(x + 1);
    } else {
      spec.count = 1;  // an "x" inside a board's name, as in "dgx-h100"
    }
  }
  if (spec.board.empty() || spec.count == 0 || spec.count > kMaxNodes) {
    return base::invalid("--emulate",
                         fmt::format("\"{}\" is not [Nx]BOARD with N from 1 to {}, as in "
                                     "16xdgx-h100",
                                     text, kMaxNodes));
  }
  return spec;
}

// Reads all that the child says on the pipe.
std::string drain(int fd) {
  std::string text;
  char buffer[1024];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

base::Result<std::vector<EmulatedNode>> parse_emulate(std::string_view value) {
  std::vector<EmulatedNode> nodes;
  std::map<std::string, std::uint32_t, std::less<>> used;
  while (true) {
    const std::size_t comma = value.find(',');
    TRY_ASSIGN(const Spec spec, parse_spec(value.substr(0, comma)));
    const std::string board(spec.board);
    for (std::uint32_t i = 0; i < spec.count; ++i) {
      nodes.push_back({fmt::format("{}-{}", board, ++used[board]), board});
    }
    if (comma == std::string_view::npos) return nodes;
    value.remove_prefix(comma + 1);
  }
}

base::Status create_board(const EmulatedNode& node, const std::string& dir,
                          const std::string& emulator) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return std::unexpected(base::system_error("pipe", errno));
  std::vector<std::string> words = {emulator,      "create",  "--board", node.board,
                                    "--node-name", node.name, "--dir",   dir};
  const auto child = os::start_child_process({.words = std::move(words), .errors = fds[1]});
  close(fds[1]);
  if (!child) {
    close(fds[0]);
    return std::unexpected(base::system_error("run " + emulator, child.error()));
  }
  std::string said = drain(fds[0]);
  close(fds[0]);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return base::invalid("--emulate", fmt::format("board {}: {}", node.board, said));
}

}  // namespace gpu_platform::bin
