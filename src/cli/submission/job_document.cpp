#include "cli/submission/job_document.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/convert/field_plan.h"
#include "api/convert/json_reader.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/units.h"
#include "config/yaml/tree.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

using api::FieldPlan;
using api::JsonKind;
using api::MessagePlan;
using config::YamlTree;
using DocumentJson = nlohmann::ordered_json;

std::unexpected<base::Error> wrong_at(int line, std::string message) {
  return base::invalid(line > 0 ? fmt::format("line {}", line) : std::string(), std::move(message));
}

base::Status check_known(const MessagePlan& plan, const std::string& name, int line) {
  if (plan.find(name) != nullptr) return {};
  std::vector<std::string_view> names;
  for (const FieldPlan& field : plan.fields) names.push_back(field.name);
  return wrong_at(line, fmt::format("unknown field '{}'{}", name, base::did_you_mean(name, names)));
}

// "64G" of a size and "2h" of a time; other texts stay, and are refused with the field's rule.
DocumentJson number_of_text(const FieldPlan& field, const std::string& text) {
  if (field.name.ends_with("_bytes")) {
    if (const auto size = base::parse_size(text)) return size->value();
  } else if (field.name.ends_with("_seconds")) {
    if (const auto time = base::parse_short_duration(text)) {
      return static_cast<double>(base::whole_milliseconds(*time)) / 1000;
    }
  }
  return text;
}

// The JSON value of a plain word, whose type follows from the field.
DocumentJson scalar_json(const FieldPlan& field, const YamlTree& tree) {
  switch (field.kind) {
    case JsonKind::kString:
    case JsonKind::kBytes:
    case JsonKind::kEnum:
    case JsonKind::kTimestamp:
      return tree.text;
    case JsonKind::kBool:
      if (tree.kind == YamlTree::Kind::kPlain && (tree.text == "true" || tree.text == "false")) {
        return tree.text == "true";
      }
      return tree.text;
    default:
      break;
  }
  const bool is_plain = tree.kind == YamlTree::Kind::kPlain;
  DocumentJson number =
      is_plain ? DocumentJson::parse(tree.text, nullptr, false) : DocumentJson(tree.text);
  if (number.is_number()) return number;
  return number_of_text(field, tree.text);
}

base::Result<DocumentJson> json_of(const MessagePlan& plan, const YamlTree& tree);

base::Result<DocumentJson> value_json(const FieldPlan& field, const YamlTree& tree) {
  switch (tree.kind) {
    case YamlTree::Kind::kNull:
      return DocumentJson();
    case YamlTree::Kind::kPlain:
    case YamlTree::Kind::kQuoted:
      return scalar_json(field, tree);
    case YamlTree::Kind::kList: {
      if (!field.is_repeated)
        return wrong_at(tree.line, field.name + ": a list is not allowed here");
      DocumentJson list = DocumentJson::array();
      for (const YamlTree& item : tree.list) {
        TRY_ASSIGN(DocumentJson value, value_json(field, item));
        list.push_back(std::move(value));
      }
      return list;
    }
    case YamlTree::Kind::kMap:
      break;
  }
  if (field.kind == JsonKind::kMessage) return json_of(*field.message, tree);
  if (field.kind != JsonKind::kMap) {
    return wrong_at(tree.line, field.name + ": a section is not allowed here");
  }
  DocumentJson map = DocumentJson::object();
  for (const YamlTree& value : tree.entries) {
    // A variable without a value has an empty one.
    map[value.key] = value.kind == YamlTree::Kind::kNull ? DocumentJson(value.text)
                                                         : scalar_json(field.map_value(), value);
  }
  return map;
}

base::Result<DocumentJson> json_of(const MessagePlan& plan, const YamlTree& tree) {
  DocumentJson object = DocumentJson::object();
  for (const YamlTree& value : tree.entries) {
    TRY(check_known(plan, value.key, value.line));
    TRY_ASSIGN(object[value.key], value_json(*plan.find(value.key), value));
  }
  return object;
}

const YamlTree* part_named(const YamlTree& tree, std::string_view name) {
  for (const YamlTree& value : tree.entries) {
    if (value.key == name) return &value;
  }
  return nullptr;
}

// The part that is the specification. Of a whole job the other fields are only looked at by name.
base::Result<const YamlTree*> spec_part(const YamlTree& document) {
  if (document.kind != YamlTree::Kind::kMap) {
    return wrong_at(document.line,
                    "a job is a section with fields, as 'jobs describe -o yaml' "
                    "prints it");
  }
  const YamlTree* const spec = part_named(document, "spec");
  if (spec == nullptr) return &document;
  const MessagePlan& job = api::plan_of(*v1::Job::descriptor());
  for (const YamlTree& value : document.entries) TRY(check_known(job, value.key, value.line));
  if (spec->kind != YamlTree::Kind::kMap) {
    return wrong_at(spec->line, "spec: it must be a section with fields");
  }
  return spec;
}

// "gpus: 0.5" is a part of one GPU, as on the command line.
base::Status put_part_of_file(const YamlTree& tree, DocumentJson& json) {
  const YamlTree* const gpus = part_named(tree, "gpus");
  const bool is_decimal = gpus != nullptr && gpus->kind == YamlTree::Kind::kPlain &&
                          gpus->text.find('.') != std::string::npos;
  if (!is_decimal || part_named(tree, "gpu_share") != nullptr) return {};
  const auto share = base::parse_gpu_share(gpus->text);
  if (!share) {
    return wrong_at(gpus->line, fmt::format("gpus: {} is no part of one GPU: write 0.001 to 0.999 "
                                            "with at most three decimals, or a whole number",
                                            gpus->text.substr(0, 64)));
  }
  json["gpus"] = 1;
  json["gpu_share"] =
      static_cast<double>(share->value()) / static_cast<double>(base::kWholeGpu.value());
  return {};
}

base::Result<v1::JobSpec> job_of(const YamlTree& document) {
  TRY_ASSIGN(const YamlTree* const part, spec_part(document));
  TRY_ASSIGN(DocumentJson json, json_of(api::plan_of(*v1::JobSpec::descriptor()), *part));
  TRY(put_part_of_file(*part, json));
  v1::JobSpec spec;
  if (const auto read =
          api::read_json(json.dump(-1, ' ', false, DocumentJson::error_handler_t::replace), spec);
      !read) {
    const std::string name = read.error().field.substr(0, read.error().field.find_first_of("[."));
    const YamlTree* const at = part_named(*part, name);
    return wrong_at(at == nullptr ? part->line : at->line, read.error().message);
  }
  if (part != &document) spec.clear_request_id();
  return spec;
}

}  // namespace

base::Result<std::vector<v1::JobSpec>> read_job_documents(std::string_view text) {
  const auto trees = config::read_trees(text);
  if (!trees) return wrong_at(trees.error().line, trees.error().message);
  std::vector<v1::JobSpec> jobs;
  for (const YamlTree& tree : *trees) {
    TRY_ASSIGN(v1::JobSpec spec, job_of(tree));
    if (spec.command().empty()) return wrong_at(tree.line, "the job has no command");
    jobs.push_back(std::move(spec));
  }
  if (jobs.empty()) return base::invalid({}, "there is no job in it");
  return jobs;
}

}  // namespace gpu_platform::cli
