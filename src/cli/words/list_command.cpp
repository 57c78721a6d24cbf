#include "cli/words/list_command.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "gpu_platform/v1/access.pb.h"
#include "http/http.h"

namespace gpu_platform::cli {

namespace {

using Kind = ListFilter::Kind;

base::Status append_filter(std::string& query, const ListFilter& filter,
                           const std::vector<std::string>& values, base::Instant now) {
  const auto append = [&](std::string_view value) {
    http::append_query(query, filter.parameter, value);
  };
  switch (filter.kind) {
    case Kind::kPastTime: {
      TRY_ASSIGN(const std::string time, past_time(filter.option, values.back(), now));
      append(time);
      return {};
    }
    case Kind::kConstant:
      append(as_constant(values.back()));
      return {};
    case Kind::kConstants:
      for (const std::string& value : words_of_lists(values)) append(as_constant(value));
      return {};
    case Kind::kText:
    case Kind::kFlag:
    case Kind::kTexts:
      for (const std::string& value : values) append(value);
      return {};
  }
  return {};
}

base::Result<std::size_t> column_named(std::string_view option, std::string_view name,
                                       const std::vector<ListKey>& keys) {
  const auto found = std::ranges::find(keys, base::to_lower(name), &ListKey::key);
  if (found != keys.end()) return static_cast<std::size_t>(found - keys.begin());
  std::vector<std::string> names;
  std::ranges::transform(keys, std::back_inserter(names), &ListKey::key);
  return base::invalid(std::string(option), fmt::format("there is no column '{}'; there are {}",
                                                        name, joined(names, ", ")));
}

// "started", and "started:desc" or "-started" for the last first.
base::Status read_sort(const std::string& text, const std::vector<ListKey>& keys,
                       ListRequest& out) {
  std::string_view name = text;
  if (name.starts_with('-')) {
    name.remove_prefix(1);
    out.is_descending = true;
  } else if (name.ends_with(":desc")) {
    name.remove_suffix(5);
    out.is_descending = true;
  } else if (name.ends_with(":asc")) {
    name.remove_suffix(4);
  }
  TRY_ASSIGN(out.sort, column_named("--sort", name, keys));
  return {};
}

base::Status choose_columns(const ColumnOptions& options, const Output& output,
                            const std::vector<ListKey>& keys, ListRequest& out) {
  if (!options.columns) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!keys[i].is_wide || output.is_wide()) out.columns.push_back(i);
    }
    return {};
  }
  for (const std::string& name : words_of_lists({*options.columns})) {
    TRY_ASSIGN(const std::size_t column, column_named("--columns", name, keys));
    out.columns.push_back(column);
  }
  return {};
}

// What only a table has.
base::Status check_is_table(const Output& output,
                            std::initializer_list<std::pair<std::string_view, bool>> given) {
  if (!output.is_document()) return {};
  for (const auto& [option, is_given] : given) {
    if (!is_given) continue;
    return base::invalid(std::string(option),
                         "is for tables; leave out -o and --json, or use jq on the JSON");
  }
  return {};
}

std::string keys_text(const std::vector<ListKey>& keys) {
  std::vector<std::string> names;
  std::ranges::transform(keys, std::back_inserter(names), &ListKey::key);
  return joined(names, ",");
}

}  // namespace

