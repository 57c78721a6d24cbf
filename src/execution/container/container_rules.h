#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/container.h"
#include "model/job_spec.h"

// What a site allows jobs with an image. The rules are a file of root's that only the node part
// reads: the daemon cannot change them.

namespace gpu_platform::execution {

// One line each, "#" begins a comment:
//   socket PATH              the engine's, once
//   image PATTERN            an image that jobs may use; * stands for any text
//   mount FOLDER [ro]        a folder of the host of which jobs may mount anything; ro: never to
//                            write
//   network none|host|bridge one that jobs may have; none is always allowed
//   capability NAME          that a container keeps, as CAP_NAME; of a job's user only programs of
//                            the image gain it, and no-new-privileges stops those
//   ulimit NAME N            of the container's processes, for engines that may not raise theirs
//   seccomp off              the engine has no filter of system calls
//   gpus nodes|cdi|nvidia    how the engine gets the GPUs of a job; default: found out
//   driver FILE              of the driver on this host, which containers with GPUs have at the
//                            same place to read, for `gpus nodes`
//   writable SIZE|none       what a container may write outside of its mounts; none: nothing, its
//                            root filesystem is read-only
//   annotation PATTERN       a key of annotations that jobs may set; runtimes and hooks act on some
//   pull always              the registry is asked for every use of an image
//   images keep DURATION     images that jobs had fetched are removed when unused for that long
//   credentials FILE         the site's own for registries, root's alone to read
//   credentials users        jobs may use the files of their users' homes
struct ContainerRules {
  struct Folder {
    std::string path;
    bool read_only = false;
  };
  struct Ulimit {
    std::string name;
    std::int64_t limit = 0;
  };
  std::string socket;
  std::vector<std::string> images;
  std::vector<Folder> mounts;
  bool allow_host_network = false;
  bool allow_bridge_network = false;
  std::vector<std::string> capabilities;
  std::vector<Ulimit> ulimits;
  bool needs_seccomp = true;
  std::string gpus;  // empty: found out
  std::vector<std::string> driver_files;
  std::vector<std::string> annotations;  // patterns of keys
  bool is_read_only = false;
  std::string writable;  // as the engine takes a size: "10g"; empty: the engine's default
  bool always_pulls = false;
  std::optional<base::Duration> keep_images;  // unused; nothing: for ever
  std::string site_credentials;               // a file; empty: none
  bool allow_user_credentials = false;
};

// The error names the line.
base::Result<ContainerRules> parse_container_rules(std::string_view text);

// These return why the rules do not allow it; empty: they do.
std::string error_in_image(const ContainerRules& rules, std::string_view image);
std::string error_in_mount(const ContainerRules& rules, const model::ContainerMount& mount);
std::string error_in_network(const ContainerRules& rules, model::ContainerNetwork network);
// The annotation is "KEY=VALUE".
std::string error_in_annotation(const ContainerRules& rules, std::string_view annotation);

// Returns whether the text is what the pattern says, where each * stands for any text.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace gpu_platform::execution
