#include "cli/words/job_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/json_reader.h"
#include "base/check.h"
#include "base/letters.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/words/input.h"
#include "cli/words/time_expression.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

using api::JsonKind;

constexpr std::string_view kNone = "none";
constexpr std::string_view kSpecPart = "spec.";  // of the fields in a request that has a job in it

// May be given several times.
bool is_many(const api::FieldPlan& field, const v1::CommandOption& option) {
  switch (option.kind()) {
    case v1::OPTION_KIND_JOINED:
    case v1::OPTION_KIND_OWN_LIST:
      return true;
    case v1::OPTION_KIND_OWN:
      return false;
    default:
      return field.is_repeated || field.kind == JsonKind::kMap;
  }
}

bool is_own(const v1::CommandOption& option) {
  return option.kind() == v1::OPTION_KIND_OWN || option.kind() == v1::OPTION_KIND_OWN_LIST;
}

// Says how long the job may run.
bool is_time_limit(const api::FieldPlan& field) {
  const int number = field.field->number();
  return number == v1::JobSpec::kTimeLimitSecondsFieldNumber ||
         number == v1::JobSpec::kGpuTimeSecondsFieldNumber;
}

// An empty value is mostly a variable of the shell that was never set.
base::Status check_value(const v1::CommandOption& option, const std::string& text) {
  if (text.empty()) {
    return base::invalid(option.flag(), fmt::format("the value is empty; write {}, or leave {} out",
                                                    option.value(), option.flag()));
  }
  return check_text(option.flag(), text);
}

base::Result<std::string> count_text(const std::string& text, const api::FieldPlan& field) {
  const auto bound = [](const std::optional<double>& limit, std::uint64_t otherwise) {
    return limit ? static_cast<std::uint64_t>(*limit) : otherwise;
  };
  TRY_ASSIGN(const std::uint64_t count, base::parse_count(text, bound(field.limits.least, 0),
                                                          bound(field.limits.most, UINT32_MAX)));
  return fmt::format("{}", count);
}

// Limits are told as a person writes durations: the daemon's own message counts in seconds.
base::Result<std::string> duration_text(const std::string& text, const api::FieldPlan& field) {
  const bool is_short = field.field->number() == v1::JobSpec::kSliceSecondsFieldNumber;
  TRY_ASSIGN(const base::Duration duration,
             is_short ? base::parse_short_duration(text) : base::parse_duration(text));
  const double seconds = static_cast<double>(base::whole_milliseconds(duration)) / 1000;
  if (is_short && (seconds < *field.limits.least || seconds > *field.limits.most)) {
    return base::invalid({}, fmt::format("'{}' is out of range: 100ms to 60s is allowed", text));
  }
  if (field.limits.least && seconds < *field.limits.least) {
    return base::invalid({},
                         fmt::format("'{}' is not a time: write 90s, 15m, 2h, 1d, or a number of "
                                     "minutes",
                                     text));
  }
  if (field.limits.most && seconds > *field.limits.most) {
    const auto most = base::seconds(static_cast<std::int64_t>(*field.limits.most));
    return base::invalid({}, fmt::format("'{}' is too long: at most {}", text, written(most)));
  }
  return fmt::format("{}", seconds);
}

// "on-demand" stands for ON_DEMAND.
std::string enum_name(std::string_view text) {
  std::string name = base::to_upper(text);
  std::ranges::replace(name, '-', '_');
  return name;
}

// The text of an option as the API writes the field's value; errors need no field.
base::Result<std::string> text_of_value(const std::string& text, const api::FieldPlan& field,
                                        base::Instant now) {
  switch (field.kind) {
    case JsonKind::kUint32:
      return count_text(text, field);
    case JsonKind::kUint64: {
      TRY_ASSIGN(const base::Bytes size, base::parse_size(text));
      return fmt::format("{}", size.value());
    }
    case JsonKind::kDouble:
      return duration_text(text, field);
    case JsonKind::kEnum:
      return enum_name(text);
    case JsonKind::kTimestamp: {
      TRY_ASSIGN(const base::Instant at, parse_future_time(text, now));
      std::string time;
      base::append_rfc3339(time, at);
      return time;
    }
    default:
      return text;
  }
}

// The message without the field's name in front, if it stands there.
std::string without_name(std::string message, std::string_view name) {
  const std::string prefix = fmt::format("{}: ", name);
  while (message.starts_with(prefix)) message.erase(0, prefix.size());
  return message;
}

// Sets the field, or adds to it if it is a list. Errors name the option.
base::Status put_text(v1::JobSpec& spec, const api::FieldPlan& field, const std::string& flag,
                      std::string_view text) {
  const base::Status put = api::read_text(field.name, text, spec);
  if (put) return {};
  return base::invalid(flag, without_name(put.error().message, field.name));
}