std::string as_constant(std::string_view text) {
  std::string name = base::to_upper(text);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string ListOptions::value_of(std::string_view option) const {
  const auto found = given.find(option);
  return found == given.end() || found->second.empty() ? std::string() : found->second.front();
}

void define_columns(Arguments& arguments, ColumnOptions& options,
                    const std::vector<ListKey>& keys) {
  arguments.option("--columns", options.columns, "LIST", "the columns to show: " + keys_text(keys))
      .option("--sort", options.sort, "COLUMN", "order by this column; COLUMN:desc: the last first")
      .flag("--no-headers", options.has_no_headers, "leave out the line of titles");
}

base::Status read_columns(const ColumnOptions& options, const Output& output,
                          const std::vector<ListKey>& keys, ListRequest& out) {
  TRY(check_is_table(output, {{"--columns", options.columns.has_value()},
                              {"--sort", options.sort.has_value()},
                              {"--no-headers", options.has_no_headers}}));
  TRY(choose_columns(options, output, keys, out));
  return options.sort ? read_sort(*options.sort, keys, out) : base::Status();
}

void define_list(Arguments& arguments, ListOptions& options, const std::vector<ListFilter>& filters,
                 const std::vector<ListKey>& keys, bool can_fold) {
  for (const ListFilter& filter : filters) {
    options.read.push_back(std::make_unique<ListOptions::Read>());
    ListOptions::Read& read = *options.read.back();
    if (filter.kind == Kind::kFlag) {
      arguments.flag(filter.option, read.flag, filter.help);
    } else if (filter.kind == Kind::kTexts || filter.kind == Kind::kConstants) {
      arguments.many(filter.option, read.values, filter.value, filter.help);
    } else {
      arguments.option(filter.option, read.value, filter.value, filter.help);
    }
  }
  arguments.option("--limit", options.limit, "N", "maximum number of entries")
      .option("--page-token", options.page_token, "TOKEN",
              "continue a list: the next_page of the previous answer");
  define_columns(arguments, options, keys);
  if (can_fold) {
    arguments.flag("-r,--expand", options.is_expanded,
                   "a line for each waiting member of an array, not one for equal ones");
  }
  arguments.output_and_watch(options.output, options.output.names);
}

base::Result<ListRequest> list_request(ListOptions& options, const std::vector<ListFilter>& filters,
                                       const std::vector<ListKey>& keys, base::Instant now) {
  ListRequest request;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    ListOptions::Read& read = *options.read[i];
    if (read.flag) read.values = {"true"};
    if (read.value) read.values = {*std::move(read.value)};
    if (read.values.empty()) continue;
    const std::vector<std::string>& values = options.given[filters[i].option] =
        std::move(read.values);
    if (filters[i].parameter.empty()) continue;
    TRY(append_filter(request.query, filters[i], values, now));
  }
  if (options.limit) {
    const auto limit = base::parse_count(*options.limit, 1, UINT32_MAX);
    if (!limit) return base::invalid("--limit", limit.error().message);
    request.most = *limit;
  }
  TRY(read_columns(options, options.output, keys, request));
  TRY(check_is_table(options.output, {{"--expand", options.is_expanded}}));
  return request;
}

namespace {

// The row that those of one key are folded to, and the numbers of all of them.
struct FoldedRows {
  std::size_t row = 0;
  std::vector<std::int64_t> numbers;
};

}  // namespace

void fold_rows(std::vector<ListRow>& rows) {
  std::map<std::string, FoldedRows> places;  // by key
  std::vector<ListRow> kept;
  for (ListRow& row : rows) {
    if (!row.fold) {
      kept.push_back(std::move(row));
      continue;
    }
    const auto [found, is_first] = places.try_emplace(row.fold->key, FoldedRows{kept.size(), {}});
    found->second.numbers.push_back(row.fold->number);
    if (is_first) {
      kept.push_back(std::move(row));
    } else if (ListRow& shown = kept[found->second.row]; row.fold->number < shown.fold->number) {
      shown = std::move(row);
    }
  }
  for (auto& [key, place] : places) {
    if (place.numbers.size() < 2) continue;
    ListRow& row = kept[place.row];
    std::ranges::sort(place.numbers);
    row.cells.front() = fmt::format("{}_[{}]", row.fold->prefix, ranges_of(place.numbers));
  }
  rows = std::move(kept);
}

void sort_rows(std::vector<ListRow>& rows, bool is_descending) {
  const auto is_before = [](const ListRow& a, const ListRow& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return split_name(a.sort_text) < split_name(b.sort_text);
  };
  std::ranges::stable_sort(rows, [&](const ListRow& a, const ListRow& b) {
    return is_descending ? is_before(b, a) : is_before(a, b);
  });
}

bool are_all_empty(const std::vector<ListRow>& rows, std::size_t column) {
  return std::ranges::all_of(rows, [&](const ListRow& row) { return row.cells[column].empty(); });
}

bool are_all_of_caller(Client& client, const std::vector<ListRow>& rows, std::size_t column) {
  const std::string& user = rows.front().cells[column];
  if (user.empty()) return false;
  for (const ListRow& row : rows) {
    if (row.cells[column] != user) return false;
  }
  const auto caller = client.ask<v1::Identity>("/v1/whoami", "the caller");
  return caller && caller->user() == user;
}

std::string more_note(std::string_view next_page) {
  return fmt::format(
      "there are more; go on with --page-token {}, or ask for more at once with --limit",
      next_page);
}

}  // namespace gpu_platform::cli
