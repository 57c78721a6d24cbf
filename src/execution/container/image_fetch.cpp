#include "execution/container/image_fetch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <utility>

#include "execution/container/answer_fields.h"
#include "execution/container/image_platform.h"
#include "execution/container/output_frames.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxLine = std::size_t{1} << 20;
constexpr std::size_t kMaxLayers = 1000;
constexpr std::size_t kMaxRegistryWords = 400;
constexpr const char* kStopped = "stopped while its image was fetched";
constexpr std::array kPauses = {base::seconds(1), base::seconds(2), base::seconds(4)};

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return small;
}

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Whether it stands there by itself, and not in a port, a tag or a digest.
bool has_number(std::string_view text, std::string_view number) {
  const auto is_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == ':' || c == '.';
  };
  for (std::size_t at = 0; (at = text.find(number, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + number.size();
    const bool ends = end == text.size() || !std::isalnum(static_cast<unsigned char>(text[end]));
    if ((at == 0 || !is_of_word(text[at - 1])) && ends) return true;
  }
  return false;
}

// Why it could not be fetched.
struct PullFailure {
  std::string words;
  bool may_pass = false;
};

// " of 1.5 GiB"; nothing for a small image.
std::string of_size(std::int64_t bytes) {
  constexpr std::int64_t kMib = std::int64_t{1} << 20;
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  if (bytes < kMib) return {};
  return bytes < kGib ? fmt::format(" of {} MiB", bytes / kMib)
                      : fmt::format(" of {:.1f} GiB",
                                    static_cast<double>(bytes) / static_cast<double>(kGib));
}

// The lines end with the fetch; an error is one of them, after the status of success.
std::optional<PullFailure> pull_once(EngineCalls& engine, const ImageOrder& order,
                                     const RegistryCredentials& credentials, const LongStep& step) {
  std::string header;
  if (!credentials.header.empty()) header = "X-Registry-Auth: " + credentials.header + "\r\n";
  auto lines =
      engine.stream("/images/create?" + pull_query(order.image, order.platform), std::move(header));
  if (!lines) {
    const EngineFailure& failure = lines.error();
    return PullFailure{failure.message, failure.is_away || may_pass(failure.message)};
  }
  PullProgress progress;
  int shown = -1;
  while (true) {
    const auto part = lines->next();
    if (!part) return PullFailure{part.error().message, part.error().is_away};
    if (!progress.take(*part)) return PullFailure{"the engine's answer makes no sense"};
    if (!progress.error().empty()) return PullFailure{progress.error(), may_pass(progress.error())};
    if (part->empty()) return std::nullopt;
    if (progress.percent() == shown) continue;
    shown = progress.percent();
    step.tell(fmt::format("pulling the image, {} %{}", shown, of_size(progress.size())));
  }
}

ContainerDone<> pull(EngineCalls& engine, const ImageOrder& order, const LongStep& step) {
  RegistryCredentials credentials;
  if (order.credentials) {
    credentials = order.credentials();
    // A signal may have come meanwhile.
    if (!step.wait(base::Duration())) return container_failed(kStopped);
  }
  for (std::size_t tries = 0;; ++tries) {
    step.tell("pulling the image");
    const auto failure = pull_once(engine, order, credentials, step);
    if (!failure) return {};
    const std::string words = without_secrets(failure->words, credentials);
    if (!failure->may_pass || tries == kPauses.size()) {
      const std::string hint = is_denied(words) ? credentials.hint : "";
      return container_failed(fmt::format("fetching image {}: {}{}{}", order.image, words,
                                          hint.empty() ? "" : "; ", hint));
    }
    step.tell(fmt::format("the image cannot be pulled now, and is tried again: {}", words));
    if (!step.wait(kPauses[tries])) return container_failed(kStopped);
  }
}

// An image that does not say its platform is taken for the right one.
bool is_another(const ImageOnHost& image, const ImageOrder& order) {
  return !order.platform.empty() && !image.platform.empty() &&
         !is_of_platform(image.platform, order.platform);
}

std::unexpected<ContainerFailure> not_here(const ImageOnHost& image, const ImageOrder& order) {
  const std::string what = is_another(image, order) ? fmt::format("is here for {} and not for {}",
                                                                  image.platform, order.platform)
                                                    : "is not here";
  return container_failed(
      fmt::format("image {} {}, and --pull never forbids to fetch it", order.image, what));
}

}  // namespace

