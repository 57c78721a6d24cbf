#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "model/engine_kind.h"
#include "model/job.h"

// The container of a job: the written forms of its parts, and what they may be. The site's rules,
// which only the node part knows, may allow less.

namespace gpu_platform::model {

// "SRC:DST" or "SRC:DST:ro". Both paths are absolute, without "." and "..".
struct ContainerMount {
  std::string source;
  std::string target;
  bool read_only = false;

  friend bool operator==(const ContainerMount&, const ContainerMount&) = default;
};
base::Result<ContainerMount> parse_container_mount(std::string_view text);

// "DST:SIZE". A size is at least a page.
struct ContainerTmpfs {
  std::string target;
  base::Bytes size;

  friend bool operator==(const ContainerTmpfs&, const ContainerTmpfs&) = default;
};
base::Result<ContainerTmpfs> parse_container_tmpfs(std::string_view text);

// Returns why nothing of a job may be mounted at that path of a container; empty: it may. The
// folders that its engine makes keep it apart from the host; /etc says who it is.
std::string error_in_place(std::string_view path);
// The same for the directory that the job starts in.
std::string error_in_workdir(std::string_view path);

// Returns what is wrong with a reference to an image; empty: nothing. It is
// "[HOST[:PORT]/]NAME[/NAME][:TAG][@sha256:DIGEST]" in lower case, as registries have it.
std::string error_in_image(std::string_view reference);

// Returns what is wrong with a platform of an image; empty: nothing. It is "linux/ARCH" or
// "linux/ARCH/VARIANT".
std::string error_in_platform(std::string_view platform);

// Returns what is wrong with an annotation of a container; empty: nothing. Keys that begin with
// "gpu-platform." are the platform's own.
std::string error_in_annotation(std::string_view key, std::string_view value);

// Returns why no pod of a job may have an annotation of that key, which error_in_annotation has
// passed; empty: it may where the site names it. Keys of Kubernetes and of the platform steer the
// cluster, and "….gpus.devices" opens devices that the job was not given.
std::string error_in_pod_annotation(std::string_view key);

// What of a job an engine does not support: a field of the API, and why, as a sentence that begins
// with the field. No field: it supports all.
struct Unsupported {
  std::string field;
  std::string why;

  friend bool operator==(const Unsupported&, const Unsupported&) = default;
};
// Returns what keeps a job from an engine of this kind, at every site.
Unsupported unsupported_by(EngineKind engine, const JobSpec& spec);
// Returns what of a job with an image a container of this host cannot have yet.
Unsupported unsupported_by_host_container(const JobSpec& spec);
// Returns what of a job a pod cannot have.
Unsupported unsupported_by_kubernetes(const JobSpec& spec);

// Checks the container of a specification; without an image there must be no other part of one.
// Errors are kInvalidArgument and name the API's field.
base::Status check_container(const JobSpec& spec);

}  // namespace gpu_platform::model