// A map of texts that options fill.
google::protobuf::Map<std::string, std::string>& map_of(v1::JobSpec& spec,
                                                        const api::FieldPlan& field) {
  if (field.field->number() == v1::JobSpec::kAnnotationsFieldNumber) {
    return *spec.mutable_annotations();
  }
  CHECK(field.field->number() == v1::JobSpec::kLabelsFieldNumber);
  return *spec.mutable_labels();
}

}  // namespace

// What most jobs need, of these options and of those of the commands that take them.
constexpr std::array<std::string_view, 22> kCommonOptions = {
    "--gpus",   "--nodes", "--gpu-type", "--gpu-memory", "--cpus",  "--memory",
    "--time",   "--name",  "--priority", "--team",       "--array", "--dependency",
    "--output", "--env",   "--image",    "--pty",        "--wait",  "--timeout",
    "--file",   "--json",  "--dry-run",  "--server"};

JobOptions::JobOptions(Of of) : of_(of) {
  for (const api::FieldPlan& field : api::plan_of(*v1::JobSpec::descriptor()).fields) {
    const auto& options = field.field->options();
    for (int i = 0; i < options.ExtensionSize(v1::option); ++i) {
      const v1::CommandOption& option = options.GetExtension(v1::option, i);
      if (of == Of::kUpdate && option.update() == v1::UPDATE_NEVER) continue;
      given_.push_back({&field, &option, {}, {}, false});
    }
  }
}

void JobOptions::define(Arguments& arguments) {
  arguments.common(kCommonOptions);
  for (Given& given : given_) {
    const v1::CommandOption& option = *given.option;
    const bool is_update = of_ == Of::kUpdate;
    const bool clears = is_update && option.update() == v1::UPDATE_SETS_OR_CLEARS;
    const std::string& help =
        is_update && !option.update_help().empty() ? option.update_help() : option.help();
    const std::string value = option.value() + (clears ? "|none" : "");
    const std::string names = option.letter().empty()
                                  ? option.flag()
                                  : fmt::format("-{},{}", option.letter(), option.flag());
    if (option.value().empty()) {
      arguments.flag(names, given.is_set, help);
    } else if (is_many(*given.field, option)) {
      arguments.many(names, given.texts, value, help);
    } else {
      arguments.option(names, given.text, value, help);
    }
  }
}

void JobOptions::fill_from(const JobOptions& earlier) {
  std::set<const api::FieldPlan*> own;
  bool has_time_limit = false;
  for (const Given& mine : given_) {
    if (!mine.is_given()) continue;
    own.insert(mine.field);
    has_time_limit = has_time_limit || is_time_limit(*mine.field);
  }
  for (std::size_t i = 0; i < given_.size(); ++i) {
    Given& mine = given_[i];
    const Given& theirs = earlier.given_[i];
    if (!theirs.is_given() || (has_time_limit && is_time_limit(*mine.field))) continue;
    if (mine.field->kind == JsonKind::kMap) {
      mine.texts.insert(mine.texts.begin(), theirs.texts.begin(), theirs.texts.end());
    } else if (!own.contains(mine.field)) {
      mine.text = theirs.text;
      mine.texts = theirs.texts;
      mine.is_set = theirs.is_set;
    }
  }
}

base::Status JobOptions::put_given(const Given& given, v1::JobSpec& spec, base::Instant now) const {
  const api::FieldPlan& field = *given.field;
  const v1::CommandOption& option = *given.option;
  const std::string& flag = option.flag();
  if (field.kind == JsonKind::kMap) return put_pairs(map_of(spec, field), given.texts, flag);
  spec.GetReflection()->ClearField(&spec, field.field);
  if (given.is_set) {
    // "\"STRICT\"" is JSON; the names in it need no escapes.
    std::string_view value = option.sets().empty() ? "true" : std::string_view(option.sets());
    if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
    return put_text(spec, field, flag, value);
  }
  if (option.kind() == v1::OPTION_KIND_JOINED) {
    return put_text(spec, field, flag, fmt::format("{}", fmt::join(given.texts, ",")));
  }
  if (field.is_repeated) {
    // Lists of names stay as they are written: the daemon knows what they name.
    const bool is_enum = field.kind == JsonKind::kEnum;
    for (const std::string& word : is_enum ? words_of_lists(given.texts) : given.texts) {
      TRY(put_text(spec, field, flag, is_enum ? enum_name(word) : word));
    }
    return {};
  }
  const auto text = text_of_value(*given.text, field, now);
  if (!text) return base::invalid(flag, text.error().message);
  return put_text(spec, field, flag, *text);
}

