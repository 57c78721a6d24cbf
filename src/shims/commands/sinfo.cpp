#include <algorithm>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "client/answer.h"
#include "shims/command_call.h"
#include "shims/documents/slurm_json.h"
#include "shims/options/common_options.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_view.h"
#include "shims/views/sinfo_fields.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kInfoSynopsis = "[options]";
constexpr std::string_view kUsualNodes = "%9P %.5a %.10l %.6D %.6t %N";
constexpr std::string_view kLongNodes = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
constexpr std::string_view kNodes = "%N %.6D %.9P %6t";
constexpr std::string_view kNodesLong = "%N %.6D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E";
constexpr std::string_view kSummary = "%9P %.5a %.10l %.16F %N";
constexpr std::string_view kReasons = "%20E %9u %19H %N";
constexpr std::string_view kReasonsLong = "%20E %12U %19H %6t %N";
constexpr std::size_t kNarrowest = 9;  // of the nodes' names with -N, and of partitions

constexpr Option kInfoRows[] = {
    {"format", 'o', Take::kValue, Rule::kHonoured, "", "SINFO_FORMAT"},
    {"Format", 'O', Take::kValue, Rule::kHonoured, "", ""},
    {"noheader", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"Node", 'N', Take::kNothing, Rule::kHonoured, "", ""},
    {"long", 'l', Take::kNothing, Rule::kHonoured, "", ""},
    {"summarize", 's', Take::kNothing, Rule::kHonoured, "", ""},
    {"partition", 'p', Take::kValue, Rule::kHonoured, "", "SINFO_PARTITION"},
    {"nodes", 'n', Take::kValue, Rule::kHonoured, "", ""},
    {"states", 't', Take::kValue, Rule::kHonoured, "", ""},
    {"responding", 'r', Take::kNothing, Rule::kHonoured, "", ""},
    {"dead", 'd', Take::kNothing, Rule::kHonoured, "", ""},
    {"list-reasons", 'R', Take::kNothing, Rule::kHonoured, "", ""},
    {"reservation", 'T', Take::kNothing, Rule::kHonoured, "", ""},
    {"sort", 'S', Take::kValue, Rule::kHonoured, "", "SINFO_SORT"},
    {"exact", 'e', Take::kNothing, Rule::kHonoured, "", ""},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", "SINFO_ALL"},
    {"noconvert", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"iterate", 'i', Take::kValue, Rule::kHonoured, "", ""},
};
constexpr auto kInfoOptions =
    joined(kInfoRows, kViewOptions, kVerboseOption, kHelpWithoutLetter, kCommonOptions);

using Columns = std::vector<Bound<NodeGroup>>;

// The names of nodes as wide as the widest, where the format has them first in a line.
std::string_view usual_node_format(const Settings& settings) {
  const bool is_long = settings.has("long");
  if (settings.has("summarize")) return kSummary;
  if (settings.has("Node")) return is_long ? kNodesLong : kNodes;
  if (settings.has("list-reasons")) return is_long ? kReasonsLong : kReasons;
  return is_long ? kLongNodes : kUsualNodes;
}

base::Result<Columns> node_columns_of(const Settings& settings, std::size_t widest_node,
                                      std::size_t widest_partition) {
  static const std::vector<Field<NodeGroup>> kFields = [] {
    std::vector<Field<NodeGroup>> fields;
    for (const NodeField& field : sinfo_fields()) fields.push_back(field.field);
    return fields;
  }();
  const std::span<const Field<NodeGroup>> fields(kFields);
  if (settings.has("Format")) {
    TRY_ASSIGN(const auto columns, named_columns(settings.value("Format"), ':', 20));
    return bound(columns, fields);
  }
  if (settings.has("format")) {
    TRY_ASSIGN(const auto columns, letter_columns(whole_format(settings.value("format"), fields)));
    return bound(columns, fields);
  }
  TRY_ASSIGN(auto columns, letter_columns(usual_node_format(settings)));
  for (ColumnSpec& column : columns) {
    if (column.letter == 'N' && settings.has("Node")) column.width = widest_node;
    if (column.letter == 'P' && !column.is_right) column.width = widest_partition;
  }
  return bound(columns, fields);
}

// -t: names between commas, any of which will do, or between '&', all of which must be there.
bool is_in_states(const NodeView& node, const std::string& states) {
  return std::ranges::any_of(comma_separated(states), [&](const std::string& names) {
    std::string_view rest = names;
    while (true) {
      const std::size_t end = rest.find('&');
      if (!is_in_node_state(node, rest.substr(0, end)).value_or(false)) return false;
      if (end == std::string_view::npos) return true;
      rest.remove_prefix(end + 1);
    }
  });
}

