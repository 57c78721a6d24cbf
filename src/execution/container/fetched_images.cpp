#include "execution/container/fetched_images.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "execution/container/registry_credentials.h"
#include "model/container.h"
#include "os/replaced_file.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxImages = 2048;  // the file then is well below 1 MiB
constexpr const char* kFile = "/run/fetched-images";
constexpr std::int64_t kSecond = 1'000'000'000;

std::string_view digits_of(std::string_view id) {
  return id.starts_with("sha256:") ? id.substr(7) : id;
}

bool is_id(std::string_view id) {
  id = digits_of(id);
  return !id.empty() && id.size() <= 128 &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// By any container of the engine. It refuses the removal of such an image itself only while that
// has one name.
bool may_be_in_use(EngineCalls& engine, const std::string& id) {
  const auto containers = engine.get("/containers/json?all=1");
  if (!containers || !containers->is_array()) return true;
  return std::ranges::any_of(*containers, [&](const Json& container) {
    return digits_of(text_field(container, "ImageID")) == digits_of(id);
  });
}

}  // namespace

// Open: it is our turn until it is closed.
os::Descriptor FetchedImages::take_turn() const {
  if (root_.empty()) return {};
  const std::string path = root_ + kFile + ".turn";
  os::Descriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  while (lock.is_open() && flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return {};
  }
  return lock;
}

std::vector<FetchedImages::Image> FetchedImages::read() const {
  std::vector<Image> images;
  const Json file =
      Json::parse(os::read_small_file(AT_FDCWD, (root_ + kFile).c_str()), nullptr, false);
  for (const Json& one : file.is_array() ? file : Json::array()) {
    const std::int64_t used_s = number_field(one, "used");
    Image image{text_field(one, "id"), text_field(one, "reference"), {}};
    const bool is_sound = is_id(image.id) && !image.reference.empty() && used_s > 0 &&
                          used_s < INT64_MAX / kSecond && images.size() < kMaxImages;
    if (!is_sound) continue;
    image.used = base::Instant(used_s * kSecond);
    images.push_back(std::move(image));
  }
  return images;
}

void FetchedImages::write(const std::vector<Image>& images) const {
  Json file = Json::array();
  for (const Image& image : images) {
    file.push_back({{"id", image.id},
                    {"reference", image.reference},
                    {"used", image.used.unix_ns() / kSecond}});
  }
  // If it cannot be written, the file stays as it was: what is not in it is not removed.
  (void)os::replace_file(root_ + kFile, file.dump(1) + "\n", 0600);
}

void FetchedImages::note_use(std::string_view reference, base::Instant now) const {
  const os::Descriptor turn = take_turn();
  if (!turn.is_open()) return;
  std::vector<Image> images = read();
  const std::string name = full_reference(reference);
  bool is_known = false;
  for (Image& image : images) {
    if (image.reference != name) continue;
    image.used = now;
    is_known = true;
  }
  if (is_known) write(images);
}

void FetchedImages::note_fetch(std::string_view reference, const ImageOnHost& image,
                               base::Instant now) const {
  if (!image.is_fetched || !is_id(image.id)) return;
  const os::Descriptor turn = take_turn();
  if (!turn.is_open()) return;
  std::vector<Image> images = read();
  const std::string name = full_reference(reference);
  const auto knows = [&](const std::string& id) {
    return std::ranges::any_of(
        images, [&](const Image& known) { return known.id == id && known.reference == name; });
  };
  if (!image.id_before.empty() && !knows(image.id_before)) return;
  if (!knows(image.id)) {
    if (images.size() == kMaxImages)
      images.erase(std::ranges::min_element(images, {}, &Image::used));
    images.push_back({image.id, name, now});
  }
  write(images);
}

// Returns whether there was one to look at. Jobs wait for the removal of one image at most.
bool FetchedImages::remove_next(EngineCalls& engine, base::Instant used_before,
                                std::vector<std::string>& kept) const {
  const os::Descriptor turn = take_turn();
  if (!turn.is_open()) return false;
  std::vector<Image> images = read();
  const auto next = std::ranges::find_if(images, [&](const Image& image) {
    return image.used < used_before &&
           std::ranges::find(kept, image.id + image.reference) == kept.end();
  });
  if (next == images.end()) return false;
  kept.push_back(next->id + next->reference);
  const auto found = engine.get("/images/" + next->id + "/json");
  if (!found && found.error().status != 404) return !found.error().is_away;
  if (found && may_be_in_use(engine, next->id)) return true;
  const std::string name = found ? removable_name(*found, next->reference) : "";
  if (!name.empty()) {
    const auto removed = engine.remove("/images/" + name + "?force=false");
    if (!removed && removed.error().status != 404) return !removed.error().is_away;
  }
  images.erase(next);
  write(images);
  return true;
}

void FetchedImages::remove_unused(EngineCalls& engine, base::Duration unused_for,
                                  base::Instant now) const {
  const base::Instant used_before(now.unix_ns() - std::min(unused_for.value(), now.unix_ns()));
  std::vector<std::string> kept;
  while (remove_next(engine, used_before, kept)) {
  }
}

std::string full_reference(std::string_view image) {
  const std::string name = credential_keys(image).front();
  if (const std::size_t at = image.find('@'); at != std::string_view::npos) {
    return fmt::format("{}{}", name, image.substr(at));
  }
  const std::size_t slash = image.rfind('/');
  const std::size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  return name + (colon == std::string_view::npos ? ":latest" : std::string(image.substr(colon)));
}

std::string removable_name(const Json& image, std::string_view reference) {
  const Json tags = field(image, "RepoTags");
  bool has_names = false;
  for (const Json& tag : tags.is_array() ? tags : Json::array()) {
    const std::string name = tag.is_string() ? tag.get<std::string>() : "";
    if (!model::error_in_image(name).empty()) continue;  // "<none>:<none>"
    has_names = true;
    if (full_reference(name) == reference) return name;
  }
  const std::string id = text_field(image, "Id");
  return has_names || !is_id(id) ? std::string() : id;
}

}  // namespace gpu_platform::execution
