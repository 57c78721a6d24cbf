#include "os/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/descriptor.h"

namespace gpu_platform::os {

namespace {

// posix_spawn's two tables, freed on every way out.
struct SpawnTables {
  SpawnTables() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnTables() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnTables(const SpawnTables&) = delete;
  SpawnTables& operator=(const SpawnTables&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (std::string& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

void make_all_signals_new(posix_spawnattr_t& attributes, bool leads_session) {
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int own = leads_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(own | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

}  // namespace

std::expected<pid_t, int> start_child_process(const ChildProgram& child) {
  SpawnTables tables;
  // Copies above all numbers of the child: none is overwritten before it has been copied.
  std::array<Descriptor, kChildLink + 1> copies;
  const std::array<int, kChildLink + 1> wanted = {child.input, child.output, child.errors,
                                                  child.link.value_or(kShared)};
  for (int number = 0; number <= kChildLink; ++number) {
    const auto at = static_cast<std::size_t>(number);
    if (wanted[at] == kShared) continue;
    if (wanted[at] == kNull) {
      posix_spawn_file_actions_addopen(&tables.files, number, "/dev/null",
                                       number == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
      continue;
    }
    copies[at] = Descriptor(::fcntl(wanted[at], F_DUPFD_CLOEXEC, kChildLink + 1));
    if (!copies[at].is_open()) return std::unexpected(errno);
    posix_spawn_file_actions_adddup2(&tables.files, copies[at].get(), number);
  }
  posix_spawn_file_actions_addclosefrom_np(&tables.files, child.link ? kChildLink + 1 : kChildLink);
  make_all_signals_new(tables.attributes, child.leads_session);
  std::vector<std::string> words = child.words;
  std::vector<std::string> environment = child.environment.value_or(std::vector<std::string>());
  const std::vector<char*> variables = pointers(environment);
  const std::string& file = child.file.empty() ? child.words.front() : child.file;
  pid_t pid = -1;
  const std::vector<char*> arguments = pointers(words);
  char* const* const all = child.environment ? variables.data() : environ;
  const int error = child.searches_path ? ::posix_spawnp(&pid, file.c_str(), &tables.files,
                                                         &tables.attributes, arguments.data(), all)
                                        : ::posix_spawn(&pid, file.c_str(), &tables.files,
                                                        &tables.attributes, arguments.data(), all);
  if (error != 0) return std::unexpected(error);
  return pid;
}

}  // namespace gpu_platform::os