base::Status check_node_states(const std::string& states) {
  std::string names = states;
  std::ranges::replace(names, '&', ',');
  for (const std::string& name : comma_separated(names)) {
    if (!is_in_node_state({}, name)) {
      return base::invalid({}, fmt::format("Bad state string: \"{}\"; states of nodes are idle, "
                                           "mixed, allocated, drain, drained, draining, down, "
                                           "maint, reserved, completing and no_respond",
                                           name));
    }
  }
  return {};
}

bool is_wanted_node(const NodeView& node, const Settings& settings) {
  if (settings.has("nodes")) {
    const auto names = host_names(settings.value("nodes"));
    if (std::ranges::find(names, node.name) == names.end()) return false;
  }
  if (settings.has("responding") && node.is_silent) return false;
  if (settings.has("dead") && !node.is_silent) return false;
  if (settings.has("list-reasons") && !settings.has("states"))
    return node.is_draining || node.base_state == "down";
  return !settings.has("states") || is_in_states(node, settings.value("states"));
}

const NodeField& field_of(const Field<NodeGroup>& field) {
  const auto all = sinfo_fields();
  const auto found = std::ranges::find_if(
      all, [&](const NodeField& candidate) { return candidate.field.name == field.name; });
  return found == all.end() ? all.front() : *found;
}

// Nodes of one line look alike in every column that splits; with -e in all of them.
bool are_alike(const Columns& columns, bool is_exact, const NodeGroup& a, const NodeGroup& b) {
  constexpr std::string_view kOfGroups = "DNCFAS";
  return std::ranges::all_of(columns, [&](const Bound<NodeGroup>& column) {
    if (column.field == nullptr) return true;
    const bool counts =
        field_of(*column.field).splits ||
        (is_exact && (column.field->letter == 0 ||
                      kOfGroups.find(column.field->letter) == std::string_view::npos));
    return !counts || column.field->text(a) == column.field->text(b);
  });
}

void add_groups(const Partition& partition, const std::vector<NodeView>& nodes,
                const Settings& settings, const Columns& columns, std::vector<NodeGroup>& groups) {
  const std::size_t begin = groups.size();
  for (const NodeView& node : nodes) {
    if (!is_in(node, partition) || !is_wanted_node(node, settings)) continue;
    const NodeGroup alone{&partition, {&node}};
    const auto same =
        settings.has("Node")
            ? groups.end()
            : std::find_if(groups.begin() + static_cast<std::ptrdiff_t>(begin), groups.end(),
                           [&](const NodeGroup& group) {
                             const NodeGroup one{&partition, {group.nodes.front()}};
                             return are_alike(columns, settings.has("exact"), one, alone);
                           });
    if (same == groups.end()) {
      groups.push_back(alone);
    } else {
      same->nodes.push_back(&node);
    }
  }
  const bool shows_empty = !settings.has("Node") && !settings.has("list-reasons");
  if (groups.size() == begin && shows_empty) groups.push_back({&partition, {}});
}

int rank_of(const NodeGroup& group) {
  return group.nodes.empty() ? -1 : state_rank(*group.nodes.front());
}

// -S: letters of columns, each with "-" before it for the other direction; "#" is nothing here.
// Without it partitions come as the site has them, and in each the states from drained to down.
base::Status put_nodes_in_order(const Settings& settings, std::vector<NodeGroup>& groups) {
  if (!settings.has("sort")) {
    if (settings.has("Node") || settings.has("list-reasons")) return {};
    std::ranges::stable_sort(groups, [](const NodeGroup& a, const NodeGroup& b) {
      return a.partition == b.partition && rank_of(a) > rank_of(b);
    });
    return {};
  }
  std::vector<std::string> keys = comma_separated(settings.value("sort"));
  std::ranges::reverse(keys);
  for (const std::string& key : keys) {
    const std::size_t at = key.find_first_not_of("#+-");
    const auto all = sinfo_fields();
    const auto field = std::ranges::find_if(all, [&](const NodeField& candidate) {
      return at != std::string::npos && candidate.field.letter == key[at];
    });
    if (field == all.end())
      return base::invalid("--sort", fmt::format("'{}' is not a column's letter", key));
    const bool is_falling = key.find('-') != std::string::npos;
    std::ranges::stable_sort(groups, [&](const NodeGroup& a, const NodeGroup& b) {
      const bool is_state = field->field.letter == 't' || field->field.letter == 'T';
      const auto value = [&](const NodeGroup& group) {
        return is_state ? fmt::format("{:04}", rank_of(group) + 1) : field->field.text(group);
      };
      return is_falling ? value(b) < value(a) : value(a) < value(b);
    });
  }
  return {};
}

