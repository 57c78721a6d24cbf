#include "sizing/models.h"

#include <algorithm>

#include "sizing/model_name.h"
#include "sizing/model_table.h"

namespace gpu_platform::sizing {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

std::string joined_name(std::string_view name) {
  return joined(words_of_name(name));
}

// The names of the table and its aliases, with what they stand for.
template <class Visit>
void for_each_name(Visit visit) {
  for (const KnownModel& model : kKnownModels) {
    visit(model.name, FoundModel{&model, model.context, true});
  }
  for (const Alias& alias : kAliases) {
    const auto* model = std::ranges::find(kKnownModels, alias.model, &KnownModel::name);
    visit(alias.name, FoundModel{model, alias.context == 0 ? model->context : alias.context, true});
  }
}

std::optional<FoundModel> find_exactly(const std::vector<std::string>& words) {
  const std::string wanted = joined(words);
  std::optional<FoundModel> found;
  for_each_name([&](std::string_view name, const FoundModel& model) {
    if (joined_name(name) == wanted) found = model;
  });
  return found;
}

// True when some neighbouring words together are `name`.
bool contains_name(const std::vector<std::string>& words, std::string_view name) {
  for (std::size_t first = 0; first < words.size(); ++first) {
    std::string_view rest = name;
    for (std::size_t i = first; i < words.size() && rest.starts_with(words[i]); ++i) {
      rest.remove_prefix(words[i].size());
      if (rest.empty()) return true;
    }
  }
  return false;
}

// The longest known name within the words. Only names that say a size count: "phi-4" is within the
// names of models of other shapes.
std::optional<FoundModel> find_within(const std::vector<std::string>& words) {
  std::optional<FoundModel> found;
  std::size_t length = 0;
  for_each_name([&](std::string_view name, const FoundModel& model) {
    if (!facts_of_name(name).parameters || name.size() <= length) return;
    if (!contains_name(words, joined_name(name))) return;
    found = model;
    found->is_exact = false;
    length = name.size();
  });
  return found;
}

}  // namespace

std::span<const KnownModel> known_models() {
  return kKnownModels;
}

std::uint64_t embedding_parameters(const KnownModel& model) {
  const std::uint64_t one = std::uint64_t{model.stack.vocabulary} * model.stack.hidden;
  return model.stack.output == OutputMatrix::kTied ? one : 2 * one;
}

std::uint64_t expert_parameters(const KnownModel& model) {
  const Experts& experts = model.experts;
  const std::uint64_t layers = model.stack.layers - experts.dense_layers;
  return layers * experts.count * 3 * model.stack.hidden * experts.width;
}

std::optional<FoundModel> find_model(std::string_view name) {
  std::vector<std::string> words = words_of_name(name);
  if (words.size() > 64) return std::nullopt;  // no model is called so
  if (auto whole = find_exactly(words)) return whole;
  const auto context = facts_of_name(name).context;
  std::erase_if(words, is_dressing);
  auto found = find_exactly(words);
  if (!found) {
    std::vector<std::string> undated = words;
    std::erase_if(undated, is_date_or_version);
    found = find_exactly(undated);
  }
  if (!found) found = find_within(words);
  if (found && context) found->context = *context;
  return found;
}

}  // namespace gpu_platform::sizing
