#include "api/convert/job_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/enums.h"
#include "api/convert/gpu_selector.h"
#include "api/convert/job_change.h"
#include "base/name_list.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "model/gpu_catalogue.h"
#include "model/job_spec_fields.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

// The engines of a job are the site's, and whose part of a GPU it is, its user and team say.
template <class Value>
constexpr bool kHasNoField =
    std::is_same_v<Value, model::EngineSet> || std::is_same_v<Value, model::Tenant>;
template <class Row>
constexpr bool kIsSaid = !kHasNoField<typename std::remove_cvref_t<Row>::Type>;

// By number: a search in the descriptor for each field would take half the time of a conversion.
const Field& field_of(std::uint32_t number) {
  static const std::vector<const Field*> fields = [] {
    std::vector<const Field*> by_number;
    const pb::Descriptor& spec = *v1::JobSpec::descriptor();
    for (int i = 0; i < spec.field_count(); ++i) {
      const auto place = static_cast<std::size_t>(spec.field(i)->number());
      by_number.resize(std::max(by_number.size(), place + 1));
      by_number[place] = spec.field(i);
    }
    return by_number;
  }();
  return *fields.at(number);
}

// ---- into the message

class SpecWriter {
 public:
  SpecWriter(const Nodes& nodes, v1::JobSpec& out) : nodes_(nodes), out_(out) {}

  // If the default means "none", it is left absent.
  void put(const Field& field, const std::string& value) {
    if (!value.empty()) set(field, value);
  }
  void put(const Field& field, base::Duration value) {
    if (value != base::Duration()) set(field, value);
  }
  void put(const Field& field, base::Bytes value) {
    if (value != base::Bytes()) set(field, value);
  }
  void put(const Field& field, base::GpuShare value) {
    if (value < base::kWholeGpu) reflection_.SetDouble(&out_, &field, in_gpus(value));
  }
  void put(const Field& field, base::Instant value) {
    if (!value.is_set()) return;
    to_proto(value, static_cast<pb::Timestamp&>(*reflection_.MutableMessage(&out_, &field)));
  }
  template <class T>
  void put(const Field& field, const std::optional<T>& value) {
    if (value) set(field, *value);
  }
  void put(const Field&, const std::optional<model::TerminalSize>& value) {
    out_.set_terminal(value.has_value());
    if (!value) return;
    out_.set_columns(value->columns);
    out_.set_rows(value->rows);
  }
  void put(const Field& field, const std::vector<model::Label>& labels) {
    auto& map = field.number() == v1::JobSpec::kLabelsFieldNumber ? *out_.mutable_labels()
                                                                  : *out_.mutable_annotations();
    for (const model::Label& label : labels) map[label.key] = label.value;
  }
  void put(const Field& field, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) reflection_.AddString(&out_, &field, text);
  }
  void put(const Field& field, const std::vector<model::NotifyOn>& values) {
    for (const model::NotifyOn value : values) {
      reflection_.AddEnumValue(&out_, &field, to_proto(value));
    }
  }
  // Thousandths.
  void put(const Field& field, const std::vector<std::uint32_t>& speeds) {
    for (const std::uint32_t speed : speeds) {
      reflection_.AddDouble(&out_, &field, speed / double{model::kFullSpeed});
    }
  }
  void put(const Field& field, const std::vector<model::NodeId>& ids) {
    for (const model::NodeId id : ids) {
      reflection_.AddString(&out_, &field, node_name(nodes_.find(id.value), id));
    }
  }
  void put(const Field& field, const std::vector<model::Dependency>& dependencies) {
    put(field, joined(dependencies));
  }
  template <class T>
  void put(const Field& field, const T& value) {
    set(field, value);
  }

 private:
  void set(const Field& field, const std::string& value) {
    reflection_.SetString(&out_, &field, value);
  }
  void set(const Field& field, base::Duration value) {
    reflection_.SetDouble(&out_, &field, in_seconds(value));
  }
  void set(const Field& field, base::Bytes value) {
    reflection_.SetUInt64(&out_, &field, static_cast<std::uint64_t>(value.value()));
  }
  void set(const Field& field, base::MicroUsd value) { set(field, base::written(value)); }
  void set(const Field& field, std::uint32_t value) { reflection_.SetUInt32(&out_, &field, value); }
  void set(const Field& field, bool value) {
    if (field.cpp_type() == Field::CPPTYPE_BOOL) {
      reflection_.SetBool(&out_, &field, value);
    } else {
      reflection_.SetEnumValue(&out_, &field,
                               value ? v1::OPEN_MODE_TRUNCATE : v1::OPEN_MODE_APPEND);
    }
  }
  template <class E>
    requires std::is_enum_v<E>
  void set(const Field& field, E value) {
    reflection_.SetEnumValue(&out_, &field, to_proto(value));
  }
  void set(const Field& field, const model::LimitSignal& value) {
    set(field, limit_signal_text(value));
  }
  void set(const Field& field, const model::ArraySpec& value) { set(field, to_string(value)); }
  void set(const Field& field, const model::Priority& value) {
    set(field, std::string(to_string(value.priority_class)));
    out_.set_priority_number(value.number);
  }

  const Nodes& nodes_;
  v1::JobSpec& out_;
  const pb::Reflection& reflection_ = *v1::JobSpec::GetReflection();
};