base::Status JobOptions::put(v1::JobSpec& spec, std::vector<std::string>& clear,
                             base::Instant now) const {
  const Given* before = nullptr;
  for (const Given& given : given_) {
    if (!given.is_given()) continue;
    const v1::CommandOption& option = *given.option;
    if (given.text) TRY(check_value(option, *given.text));
    for (const std::string& text : given.texts) TRY(check_value(option, text));
    // Lists that the command line puts together itself may stand beside each other.
    const bool is_joint = option.kind() == v1::OPTION_KIND_OWN_LIST;
    if (before != nullptr && before->field == given.field && !is_joint) {
      return base::invalid(option.flag(), "cannot be used together with " + before->option->flag());
    }
    before = &given;
    if (is_own(option)) continue;
    if (is_cleared(given)) {
      clear.push_back(given.field->name);
    } else {
      TRY(put_given(given, spec, now));
    }
  }
  // A number that was there would contradict the class.
  if (find("--priority").is_given()) spec.clear_priority_number();
  return {};
}

bool JobOptions::is_cleared(const Given& given) const {
  if (of_ != Of::kUpdate || given.option->update() != v1::UPDATE_SETS_OR_CLEARS) return false;
  return given.text == kNone || (given.texts.size() == 1 && given.texts.front() == kNone);
}

const JobOptions::Given& JobOptions::find(std::string_view flag) const {
  const auto found = std::ranges::find_if(
      given_, [&](const Given& given) { return given.option->flag() == flag; });
  CHECK(found != given_.end());
  return *found;
}

bool JobOptions::has(std::string_view flag) const {
  return find(flag).is_given();
}

const std::optional<std::string>& JobOptions::text(std::string_view flag) const {
  return find(flag).text;
}

const std::vector<std::string>& JobOptions::texts(std::string_view flag) const {
  return find(flag).texts;
}

std::string JobOptions::names() const {
  std::vector<std::string_view> names;
  for (const Given& given : given_) names.push_back(given.option->flag());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string JobOptions::option_of(std::string_view field) const {
  std::string first;
  for (const Given& given : given_) {
    if (given.field->name != field) continue;
    if (given.is_given()) return given.option->flag();
    if (first.empty()) first = given.option->flag();
  }
  return first;
}

std::string JobOptions::typed(std::string_view flag) const {
  const Given& given = find(flag);
  if (given.text) return *given.text;
  return given.texts.size() == 1 ? given.texts.front() : std::string();
}

namespace {

// The first option of that field of a job; empty if it has none.
std::string first_option_of(const std::string& field) {
  const auto* const of = v1::JobSpec::descriptor()->FindFieldByName(field);
  if (of == nullptr || of->options().ExtensionSize(v1::option) == 0) return {};
  return of->options().GetExtension(v1::option, 0).flag();
}

}  // namespace

Failure with_option_name(Failure failure, const JobOptions* given) {
  std::string name = failure.field.substr(0, failure.field.find('['));
  if (name.starts_with(kSpecPart)) name.erase(0, kSpecPart.size());
  if (name == "gpu_share") name = "gpus";  // one option has both
  auto about = client::about_field(failure.message, failure.field);
  if (!about) return failure;
  const std::string flag = given != nullptr ? given->option_of(name) : first_option_of(name);
  if (flag.empty()) return failure;
  about->sentence = without_name(std::move(about->sentence), failure.field);
  about->sentence = without_name(std::move(about->sentence), name);
  // What is asked for on each of several nodes is less than what was typed.
  const bool is_typed =
      !about->value.empty() && about->value.find(" on each ") == std::string::npos;
  if (is_typed && given != nullptr) {
    if (std::string typed = given->typed(flag); !typed.empty()) about->value = std::move(typed);
  }
  failure.message = client::told_of_option(flag, *about);
  failure.field = flag;
  return failure;
}

std::string with_option_name(const std::string& sentence) {
  const std::string field = sentence.substr(0, sentence.find_first_of(" :"));
  const auto about = client::about_field(sentence, field);
  const std::string flag = about ? first_option_of(field) : std::string();
  return flag.empty() ? sentence : client::told_of_option(flag, *about);
}

base::Status put_gpu_types(v1::JobSpec& spec, const std::vector<std::string>& lists) {
  if (lists.empty()) return {};
  spec.clear_gpu_types();
  spec.clear_gpu_speeds();
  bool has_speeds = false;
  for (const std::string& word : words_of_lists(lists)) {
    const std::size_t colon = word.find(':');
    spec.add_gpu_types(word.substr(0, colon));
    double speed = 1;
    if (colon != std::string::npos) {
      has_speeds = true;
      const char* const begin = word.data() + colon + 1;
      const char* const end = word.data() + word.size();
      const auto [stop, code] = std::from_chars(begin, end, speed);
      if (code != std::errc() || stop != end || !(speed >= 0.001 && speed <= 1000)) {
        return base::invalid("--gpu-type", fmt::format("'{}': a speed is a number from 0.001 to "
                                                       "1000, as in A100:0.5",
                                                       word));
      }
    }
    spec.add_gpu_speeds(speed);
  }
  if (!has_speeds) spec.clear_gpu_speeds();
  return {};
}

}  // namespace gpu_platform::cli
