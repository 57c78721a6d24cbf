#include "execution/container/image_fetch.h"

#include <string_view>

#include "execution/container/output_frames.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

// Lines of JSON, or one; errors come with the status of success.
std::string pull_error(const Json& answer) {
  const std::string text = answer.is_string() ? answer.get<std::string>() : answer.dump();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const Json line = Json::parse(rest.substr(0, end), nullptr, false);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.is_object() && line.contains("error") && line["error"].is_string()) {
      return line["error"].get<std::string>();
    }
  }
  return {};
}

}  // namespace

ContainerDone<> fetch_image(EngineCalls& engine, const std::string& image, model::ImagePull pull) {
  if (pull != model::ImagePull::kAlways) {
    const auto found = engine.get("/images/" + image + "/json");
    if (found) return {};
    if (found.error().status != 404) return container_failed("image " + image, found.error());
    if (pull == model::ImagePull::kNever) {
      return container_failed(
          fmt::format("image {} is not here, and --pull never forbids to fetch it", image));
    }
  }
  write_all(2, fmt::format("gpu-platform: fetching image {}\n", image));
  std::string query;
  cli::append_query(query, "fromImage", image);
  const auto pulled = engine.post_slow("/images/create?" + query);
  if (!pulled) return container_failed("fetching image " + image, pulled.error());
  if (const std::string why = pull_error(*pulled); !why.empty()) {
    return container_failed(fmt::format("fetching image {}: {}", image, why));
  }
  return {};
}

}  // namespace gpu_platform::execution
