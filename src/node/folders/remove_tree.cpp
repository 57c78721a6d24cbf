#include "node/folders/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace gpu_platform::node {

namespace {

struct Place {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

Place place_of(int fd) {
  struct stat about{};
  if (fstat(fd, &about) != 0) return {};
  return {about.st_dev, about.st_ino};
}

int open_folder_in(int parent, const char* name) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, parent, name, &how, sizeof how));
}

// Removes what is no folder; the first folder that is not empty is named, and nothing when the
// folder is empty now. False when something cannot be removed.
bool remove_files(int fd, std::string& first_folder) {
  first_folder.clear();
  const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = copy < 0 ? nullptr : fdopendir(copy);
  if (folder == nullptr) {
    if (copy >= 0) close(copy);
    return false;
  }
  bool removed = true;
  while (const dirent* entry = removed && first_folder.empty() ? readdir(folder) : nullptr) {
    const char* const name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    if (unlinkat(fd, name, 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) {
      removed = false;
    } else if (unlinkat(fd, name, AT_REMOVEDIR) != 0) {
      if (errno == ENOTEMPTY || errno == EEXIST) {
        first_folder = name;
      } else {
        removed = errno == ENOENT;
      }
    }
  }
  closedir(folder);
  return removed;
}

struct Level {
  Place parent;
  std::string name;  // in it
};

// Goes down to what has no folder below it, empties it, goes up by one. Closes `fd`.
bool empty_folder(int fd) {
  std::vector<Level> levels;
  std::string folder;
  while (true) {
    if (!remove_files(fd, folder)) break;
    int next = -1;
    if (!folder.empty()) {
      levels.push_back({place_of(fd), folder});
      next = open_folder_in(fd, folder.c_str());
    } else if (levels.empty()) {
      close(fd);
      return true;
    } else {
      next = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (next >= 0 && place_of(next) != levels.back().parent) {
        close(next);
        break;
      }
      if (next >= 0) unlinkat(next, levels.back().name.c_str(), AT_REMOVEDIR);
      levels.pop_back();
    }
    if (next < 0) break;
    close(fd);
    fd = next;
  }
  close(fd);
  return false;
}

}  // namespace

bool remove_tree(int parent, const char* name) {
  const int fd = open_folder_in(parent, name);
  if (fd < 0) return errno == ENOENT;
  return empty_folder(fd) && unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

}  // namespace gpu_platform::node
