#include "cli/words/gpu_choice.h"

#include <utility>

#include <fmt/format.h>

#include "api/convert/gpu_selector.h"
#include "base/percent.h"

namespace gpu_platform::cli {

void GpuChoice::add_to(Arguments& arguments, std::size_t max_words) {
  arguments
      .words(max_words == 1 ? "[NODE | NODE:INDEX | UUID]" : "[NODE | NODE:INDEX | UUID]…", words,
             0, max_words, "all of a node, or one of its GPUs, without the option")
      .option("--gpu-id", gpu_id, "UUID", "the GPU with this UUID")
      .option("--gpu", gpu, "NODE:INDEX", "the GPU with this index on that node")
      .option("--node", node, "NAME", "all of a node");
}

int GpuChoice::given() const {
  return int{gpu_id.has_value()} + int{gpu.has_value()} + int{node.has_value()} +
         int{!words.empty()};
}

void GpuChoice::take_word() {
  if (words.size() != 1 || gpu_id || gpu || node) return;
  *this = choice_of_word(words.front());
}

std::optional<std::string> GpuChoice::mistake() const {
  for (const auto& [name, value] :
       {std::pair{"--gpu-id", &gpu_id}, {"--gpu", &gpu}, {"--node", &node}}) {
    if (value->has_value() && (*value)->empty()) return fmt::format("{}: is empty", name);
  }
  if (!gpu.has_value()) return std::nullopt;
  const auto place = api::parse_gpu_place(*gpu);
  if (place) return std::nullopt;
  return fmt::format("--gpu: '{}' is not NODE:INDEX, as in dgx-h100-1:3", *gpu);
}

std::string GpuChoice::query() const {
  if (gpu_id) return "gpu_id=" + base::percent_encoded(*gpu_id);
  if (gpu) return "gpu=" + base::percent_encoded(*gpu);
  return node ? "node=" + base::percent_encoded(*node) : std::string();
}

GpuChoice choice_of_word(const std::string& word) {
  GpuChoice choice;
  const bool is_uuid = word.starts_with("GPU-") || word.starts_with("MIG-");
  const bool has_index = word.find(':') != std::string::npos;
  (is_uuid ? choice.gpu_id : has_index ? choice.gpu : choice.node) = word;
  return choice;
}

}  // namespace gpu_platform::cli