std::string pull_query(std::string_view image, std::string_view platform) {
  const std::size_t slash = image.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? image : image.substr(slash + 1);
  std::string query;
  http::append_query(query, "fromImage", image);
  if (name.find_first_of(":@") == std::string_view::npos)
    http::append_query(query, "tag", "latest");
  if (!platform.empty()) http::append_query(query, "platform", platform);
  return query;
}

bool may_pass(std::string_view words) {
  static constexpr std::string_view kLasting[] = {
      "not found", "manifest unknown", "no such image", "does not exist", "invalid", "unsupported"};
  static constexpr std::string_view kPassing[] = {"timeout",
                                                  "timed out",
                                                  "connection refused",
                                                  "connection reset",
                                                  "no such host",
                                                  "temporary failure",
                                                  "unreachable",
                                                  "eof",
                                                  "too many requests",
                                                  "toomanyrequests",
                                                  "500 internal",
                                                  "unavailable",
                                                  "bad gateway",
                                                  "received unexpected http status: 5"};
  static constexpr std::string_view kPassingStatus[] = {"429", "502", "503", "504"};
  const std::string small = in_small_letters(words);
  if (is_denied(words) || contains_any(small, kLasting)) return false;
  return contains_any(small, kPassing) || std::ranges::any_of(kPassingStatus, [&](auto status) {
           return has_number(small, status);
         });
}

// Docker's engine has "no basic auth credentials" for a registry that wants some.
bool is_denied(std::string_view words) {
  static constexpr std::string_view kDenied[] = {
      "denied", "unauthorized", "forbidden", "authentication", "authorization", "auth credentials"};
  return contains_any(in_small_letters(words), kDenied);
}

bool PullProgress::take(std::string_view bytes) {
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    take_line(std::string_view(rest_).substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  if (bytes.empty()) take_line(std::exchange(rest_, {}));  // the last may have no end
  return rest_.size() <= kMaxLine;
}

PullProgress::Layer& PullProgress::layer(const std::string& id) {
  const auto found = std::ranges::find(layers_, id, &Layer::id);
  if (found != layers_.end()) return *found;
  if (layers_.size() < kMaxLayers) layers_.push_back({id});
  return layers_.back();
}

void PullProgress::take_line(std::string_view text) {
  const Json line = Json::parse(text, nullptr, false);
  const std::string words = text_field(line, "error");
  if (error_.empty() && !words.empty()) error_ = words.substr(0, kMaxRegistryWords);
  const std::string id = text_field(line, "id");
  if (id.empty()) return;
  const std::string status = text_field(line, "status");
  const Json detail = field(line, "progressDetail");
  const std::int64_t size = number_field(detail, "total");
  if (status == "Downloading" && size > 0 && size < (std::int64_t{1} << 50)) {
    Layer& known = layer(id);
    known.size = size;
    known.done = std::clamp<std::int64_t>(number_field(detail, "current"), 0, size);
  } else if (status == "Download complete" || status == "Pull complete") {
    Layer& known = layer(id);
    known.done = known.size;
  }
  std::int64_t done = 0;
  std::int64_t all = 0;
  for (const Layer& known : layers_) {
    done += known.done / 1024;
    all += known.size / 1024;
  }
  size_ = all * 1024;
  if (all > 0) percent_ = std::max(percent_, static_cast<int>(done * 100 / all));
}

ContainerDone<ImageOnHost> fetch_image(EngineCalls& engine, const ImageOrder& order,
                                       const LongStep& step) {
  const std::string path = "/images/" + order.image + "/json";
  ImageOnHost image;
  const auto found = engine.get(path);
  if (found) {
    image.id_before = text_field(*found, "Id");
    image.platform = platform_of_image(*found);
    image.config = field(*found, "Config");
  }
  if (order.pull != model::ImagePull::kAlways) {
    if (found && !is_another(image, order)) {
      image.id = image.id_before;
      return image;
    }
    if (!found && found.error().status != 404) {
      return container_failed("image " + order.image, found.error());
    }
    if (order.pull == model::ImagePull::kNever) return not_here(image, order);
  }
  write_all(2, fmt::format("gpu-platform: fetching image {}\n", order.image));
  if (auto pulled = pull(engine, order, step); !pulled) return std::unexpected(pulled.error());
  image.is_fetched = true;
  const auto fetched = engine.get(path);
  if (!fetched) return image;
  image.id = text_field(*fetched, "Id");
  image.platform = platform_of_image(*fetched);
  image.config = field(*fetched, "Config");
  if (is_another(image, order)) {
    return container_failed(fmt::format("image {} is for {}, and --platform asks for {}",
                                        order.image, image.platform, order.platform));
  }
  return image;
}

}  // namespace gpu_platform::execution
