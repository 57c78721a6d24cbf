#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/options/option_table.h"
#include "shims/steps/step_variables.h"
#include "shims/submission/submission.h"

// The options of pyxis, Slurm's plugin for containers: a job whose script or program runs in an
// image. Pure. Their meaning is that of pyxis' own help; what a container of the platform cannot
// have is refused.

namespace gpu_platform::shims {

inline bool wants_container(const Settings& settings) {
  return settings.has("container-image");
}

// "docker://REGISTRY#NAME:TAG", "REGISTRY#NAME:TAG" or "NAME:TAG" as the platform writes it, with
// the registry that enroot takes where none is named. Errors say what to do.
base::Result<std::string> image_of(std::string_view enroots);

// "SRC:DST[:FLAGS],…" as the platform's mounts; FLAGS: ro or rw. A folder alone is mounted at its
// own place.
base::Result<std::vector<std::string>> mounts_of(std::string_view list);

// What the caller has.
struct ContainerCaller {
  Variables variables;
  std::string home;  // empty: unknown
};

// Makes the job of `spec`, which has its environment, run in the image that the options name: the
// script with its interpreter, which is in the image, or the command. No variable of the caller
// gets there but those that --export or --container-env names. Errors name the option.
base::Status put_container(const Settings& settings, const Work& work,
                           const ContainerCaller& caller, v1::JobSpec& spec);

// Returns the options that mean nothing without an image, in words.
std::vector<std::string> container_warnings(const Settings& settings);

}  // namespace gpu_platform::shims