// ---- out of the message

// The nodes of these names, ascending.
base::Result<std::vector<model::NodeId>> to_nodes(const std::vector<std::string>& lists,
                                                  const std::string& field, const Nodes& nodes) {
  std::vector<model::NodeId> found;
  std::map<std::string_view, model::NodeId> known;
  nodes.for_each([&](std::uint64_t, const model::Node& node) { known[node.name] = node.id; });
  for (const std::string& list : lists) {
    const auto names = base::expand_names(list);
    if (!names) {
      return base::invalid(field, fmt::format("{}: '{}' is not a list of names such as dgx-[1-4]",
                                              field, list.substr(0, 64)));
    }
    for (const std::string& name : *names) {
      const auto node = known.find(name);
      if (node == known.end()) {
        std::vector<std::string_view> all;
        for (const auto& [each, id] : known) all.push_back(each);
        return base::fail(
            base::ErrorCode::kNotFound,
            fmt::format("{}: there is no node '{}'{}; 'gpu-platform nodes' lists the nodes", field,
                        name.substr(0, 64), base::did_you_mean(name, all)),
            field);
      }
      found.push_back(node->second);
    }
  }
  std::ranges::sort(found);
  const auto repeats = std::ranges::unique(found);
  found.erase(repeats.begin(), repeats.end());
  return found;
}

base::Result<base::GpuShare> to_share(double share) {
  const double thousandths = share * 1000;
  const auto whole = std::lround(thousandths);
  if (std::abs(thousandths - static_cast<double>(whole)) > 1e-6) {
    return base::invalid("gpu_share",
                         fmt::format("gpu_share {}: has more than three decimals; write {}", share,
                                     static_cast<double>(whole) / 1000));
  }
  return base::GpuShare(whole * (base::kWholeGpu.value() / 1000));
}

// Thousandths of the first one's.
base::Result<std::vector<std::uint32_t>> to_gpu_speeds(const v1::JobSpec& message) {
  std::vector<std::uint32_t> speeds;
  for (const double speed : message.gpu_speeds()) {
    const double relative = speed / message.gpu_speeds(0) * model::kFullSpeed;
    if (!(relative >= 1 && relative <= 1'000'000)) {
      return base::invalid("gpu_speeds",
                           "gpu_speeds: each must be 0.001 to 1000 times the first one");
    }
    speeds.push_back(static_cast<std::uint32_t>(std::lround(relative)));
  }
  return speeds;
}

