#include "api/convert/field_selection.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"

namespace gpu_platform::api {

namespace {

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::unexpected<base::Error> unknown_field(const MessagePlan& plan, std::string_view name) {
  std::vector<std::string_view> known;
  for (const FieldPlan& field : plan.fields) {
    if (!field.is_input_only) known.push_back(field.name);
  }
  std::string hint = base::did_you_mean(name, known);
  if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(known, ", "));
  return base::invalid("fields", fmt::format("fields: there is no '{}'{}", name, hint));
}

// The parts that are asked for of one field; none: the whole of it.
struct Wanted {
  bool is_whole = false;
  std::vector<std::string_view> parts;
};

}  // namespace

base::Result<FieldSelection> FieldSelection::parse(std::string_view text,
                                                   const google::protobuf::Descriptor& answer) {
  if (text.size() > kMaxBytes) {
    return base::invalid("fields", fmt::format("fields: at most {} bytes", kMaxBytes));
  }
  FieldSelection selection;
  selection.plans_.emplace_back();
  TRY_ASSIGN(selection.plans_.front(),
             selection.select(api::plan_of(answer), split_at_commas(text)));
  return selection;
}

base::Result<std::unique_ptr<MessagePlan>> FieldSelection::select(
    const MessagePlan& whole, std::vector<std::string_view> paths) {
  std::map<std::string_view, Wanted> wanted;
  for (const std::string_view path : paths) {
    const std::size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    const FieldPlan* const field = whole.find(name);
    if (field == nullptr || field->is_input_only) return unknown_field(whole, name);
    if (dot == std::string_view::npos) {
      wanted[name].is_whole = true;
    } else if (field->message == nullptr) {
      return base::invalid("fields", fmt::format("fields: '{}' has no fields of its own", name));
    } else {
      wanted[name].parts.push_back(path.substr(dot + 1));
    }
  }
  auto plan = std::make_unique<MessagePlan>();
  plan->descriptor = whole.descriptor;
  for (const FieldPlan& field : whole.fields) {
    const auto found = wanted.find(field.name);
    if (found == wanted.end()) continue;
    FieldPlan& chosen = plan->add(field);
    if (found->second.is_whole) continue;
    TRY_ASSIGN(auto part, select(*field.message, std::move(found->second.parts)));
    chosen.message = part.get();
    plans_.push_back(std::move(part));
  }
  return plan;
}

const MessagePlan* FieldSelection::plan_of_field(std::string_view name) const {
  const auto& fields = plan().fields;
  const auto found = std::ranges::find(fields, name, &FieldPlan::name);
  return found == fields.end() ? nullptr : found->message;
}

}  // namespace gpu_platform::api
