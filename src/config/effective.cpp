#include "config/effective.h"

#include <algorithm>

namespace gpu_platform::config {

namespace {

const KeyPlace* place_of(std::string_view key, const Configuration& configuration) {
  const auto found = std::ranges::find(configuration.places, key, &KeyPlace::key);
  return found == configuration.places.end() ? nullptr : &*found;
}

std::string text_of(std::string_view key, const Configuration& configuration) {
  const KeyPlace* const place = place_of(key, configuration);
  return place == nullptr ? std::string() : place->text;
}

std::string text_of(const MpsControl& control) {
  if (control.is_off) return "off";
  return control.path.empty() ? "auto" : control.path;
}

}  // namespace

std::vector<EffectiveValue> effective_values(const Configuration& configuration) {
  std::vector<EffectiveValue> values;
  const auto add = [&](std::string_view key, std::string value, Effect effect) {
    EffectiveValue& added = values.emplace_back();
    added = {std::string(key), std::move(value), {}, 0, effect};
    if (const KeyPlace* const place = place_of(key, configuration)) {
      added.file = place->file;
      added.line = place->line;
    }
  };
  for (const Key& key : schema()) add(key.path, value_text(key, configuration), key.effect);
  for (const Structure& structure : structures()) {
    const KeyPlace* const place = place_of(structure.path, configuration);
    if (place != nullptr) add(structure.path, place->text, Effect::kAnytime);
  }
  return values;
}

InForce values_in_force(std::string file, const Configuration& at_start,
                        const Configuration& last_read) {
  InForce in_force{std::move(file), {}};
  const std::vector<EffectiveValue> first = effective_values(at_start);
  for (EffectiveValue& read : effective_values(last_read)) {
    InForce::Value& added = in_force.values.emplace_back();
    added.next = read.value;
    // Only lists and tables may be missing at the start, and a reload may change those.
    added.now = read.effect == Effect::kRestart
                    ? *std::ranges::find(first, read.key, &EffectiveValue::key)
                    : std::move(read);
    if (added.now.line != 0 && added.now.file.empty()) added.now.file = in_force.file;
  }
  return in_force;
}

std::vector<Difference> differences(const Configuration& from, const Configuration& to) {
  std::vector<Difference> found;
  for (const Key& key : schema()) {
    std::string before = value_text(key, from);
    std::string after = value_text(key, to);
    if (before != after) {
      found.push_back({std::string(key.path), std::move(before), std::move(after), key.effect});
    }
  }
  const std::size_t values = found.size();
  for (const Structure& structure : structures()) {
    if (text_of(structure.path, from) != text_of(structure.path, to)) {
      found.push_back({std::string(structure.path), {}, {}, Effect::kAnytime});
    }
  }
  // Nodes have said which modes they have.
  if (from.mps_control != to.mps_control) {
    found.push_back({"sharing.mps_control", text_of(from.mps_control), text_of(to.mps_control),
                     Effect::kRestart});
  }
  // The text of 'teams_file' is the name of the file, whose contents may have changed.
  const bool is_organisation_same = *from.policy.organisation == *to.policy.organisation &&
                                    from.access.coordinators == to.access.coordinators;
  if (!is_organisation_same && found.size() == values && place_of("teams_file", to) != nullptr) {
    found.push_back({"teams_file", {}, {}, Effect::kAnytime});
  }
  return found;
}

}  // namespace gpu_platform::config