base::Result<base::MicroUsd> to_money(const std::string& text, const std::string& field) {
  const auto amount = base::parse_money(text);
  if (!amount) return base::invalid(field, fmt::format("{}: {}", field, amount.error().message));
  if (*amount > base::MicroUsd()) return *amount;
  return base::invalid(
      field, fmt::format("{}: {} is not more than zero; leave it out for no limit", field, text));
}

class SpecReader {
 public:
  SpecReader(const Nodes& nodes, const v1::JobSpec& message) : nodes_(nodes), message_(message) {}

  bool is_given(const Field& field) const {
    if (field.number() == v1::JobSpec::kPriorityFieldNumber && message_.has_priority_number()) {
      return true;
    }
    return field.is_repeated() ? reflection_.FieldSize(message_, &field) > 0
                               : reflection_.HasField(message_, &field);
  }

  base::Status take(const Field& field, std::string& out) {
    out = reflection_.GetString(message_, &field);
    return {};
  }
  base::Status take(const Field& field, base::Duration& out) {
    out = to_duration(reflection_.GetDouble(message_, &field));
    return {};
  }
  base::Status take(const Field& field, base::Bytes& out) {
    out = base::Bytes(static_cast<std::int64_t>(reflection_.GetUInt64(message_, &field)));
    return {};
  }
  base::Status take(const Field& field, base::MicroUsd& out) {
    TRY_ASSIGN(out, to_money(reflection_.GetString(message_, &field), field.name()));
    return {};
  }
  base::Status take(const Field& field, base::GpuShare& out) {
    TRY_ASSIGN(out, to_share(reflection_.GetDouble(message_, &field)));
    return {};
  }
  base::Status take(const Field& field, base::Instant& out) {
    out =
        api::to_model(static_cast<const pb::Timestamp&>(reflection_.GetMessage(message_, &field)));
    return {};
  }
  base::Status take(const Field& field, std::uint32_t& out) {
    out = reflection_.GetUInt32(message_, &field);
    return {};
  }
  base::Status take(const Field& field, bool& out) {
    out = field.cpp_type() == Field::CPPTYPE_BOOL
              ? reflection_.GetBool(message_, &field)
              : reflection_.GetEnumValue(message_, &field) == v1::OPEN_MODE_TRUNCATE;
    return {};
  }
  // The unspecified value is as good as none.
  template <class E>
    requires std::is_enum_v<E>
  base::Status take(const Field& field, E& out) {
    const int value = reflection_.GetEnumValue(message_, &field);
    if (value != 0) out = static_cast<E>(value - 1);
    return {};
  }
  base::Status take(const Field& field, std::vector<std::string>& out) {
    const int number = field.number();
    if (number == v1::JobSpec::kGpusAvoidFieldNumber ||
        number == v1::JobSpec::kGpusOnlyFieldNumber) {
      TRY_ASSIGN(out, to_gpu_uuids(texts_of(field), field.name(), nodes_));
      return {};
    }
    out = texts_of(field);
    return {};
  }
  base::Status take(const Field& field, std::vector<model::NodeId>& out) {
    TRY_ASSIGN(out, to_nodes(texts_of(field), field.name(), nodes_));
    return {};
  }
  base::Status take(const Field&, std::vector<std::uint32_t>& out) {
    TRY_ASSIGN(out, to_gpu_speeds(message_));
    return {};
  }
  base::Status take(const Field& field, std::vector<model::Label>& out) {
    out.clear();
    const auto& map = field.number() == v1::JobSpec::kLabelsFieldNumber ? message_.labels()
                                                                        : message_.annotations();
    for (const auto& [key, value] : map) out.push_back({key, value});
    std::ranges::sort(out, {}, &model::Label::key);
    return {};
  }
  base::Status take(const Field&, std::vector<model::NotifyOn>& out) {
    out.clear();
    for (const int when : message_.notify()) {
      out.push_back(api::to_model(static_cast<v1::NotifyOn>(when)));
    }
    std::ranges::sort(out);
    const auto repeats = std::ranges::unique(out);
    out.erase(repeats.begin(), repeats.end());
    return {};
  }
  base::Status take(const Field&, std::vector<model::Dependency>&) { return {}; }
  base::Status take(const Field&, std::optional<model::TerminalSize>& out) {
    if (!message_.terminal()) return {};
    out.emplace();
    if (message_.has_columns()) out->columns = static_cast<std::uint16_t>(message_.columns());
    if (message_.has_rows()) out->rows = static_cast<std::uint16_t>(message_.rows());
    return {};
  }
  base::Status take(const Field&, std::optional<model::LimitSignal>& out) {
    if (message_.limit_signal().empty()) return {};
    TRY_ASSIGN(out, to_limit_signal(message_.limit_signal()));
    return {};
  }
  base::Status take(const Field&, std::optional<model::ArraySpec>& out) {
    if (message_.array().empty()) return {};
    TRY_ASSIGN(out, model::parse_array(message_.array()));
    return {};
  }
  base::Status take(const Field& field, std::optional<model::ShareMode>& out) {
    const int value = reflection_.GetEnumValue(message_, &field);
    if (value != v1::SHARE_MODE_UNSPECIFIED) out = static_cast<model::ShareMode>(value - 1);
    return {};
  }
  template <class T>
  base::Status take(const Field& field, std::optional<T>& out) {
    return take(field, out.emplace());
  }
  base::Status take(const Field&, model::Priority& out) {
    if (message_.has_priority()) {
      TRY_ASSIGN(out, to_priority(message_.priority()));
    }
    if (!message_.has_priority_number()) return {};
    const auto number =
        model::priority_of_number(static_cast<std::uint8_t>(message_.priority_number()));
    if (message_.has_priority() && number.priority_class != out.priority_class) {
      return base::invalid(
          "priority_number",
          fmt::format("priority_number: {} is {}, and priority is {}", message_.priority_number(),
                      to_string(number.priority_class), to_string(out.priority_class)));
    }
    out = number;
    return {};
  }

