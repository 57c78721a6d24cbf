#include "shims/options/option_table.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/suggest.h"

namespace gpu_platform::shims {

namespace {

// Second names that Slurm's commands take without telling of them.
std::string_view first_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"tasks-per-node", "ntasks-per-node"},
      {"cpu_bind", "cpu-bind"},
      {"mem_bind", "mem-bind"},
      {"share", "oversubscribe"},
      {"workdir", "chdir"},
      {"pack-group", "het-group"},
  };
  const auto found =
      std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kNames) ? name : found->second;
}

// The option of that long name, or the only one that begins so.
const Option* find_long(std::span<const Option> table, std::string_view given) {
  const std::string_view name = first_name(given);
  const Option* found = nullptr;
  std::size_t count = 0;
  for (const Option& option : table) {
    if (option.name == name) return &option;
    if (name.size() > 2 && option.name.starts_with(name)) {
      found = &option;
      ++count;
    }
  }
  return count == 1 ? found : nullptr;
}

const Option* find_letter(std::span<const Option> table, char letter) {
  const auto found = std::ranges::find(table, letter, &Option::letter);
  return found == table.end() ? nullptr : &*found;
}

class Reader {
 public:
  Reader(const Reading& reading, std::span<const std::string> words, Settings& settings,
         std::vector<std::string>& warnings)
      : reading_(reading), words_(words), settings_(settings), warnings_(warnings) {}

  base::Result<std::vector<std::string>> read() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") break;
      if (word.starts_with("--")) {
        TRY(read_long(std::string_view(word).substr(2)));
      } else if (word.size() > 1 && word.starts_with('-')) {
        TRY(read_letters(std::string_view(word).substr(1)));
      } else {
        rest_.push_back(word);
        if (reading_.order == Order::kOptionsFirst) break;
      }
    }
    rest_.insert(rest_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    return std::move(rest_);
  }

 private:
  std::string at_place(std::string_view text) const {
    return reading_.where.empty() ? std::string(text) : fmt::format("{}: {}", reading_.where, text);
  }

  base::Status read_long(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const Option* option = find_long(reading_.table, name);
    if (option == nullptr)
      return unknown("--" + std::string(name), equals != std::string_view::npos);
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = text.substr(equals + 1);
    if (option->take == Take::kNothing && value.has_value()) {
      return base::invalid("--" + std::string(option->name), at_place("takes no value"));
    }
    return take(*option, std::move(value));
  }

  base::Status read_letters(std::string_view letters) {
    while (!letters.empty()) {
      const char letter = letters.front();
      letters.remove_prefix(1);
      const Option* option = find_letter(reading_.table, letter);
      if (option == nullptr) return unknown(fmt::format("-{}", letter), !letters.empty());
      if (option->take == Take::kNothing) {
        TRY(take(*option, std::nullopt));
        continue;
      }
      std::optional<std::string> value;
      if (!letters.empty()) value = letters;
      return take(*option, std::move(value));
    }
    return {};
  }

  base::Status take(const Option& option, std::optional<std::string> value) {
    if (option.take == Take::kValue && !value.has_value()) {
      if (at_ >= words_.size()) {
        return base::invalid("--" + std::string(option.name), at_place("needs a value"));
      }
      value = words_[at_++];
    }
    if (option.rule == Rule::kRefused) {
      return base::fail(base::ErrorCode::kFailedPrecondition, at_place(option.note),
                        "--" + std::string(option.name));
    }
    if (option.rule == Rule::kIgnored) {
      warnings_.push_back(at_place(fmt::format("--{} is ignored: {}", option.name, option.note)));
    }
    settings_.set(option, value.value_or(""));
    return {};
  }

  // It cannot be known whether an unknown option takes a value; the next word is taken for it if it
  // is not an option.
  base::Status unknown(const std::string& name, bool has_value) {
    if (reading_.unknown == Unknown::kError) {
      std::vector<std::string> names;
      for (const Option& option : reading_.table) names.push_back("--" + std::string(option.name));
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      return base::invalid(name, at_place("unknown option" + base::did_you_mean(name, candidates)));
    }
    std::string dropped = name;
    if (!has_value && at_ < words_.size() && !words_[at_].starts_with('-'))
      dropped += " " + words_[at_++];
    warnings_.push_back(at_place(fmt::format("{} is not known here and is ignored", dropped)));
    return {};
  }

  const Reading& reading_;
  std::span<const std::string> words_;
  Settings& settings_;
  std::vector<std::string>& warnings_;
  std::size_t at_ = 0;
  std::vector<std::string> rest_;
};

}  // namespace

void Settings::set(const Option& option, std::string value) {
  const std::string name(option.name);
  values_.erase(name.starts_with("no-") ? name.substr(3) : "no-" + name);
  // Each names further events.
  if (const std::string& former = this->value(name); name == "mail-type" && !former.empty()) {
    value = former + "," + value;
  }
  values_.insert_or_assign(name, std::move(value));
}

const std::string& Settings::value(std::string_view name) const {
  static const std::string kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

base::Result<std::vector<std::string>> read_options(const Reading& reading,
                                                    std::span<const std::string> words,
                                                    Settings& settings,
                                                    std::vector<std::string>& warnings) {
  return Reader(reading, words, settings, warnings).read();
}

base::Status read_variables(std::span<const Option> table, std::span<const std::string> environment,
                            Settings& settings, std::vector<std::string>& warnings) {
  for (const Option& option : table) {
    if (option.variable.empty()) continue;
    for (const std::string& entry : environment) {
      const std::size_t equals = entry.find('=');
      if (equals == std::string::npos ||
          std::string_view(entry).substr(0, equals) != option.variable)
        continue;
      const Reading reading{table, Unknown::kError, Order::kMixed, std::string(option.variable)};
      std::string word = "--" + std::string(option.name);
      if (option.take != Take::kNothing) word += "=" + entry.substr(equals + 1);
      TRY(read_options(reading, std::span(&word, 1), settings, warnings));
      break;
    }
  }
  return {};
}

}  // namespace gpu_platform::shims
