#include "cli/job_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/letters.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/input.h"
#include "cli/time_expression.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::cli {

namespace {

using api::JsonKind;

constexpr std::string_view kNone = "none";
constexpr std::uint64_t kMaxGpus = 65535;

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

// An empty value is mostly a variable of the shell that was never set.
base::Status check_value(const v1::CommandOption& option, const std::string& text) {
  if (text.empty()) {
    return base::invalid(option.flag(), fmt::format("the value is empty; write {}, or leave {} out",
                                                    option.value(), option.flag()));
  }
  return check_text(option.flag(), text);
}

base::Result<Json> count_of(const std::string& text, const api::FieldPlan& field) {
  const auto bound = [](const std::optional<double>& limit, std::uint64_t otherwise) {
    return limit ? static_cast<std::uint64_t>(*limit) : otherwise;
  };
  TRY_ASSIGN(const std::uint64_t count, base::parse_count(text, bound(field.limits.least, 0),
                                                          bound(field.limits.most, UINT32_MAX)));
  return Json(count);
}

base::Result<Json> seconds_of(const std::string& text) {
  TRY_ASSIGN(const base::Duration duration, base::parse_duration(text));
  return Json(static_cast<double>(base::whole_milliseconds(duration)) / 1000);
}

base::Result<Json> size_of(const std::string& text) {
  TRY_ASSIGN(const base::Bytes size, base::parse_size(text));
  return Json(size.value());
}

// "on-demand" stands for ON_DEMAND.
std::string enum_name(std::string_view text) {
  std::string name = base::to_upper(text);
  std::ranges::replace(name, '-', '_');
  return name;
}

// One text as the field's value; errors need no field.
base::Result<Json> value_of(const std::string& text, const api::FieldPlan& field,
                            base::Instant now) {
  switch (field.kind) {
    case JsonKind::kUint32:
      return count_of(text, field);
    case JsonKind::kUint64:
      return size_of(text);
    case JsonKind::kDouble:
      return seconds_of(text);
    case JsonKind::kEnum:
      return Json(enum_name(text));
    case JsonKind::kTimestamp: {
      TRY_ASSIGN(const base::Instant at, parse_future_time(text, now));
      std::string time;
      base::append_rfc3339(time, at);
      return Json(std::move(time));
    }
    default:
      return Json(text);
  }
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

base::Status JobOptions::put(Json& spec, std::vector<std::string>& clear, base::Instant now) const {
  const Given* before = nullptr;
  for (const Given& given : given_) {
    if (!given.is_given()) continue;
    const api::FieldPlan& field = *given.field;
    const v1::CommandOption& option = *given.option;
    const auto wrong = [&](std::string message) {
      return base::invalid(option.flag(), std::move(message));
    };
    if (given.text) TRY(check_value(option, *given.text));
    for (const std::string& text : given.texts) TRY(check_value(option, text));
    // Lists that the command line puts together itself may stand beside each other.
    const bool is_joint = option.kind() == v1::OPTION_KIND_OWN_LIST;
    if (before != nullptr && before->field == given.field && !is_joint) {
      return wrong("cannot be used together with " + before->option->flag());
    }
    before = &given;
    if (is_own(option)) continue;
    if (is_cleared(given)) {
      clear.push_back(field.name);
    } else if (given.is_set) {
      spec[field.name] = option.sets().empty() ? Json(true) : Json::parse(option.sets());
    } else if (field.kind == JsonKind::kMap) {
      TRY(put_pairs(spec[field.name], given.texts, option.flag()));
    } else if (option.kind() == v1::OPTION_KIND_JOINED) {
      spec[field.name] = fmt::format("{}", fmt::join(given.texts, ","));
    } else if (field.kind == JsonKind::kEnum && field.is_repeated) {
      for (const std::string& word : words_of_lists(given.texts)) {
        spec[field.name].push_back(enum_name(word));
      }
    } else if (field.is_repeated) {
      // Lists as they are written: the daemon knows what they name.
      for (const std::string& list : given.texts) spec[field.name].push_back(list);
    } else {
      auto value = value_of(*given.text, field, now);
      if (!value) return wrong(value.error().message);
      spec[field.name] = *std::move(value);
    }
  }
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

base::Status put_gpu_count(Json& spec, const JobOptions& job, std::uint64_t nodes) {
  for (const char* const flag : {"--gpus", "--gpus-per-node"}) {
    const std::optional<std::string>& text = job.text(flag);
    if (!text) continue;
    const auto count = base::parse_count(*text, 0, kMaxGpus);
    if (!count) return base::invalid(flag, count.error().message);
    spec["gpus"] = *count;
  }
  if (!job.has("--gpus")) return {};
  const std::uint64_t gpus = spec.value("gpus", std::uint64_t{0});
  if (gpus % nodes != 0) {
    return base::invalid("--gpus", fmt::format("{} GPUs cannot be divided among {} nodes; say "
                                               "--gpus-per-node",
                                               gpus, nodes));
  }
  spec["gpus"] = gpus / nodes;
  return {};
}

Failure with_option_name(Failure failure) {
  if (failure.field.empty() || !failure.message.starts_with(failure.field + ":")) return failure;
  const auto* const field = v1::JobSpec::descriptor()->FindFieldByName(failure.field);
  if (field == nullptr || field->options().ExtensionSize(v1::option) == 0) return failure;
  const v1::CommandOption& option = field->options().GetExtension(v1::option, 0);
  failure.message.replace(0, failure.field.size(), option.flag());
  failure.field = option.flag();
  return failure;
}

base::Status put_gpu_types(Json& spec, const std::vector<std::string>& lists) {
  Json speeds = Json::array();
  bool has_speeds = false;
  for (const std::string& word : words_of_lists(lists)) {
    const std::size_t colon = word.find(':');
    spec["gpu_types"].push_back(word.substr(0, colon));
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
    speeds.push_back(speed);
  }
  if (has_speeds) spec["gpu_speeds"] = speeds;
  return {};
}

}  // namespace gpu_platform::cli