 private:
  std::vector<std::string> texts_of(const Field& field) const {
    std::vector<std::string> texts(
        static_cast<std::size_t>(reflection_.FieldSize(message_, &field)));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      texts[i] = reflection_.GetRepeatedString(message_, &field, static_cast<int>(i));
    }
    return texts;
  }

  const Nodes& nodes_;
  const v1::JobSpec& message_;
  const pb::Reflection& reflection_ = *v1::JobSpec::GetReflection();
};

template <class Row>
using ValueOf = typename std::remove_cvref_t<Row>::Type;

// Calls visit(row) of the table until it fails.
template <class Visit>
base::Status for_each_row(Visit&& visit) {
  base::Status status;
  model::for_each_spec_field([&](const auto& row) {
    if constexpr (kIsSaid<decltype(row)>) {
      if (status && row.number != 0) status = visit(row);
    }
  });
  return status;
}

// Returns whether an update may change the field. A field without a row of its own may not, except
// priority_number.
bool is_changeable(int number) {
  bool found = number == v1::JobSpec::kPriorityNumberFieldNumber;
  model::for_each_spec_field([&](const auto& row) {
    found = found || (row.change != model::Change::kNever && std::cmp_equal(row.number, number));
  });
  return found;
}

std::string names_of_rows(model::Change least) {
  std::vector<std::string_view> names;
  model::for_each_spec_field([&](const auto& row) {
    if (row.change >= least) names.push_back(row.name);
  });
  return fmt::format("{}", fmt::join(names, ", "));
}

// A type that the catalogue does not know may still be what a node's driver calls its GPUs.
std::optional<std::string> type_in_cluster(std::string_view wanted, const Nodes& nodes) {
  std::optional<std::string> found;
  nodes.for_each_while([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (model::gpu_type_matches(wanted, gpu.info.type)) found = gpu.info.type;
    }
    return !found;
  });
  return found;
}

}  // namespace

