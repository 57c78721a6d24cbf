#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "execution/container/container_failure.h"
#include "execution/container/engine_calls.h"
#include "execution/container/long_step.h"
#include "execution/container/registry_credentials.h"
#include "model/job.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

struct ImageOrder {
  std::string image;
  model::ImagePull pull = model::ImagePull::kMissing;
  std::string platform = {};  // empty: the engine's own
  // Asked only where the image is fetched; may be null.
  std::function<RegistryCredentials()> credentials = nullptr;
};

struct ImageOnHost {
  std::string id;         // the engine's; empty: not known
  std::string id_before;  // what the image's name meant before; empty: nothing was there
  bool is_fetched = false;
  std::string platform = {};   // "linux/amd64"; empty: not known
  nlohmann::json config = {};  // "Config" of the engine's answer; null: not known
};

// Makes the engine have the image, which it fetches from its registry where the order says so. A
// fetch that failed for what may pass is tried again, after 1, 2 and 4 s. Blocking, as long as the
// engine takes. An image of another platform than the order's is as good as none. The failure has
// the registry's words, without the credentials.
ContainerDone<ImageOnHost> fetch_image(EngineCalls& engine, const ImageOrder& order,
                                       const LongStep& step);

// The query of the call that fetches it. A name alone means its tag "latest", as with the engines'
// own tools: the call would fetch all tags.
std::string pull_query(std::string_view image, std::string_view platform = {});

// Returns whether a registry that said so may say otherwise soon: it was not reached, was busy or
// broken. "Not found" and "denied" stay.
bool may_pass(std::string_view words);
// Returns whether they mean that the registry wants other credentials.
bool is_denied(std::string_view words);

// How far a fetch is, from the lines of progress that an engine sends, in any pieces.
class PullProgress {
 public:
  // Returns false if a line is too long to be one.
  bool take(std::string_view bytes);
  // The registry's words, if a line was an error.
  const std::string& error() const { return error_; }
  // Returns the progress of the layers known so far; it never decreases. -1: nothing is known.
  int percent() const { return percent_; }
  // The bytes of these layers, as they are sent.
  std::int64_t size() const { return size_; }

 private:
  struct Layer {
    std::string id;
    std::int64_t done = 0;
    std::int64_t size = 0;
  };

  void take_line(std::string_view line);
  Layer& layer(const std::string& id);

  std::string rest_;
  std::string error_;
  std::vector<Layer> layers_;
  int percent_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace gpu_platform::execution
