#include "api/convert/gpu_selector.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/convert/job.h"

namespace gpu_platform::api {

namespace {

// Returns null if there is no such GPU.
const std::string* find_uuid(std::string_view name, const std::set<std::string, std::less<>>& known,
                             const std::map<std::string_view, const model::Node*>& by_name) {
  if (const auto uuid = known.find(name); uuid != known.end()) return &*uuid;
  const auto place = parse_gpu_place(name);
  if (!place) return nullptr;
  const auto node = by_name.find(place->node);
  if (node == by_name.end() || *place->index >= node->second->gpus.size()) return nullptr;
  return &node->second->gpus[*place->index].info.uuid;
}

}  // namespace

base::Result<model::GpuSelector> parse_gpu_place(std::string_view text) {
  // Names of nodes may have colons, indices have none.
  const std::size_t colon = text.rfind(':');
  std::uint32_t index = 0;
  bool is_place = colon != std::string_view::npos && colon > 0;
  if (is_place) {
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, index);
    is_place = code == std::errc() && stop == end;
  }
  if (!is_place) {
    return base::invalid("gpu", "gpu: must be NODE:INDEX, as in \"dgx-h100-1:3\"");
  }
  return model::GpuSelector{{}, std::string(text.substr(0, colon)), index};
}

base::Result<std::vector<std::string>> to_gpu_uuids(const std::vector<std::string>& lists,
                                                    const std::string& field, const Nodes& nodes) {
  std::set<std::string, std::less<>> known;
  std::map<std::string_view, const model::Node*> by_name;
  nodes.for_each([&](std::uint64_t, const model::Node& node) {
    by_name[node.name] = &node;
    for (const model::Gpu& gpu : node.gpus) known.insert(gpu.info.uuid);
  });
  std::set<std::string> found;
  for (const std::string& list : lists) {
    for (std::size_t from = 0; from <= list.size();) {
      const std::size_t comma = std::min(list.find(',', from), list.size());
      const std::string_view name = std::string_view(list).substr(from, comma - from);
      from = comma + 1;
      const std::string* uuid = find_uuid(name, known, by_name);
      if (uuid == nullptr) {
        return base::fail(base::ErrorCode::kNotFound,
                          fmt::format("{}: there is no GPU '{}'; give a UUID or NODE:INDEX: "
                                      "'gpu-platform status --all' lists them",
                                      field, name.substr(0, 64)),
                          field);
      }
      found.insert(*uuid);
    }
  }
  return std::vector<std::string>(found.begin(), found.end());
}

base::Result<model::GpuSelector> to_model(const v1::GetGpuHealthRequest& request) {
  if (request.gpu_id().empty() == request.gpu().empty()) {
    return base::invalid("gpu_id", "gpu_id, gpu: give exactly one of them");
  }
  if (!request.gpu().empty()) return parse_gpu_place(request.gpu());
  return model::GpuSelector{request.gpu_id(), {}, std::nullopt};
}

base::Result<model::GpuSelector> to_model(const v1::ListEvidenceRequest& request) {
  const int given =
      int{!request.gpu_id().empty()} + int{!request.gpu().empty()} + int{!request.node().empty()};
  if (given > 1) {
    return base::invalid("gpu_id", "gpu_id, gpu, node: give at most one of them");
  }
  if (!request.gpu().empty()) return parse_gpu_place(request.gpu());
  return model::GpuSelector{request.gpu_id(), request.node(), std::nullopt};
}

base::Result<model::ChangeGpus> to_model(const v1::ChangeGpusRequest& request,
                                         model::GpuAction action) {
  const int given =
      int{!request.gpu_id().empty()} + int{!request.gpu().empty()} + int{!request.node().empty()};
  if (given != 1) {
    return base::invalid("gpu_id", "gpu_id, gpu, node: give exactly one of them");
  }
  const bool may_wait = action == model::GpuAction::kReset || action == model::GpuAction::kCheck;
  const bool may_force = may_wait || action == model::GpuAction::kTakeOffline;
  if (request.force() && !may_force) {
    return base::invalid("force",
                         "force: is only for taking GPUs offline, for resets and for checks");
  }
  if (request.when_empty() && !may_wait) {
    return base::invalid("when_empty", "when_empty: is only for resets and checks");
  }
  if (request.deep() && action != model::GpuAction::kCheck) {
    return base::invalid("deep", "deep: is only for checks");
  }
  const bool may_end =
      action == model::GpuAction::kDrain || action == model::GpuAction::kTakeOffline;
  if (request.has_until() && !may_end) {
    return base::invalid("until", "until: is only for draining GPUs and for taking them offline");
  }
  model::ChangeGpus change;
  change.action = action;
  change.reason = request.reason();
  change.force = request.force();
  change.when_empty = request.when_empty();
  change.deep = request.deep();
  // The epoch would be no end: it is a time that is over, too.
  if (request.has_until()) change.until = std::max(to_model(request.until()), base::Instant(1));
  change.which.uuid = request.gpu_id();
  change.which.node = request.node();
  if (!request.gpu().empty()) {
    TRY_ASSIGN(change.which, parse_gpu_place(request.gpu()));
  }
  return change;
}

}  // namespace gpu_platform::api