void to_proto(const model::JobSpec& spec, const Nodes& nodes, v1::JobSpec& out) {
  SpecWriter writer(nodes, out);
  model::for_each_spec_field([&](const auto& row) {
    if constexpr (kIsSaid<decltype(row)>) {
      if (row.number != 0) writer.put(field_of(row.number), row.of(spec));
    }
  });
  // A pod has the cluster's network, and a job without a container has its node's.
  const bool is_unset = spec.container_network == model::ContainerNetwork::kNone &&
                        spec.request.engines.contains(model::EngineKind::kKubernetes);
  if (is_unset || spec.image.empty()) out.clear_container_network();
  if (spec.image.empty()) out.clear_pull();
  if (spec.preflight == model::Preflight::kNone) out.clear_preflight();
  if (!spec.monitor) out.clear_monitor();
}

base::Status to_model(const v1::JobSpec& message, const Nodes& nodes, model::JobSpec& out) {
  SpecReader reader(nodes, message);
  return for_each_row([&](const auto& row) -> base::Status {
    const Field& field = field_of(row.number);
    return reader.is_given(field) ? reader.take(field, row.of(out)) : base::Status();
  });
}

base::Status make_canonical(std::vector<std::string>& gpu_types, const Nodes& nodes) {
  std::vector<std::string> types;
  for (std::size_t i = 0; i < gpu_types.size(); ++i) {
    const std::string& wanted = gpu_types[i];
    std::optional<std::string> type = model::canonical_gpu_type(wanted);
    if (!type) type = type_in_cluster(wanted, nodes);
    if (!type) {
      std::vector<std::string_view> names;
      for (const model::GpuType& known : model::gpu_catalogue()) names.push_back(known.name);
      const std::string field = fmt::format("gpu_types[{}]", i);
      return base::invalid(
          field, fmt::format("{}: no GPU type '{}' is known to the catalogue or to "
                             "this cluster{}",
                             field, wanted.substr(0, 64), base::did_you_mean(wanted, names)));
    }
    if (std::ranges::find(types, *type) == types.end()) types.push_back(*std::move(type));
  }
  gpu_types = std::move(types);
  return {};
}

base::Result<model::SpecPatch> to_patch(const v1::JobSpec& message, const Nodes& nodes) {
  std::vector<const Field*> given;
  v1::JobSpec::GetReflection()->ListFields(message, &given);
  for (const Field* field : given) {
    if (is_changeable(field->number())) continue;
    return base::invalid(field->name(), fmt::format("{}: cannot be changed; these can: {}",
                                                    field->name(), changeable_fields()));
  }
  SpecReader reader(nodes, message);
  model::SpecPatch patch;
  const base::Status taken = for_each_row([&](const auto& row) -> base::Status {
    using Value = ValueOf<decltype(row)>;
    const Field& field = field_of(row.number);
    constexpr bool kNamesJobs = std::is_same_v<Value, std::vector<model::Dependency>>;
    if (kNamesJobs || row.change == model::Change::kNever || !reader.is_given(field)) return {};
    Value value{};
    TRY(reader.take(field, value));
    patch.set(row.member, std::move(value));
    return {};
  });
  TRY(taken);
  const std::string* const name = patch.get(&model::JobSpec::name);
  if (name != nullptr && name->empty()) return base::invalid("name", "name: must not be empty");
  return patch;
}

base::Status clear_field(std::string_view name, model::SpecPatch& patch) {
  bool is_cleared = false;
  model::for_each_spec_field([&](const auto& row) {
    if (row.change != model::Change::kSetOrClear || row.name != name) return;
    patch.set(row.member, ValueOf<decltype(row)>{});
    is_cleared = true;
  });
  if (is_cleared) return {};
  return base::invalid(
      "clear", fmt::format("clear: '{}' cannot be cleared; these can: {}", name.substr(0, 64),
                           names_of_rows(model::Change::kSetOrClear)));
}

std::string changeable_fields() {
  return names_of_rows(model::Change::kSet);
}

}  // namespace gpu_platform::api