std::size_t widest(const std::vector<NodeView>& nodes) {
  std::size_t width = kNarrowest;
  for (const NodeView& node : nodes) width = std::max(width, cli::display_width(node.name));
  return width;
}

std::size_t widest(const std::vector<Partition>& partitions) {
  std::size_t width = kNarrowest;
  for (const Partition& partition : partitions)
    width = std::max(width, cli::display_width(partition.name) + (partition.is_default ? 1 : 0));
  return width;
}

int show_reservation_lines(CommandCall& call, client::Client& client, const Settings& settings) {
  const auto body = client.get("/v1/reservations");
  if (!body) return call.fail(body.error());
  const auto document = client::message_of<v1::ListReservationsResponse>(*body);
  if (!document) return call.fail("the daemon's answer is not a JSON object");
  if (document->reservations().empty()) {
    call.console().out("No reservations in the system\n");
    return 0;
  }
  std::string text;
  if (!settings.has("noheader")) {
    text = fmt::format("{:<12}{:>10} {:>19} {:>19} {:>11}  {}\n", "RESV_NAME", "STATE",
                       "START_TIME", "END_TIME", "DURATION", "NODELIST");
  }
  for (const v1::Reservation& reservation : document->reservations()) {
    const auto begin = client::time_of(reservation.begin());
    const auto end = client::time_of(reservation.end());
    text +=
        fmt::format("{:<12}{:>10} {:>19} {:>19} {:>11}  {}\n", cli::harmless(reservation.name()),
                    reservation.active() ? "ACTIVE" : "INACTIVE", slurm_time(begin, "N/A"),
                    slurm_time(end, "N/A"), begin && end ? long_elapsed(*end - *begin) : "N/A",
                    cli::harmless(nodes_of_reservation(reservation)));
  }
  call.console().out(text);
  return call.console().out_failed() ? 1 : 0;
}

// The nodes and partitions that the options leave.
int show_info_document(CommandCall& call, const Settings& settings, const DocumentStyle& style,
                       const DocumentFacts& facts) {
  std::vector<NodeView> shown;
  for (const NodeView& node : facts.nodes) {
    if (is_wanted_node(node, settings)) shown.push_back(node);
  }
  std::vector<Partition> partitions;
  for (const Partition& partition : facts.site.partitions) {
    if (!settings.has("partition") || is_listed(partition.name, settings.value("partition")))
      partitions.push_back(partition);
  }
  return print_document(call, style, sinfo_document(facts, shown, partitions));
}

int show_node_lines(CommandCall& call, client::Client& client, const Settings& settings,
                    const std::optional<DocumentStyle>& style) {
  const auto nodes = list_nodes(client);
  if (!nodes) return call.fail(nodes.error());
  const auto site = site_of(client);
  if (!site) return call.fail(site.error());
  if (style) {
    return show_info_document(call, settings, *style,
                              {style->form, call.around().now(), *nodes, *site});
  }
  const auto columns = node_columns_of(settings, widest(*nodes), widest(site->partitions));
  if (!columns) return call.fail(columns.error());
  std::vector<NodeGroup> groups;
  for (const Partition& partition : site->partitions) {
    if (settings.has("partition") && !is_listed(partition.name, settings.value("partition")))
      continue;
    add_groups(partition, *nodes, settings, *columns, groups);
  }
  if (const auto sorted = put_nodes_in_order(settings, groups); !sorted)
    return call.fail(sorted.error());
  std::string text;
  if (settings.has("long") && !settings.has("format") && !settings.has("Format") &&
      !settings.has("noheader"))
    text = date_line(call.around().now());
  text += rendered(*columns, groups, !settings.has("noheader"));
  call.console().out(text);
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace

std::span<const Option> sinfo_options() {
  return kInfoOptions;
}

int sinfo(CommandCall& call) {
  const auto given = call.given({kInfoOptions, kInfoSynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  if (const auto checked = check_node_states(settings.value("states")); !checked)
    return call.fail(checked.error());
  // Mistakes are told before the daemon is asked.
  if (const auto checked = node_columns_of(settings, kNarrowest, kNarrowest); !checked)
    return call.fail(checked.error());
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  return again_and_again(call, settings, [&] {
    return settings.has("reservation") ? show_reservation_lines(call, *client, settings)
                                       : show_node_lines(call, *client, settings, *style);
  });
}

}  // namespace gpu_platform::shims
