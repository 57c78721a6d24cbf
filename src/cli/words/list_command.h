#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/repeated_field.h>

#include "base/result.h"
#include "base/units.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/array_fold.h"
#include "cli/text/table.h"
#include "cli/words/pages.h"

// Commands that list what the daemon gives in pages. A list is described by its filters and its
// columns, and run_list() does the rest: options, pages, documents, tables and --watch. A new list
// is one file with such a description, and a row in cli.cpp.

namespace gpu_platform::cli {

// An option that becomes a parameter of the call.
struct ListFilter {
  enum class Kind : std::uint8_t {
    kText,       // as it is
    kPastTime,   // "2h", "yesterday", or a time
    kFlag,       // "true"
    kConstant,   // "port-forward" as PORT_FORWARD
    kTexts,      // may be repeated
    kConstants,  // the same, repeated, and as a list: "running,timed-out"
  };

  std::string option;     // "--user"
  std::string parameter;  // "user"; empty: the list reads the option itself
  Kind kind = Kind::kText;
  std::string value;  // "NAME", in the help page; empty for a flag
  std::string help;
};

// --columns, --sort and --no-headers.
struct ColumnOptions {
  std::optional<std::string> columns, sort;
  bool has_no_headers = false;
};

// What the options of a list say.
struct ListOptions : ColumnOptions {
  Output output;
  std::optional<std::string> limit, page_token;
  bool is_expanded = false;
  // The filters that were given, by option. A flag has the value "true".
  std::map<std::string, std::vector<std::string>, std::less<>> given;

  // The values of the options of the filters, in their order.
  struct Read {
    bool flag = false;
    std::optional<std::string> value;
    std::vector<std::string> values;
  };
  std::vector<std::unique_ptr<Read>> read;

  bool has(std::string_view option) const { return given.contains(option); }
  std::string value_of(std::string_view option) const;  // the first; empty if it was not given
};

// A column of a list. Its texts are made only if it is shown.
template <class Entry>
struct ListColumn {
  std::string key;  // of --columns and --sort
  Column column;
  std::function<std::string(const Entry&, base::Instant now)> cell;
  // What --sort compares; null: the text, with numbers in it as people count.
  double (*rank)(const Entry&, base::Instant now) = nullptr;
  bool is_wide = false;  // only with -o wide, or if --columns has it
  bool is_left_out_if_empty = false;
};

template <class Entry>
struct List {
  PagedList pages;
  NamesPlace names;
  std::vector<ListFilter> filters;
  std::vector<ListColumn<Entry>> columns;
  std::uint64_t rows = UINT64_MAX;  // of a table without --limit
  std::string_view nothing = "there are none";
  // The key of the column with the user: it is left out if all rows are the caller's.
  std::string_view user_column = {};

  // These may be null. Reads the options that are no parameters, and completes the query. Errors
  // name the option.
  base::Status (*complete)(ListOptions& options, std::string& query) = nullptr;
  // Whether only entries of the caller can come.
  bool (*is_of_caller)(const ListOptions& options) = nullptr;
  // Whether the entry may become one row with others: the first column shows which.
  std::optional<Fold> (*fold)(const Entry& entry) = nullptr;
  // What is said of an entry below the table; empty: nothing.
  std::string (*note)(const Entry& entry) = nullptr;
  // What is said instead of `nothing`.
  std::string (*tell_nothing)(const ListOptions& options, Client& client,
                              base::Instant now) = nullptr;
};

// ---- the part that does not depend on the entries

// A column as the options know it.
struct ListKey {
  std::string key;
  bool is_wide = false;
};

// What a command does with the options, once they are read and right.
struct ListRequest {
  std::string query;
  std::uint64_t most = UINT64_MAX;
  std::vector<std::size_t> columns;  // which, in order
  std::optional<std::size_t> sort;
  bool is_descending = false;
};

// "port-forward" as "PORT_FORWARD".
std::string as_constant(std::string_view text);

void define_columns(Arguments& arguments, ColumnOptions& options, const std::vector<ListKey>& keys);
// Puts the columns and the order into the request. Errors name the option.
base::Status read_columns(const ColumnOptions& options, const Output& output,
                          const std::vector<ListKey>& keys, ListRequest& out);
void define_list(Arguments& arguments, ListOptions& options, const std::vector<ListFilter>& filters,
                 const std::vector<ListKey>& keys, bool can_fold);
// Moves what was read to `options.given`. Errors name the option.
base::Result<ListRequest> list_request(ListOptions& options, const std::vector<ListFilter>& filters,
                                       const std::vector<ListKey>& keys, base::Instant now);

struct ListRow {
  std::vector<std::string> cells;  // of the columns that are shown
  std::string sort_text;
  double rank = 0;
  std::optional<Fold> fold;
};

// Makes one row of those that fold into one, at the place of the first and with the texts of the
// one with the lowest number; its first cell says which they are.
void fold_rows(std::vector<ListRow>& rows);
void sort_rows(std::vector<ListRow>& rows, bool is_descending);
bool are_all_empty(const std::vector<ListRow>& rows, std::size_t column);
// Asks the daemon who the caller is, unless the rows have several users.
bool are_all_of_caller(Client& client, const std::vector<ListRow>& rows, std::size_t column);
std::string more_note(std::string_view next_page);

// ---- the part that does

template <class Entry>
std::vector<ListKey> keys_of(const std::vector<ListColumn<Entry>>& columns) {
  std::vector<ListKey> keys;
  for (const ListColumn<Entry>& column : columns) keys.push_back({column.key, column.is_wide});
  return keys;
}

template <class Entry>
ListRow row_of(const std::vector<ListColumn<Entry>>& columns, const ListRequest& request,
               const Entry& entry, base::Instant now) {
  ListRow row;
  for (const std::size_t i : request.columns) row.cells.push_back(columns[i].cell(entry, now));
  if (!request.sort) return row;
  const ListColumn<Entry>& by = columns[*request.sort];
  if (by.rank) {
    row.rank = by.rank(entry, now);
  } else {
    row.sort_text = by.cell(entry, now);
  }
  return row;
}

// Moves the cells into a table. A column is left out if is_left_out(column, place in the row), but
// not if the person has named it.
template <class Entry, class IsLeftOut>
Table table_of_rows(const std::vector<ListColumn<Entry>>& columns, const ListRequest& request,
                    bool are_named, std::vector<ListRow>& rows, IsLeftOut&& is_left_out) {
  std::vector<std::size_t> kept;  // places in the row
  std::vector<Column> shown;
  for (std::size_t place = 0; place < request.columns.size(); ++place) {
    const ListColumn<Entry>& column = columns[request.columns[place]];
    if (!are_named && is_left_out(column, place)) continue;
    kept.push_back(place);
    shown.push_back(column.column);
    if (!are_named) continue;
    // A person who names a column wants to see it.
    shown.back().expendable = 0;
    shown.back().instead_of.clear();
  }
  Table table(std::move(shown));
  for (ListRow& row : rows) {
    std::vector<std::string> cells;
    for (const std::size_t place : kept) cells.push_back(std::move(row.cells[place]));
    table.add(std::move(cells));
  }
  return table;
}

// A table of entries that are all there, with the options --columns, --sort and --no-headers.
template <class Entry>
class EntryTable {
 public:
  explicit EntryTable(std::vector<ListColumn<Entry>> columns) : columns_(std::move(columns)) {}

  void define(Arguments& arguments) { define_columns(arguments, options_, keys_of(columns_)); }
  // Errors name the option.
  base::Status read(const Output& output) {
    return read_columns(options_, output, keys_of(columns_), request_);
  }
  // Whether a script reads it: a heading or a second table would be in its way.
  bool is_alone() const { return options_.columns || options_.has_no_headers; }
  bool is_sorted() const { return request_.sort.has_value(); }

  std::string render(const std::vector<Entry>& entries, base::Instant now, TableStyle style) const {
    std::vector<ListRow> rows;
    for (const Entry& entry : entries) rows.push_back(row_of(columns_, request_, entry, now));
    if (request_.sort) sort_rows(rows, request_.is_descending);
    const auto is_left_out = [&](const ListColumn<Entry>& column, std::size_t place) {
      return column.is_left_out_if_empty && are_all_empty(rows, place);
    };
    style.has_titles = !options_.has_no_headers;
    return table_of_rows(columns_, request_, options_.columns.has_value(), rows, is_left_out)
        .render(style);
  }

 private:
  std::vector<ListColumn<Entry>> columns_;
  ColumnOptions options_;
  ListRequest request_;
};

template <class Response, class Entry>
class ListCommand {
 public:
  using Entries = const google::protobuf::RepeatedPtrField<Entry>& (Response::*)() const;

  ListCommand(const List<Entry>& list, Entries entries) : list_(list), entries_(entries) {}

  int run(const CommandText& text, Invocation& invocation) {
    Console& console = invocation.console;
    const std::vector<ListKey> keys = keys_of(list_.columns);
    Arguments arguments(text);
    options_.output.names = list_.names;
    define_list(arguments, options_, list_.filters, keys, list_.fold != nullptr);
    auto client = open_client(arguments, invocation);
    if (!client) return client.error();
    auto request = list_request(options_, list_.filters, keys, console.process_environment().now());
    base::Status completed;
    if (request && list_.complete) completed = list_.complete(options_, request->query);
    if (!request || !completed) {
      const base::Error& mistake = request ? completed.error() : request.error();
      return usage_error(console, mistake, text.name);
    }
    request_ = *std::move(request);
    const bool is_document = options_.output.is_document();
    if (!options_.limit && !is_document) request_.most = list_.rows;
    const std::string token = options_.page_token.value_or("");
    return show(console, options_.output, [&](Console& shown, int) {
      return is_document ? print_pages(shown, *client, options_.output, list_.pages, request_.query,
                                       request_.most, token)
                         : print_table(shown, *client, token);
    });
  }

 private:
  Called<void> print_table(Console& console, Client& client, const std::string& token) {
    const base::Instant now = console.process_environment().now();
    std::vector<ListRow> rows;
    std::vector<std::string> notes;
    const auto next = fetch_messages<Response>(client, list_.pages, request_.query, request_.most,
                                               token, [&](const Response& page) {
                                                 for (const Entry& entry : (page.*entries_)()) {
                                                   rows.push_back(row_with_fold(entry, now));
                                                   if (list_.note)
                                                     notes.push_back(list_.note(entry));
                                                 }
                                                 return (page.*entries_)().size();
                                               });
    if (!next) return std::unexpected(next.error());
    if (rows.empty()) {
      console.note(list_.tell_nothing ? list_.tell_nothing(options_, client, now)
                                      : std::string(list_.nothing));
      return {};
    }
    fold_rows(rows);
    if (request_.sort) sort_rows(rows, request_.is_descending);
    TableStyle style = options_.output.style(console);
    style.has_titles = !options_.has_no_headers;
    console.out(table_of(client, rows).render(style));
    for (const std::string& note : notes) {
      if (!note.empty()) console.note(note);
    }
    if (!next->empty()) console.note(more_note(*next));
    return {};
  }

  ListRow row_with_fold(const Entry& entry, base::Instant now) const {
    ListRow row = row_of(list_.columns, request_, entry, now);
    const bool can_fold = list_.fold && !options_.is_expanded && request_.columns.front() == 0;
    if (can_fold) row.fold = list_.fold(entry);
    return row;
  }

  Table table_of(Client& client, std::vector<ListRow>& rows) const {
    return table_of_rows(list_.columns, request_, options_.columns.has_value(), rows,
                         [&](const ListColumn<Entry>& column, std::size_t place) {
                           return is_left_out(column, client, rows, place);
                         });
  }

  bool is_left_out(const ListColumn<Entry>& column, Client& client,
                   const std::vector<ListRow>& rows, std::size_t place) const {
    if (column.is_left_out_if_empty && are_all_empty(rows, place)) return true;
    if (column.key != list_.user_column || options_.output.is_wide()) return false;
    const bool is_own = list_.is_of_caller && list_.is_of_caller(options_);
    return is_own || are_all_of_caller(client, rows, place);
  }

  const List<Entry>& list_;
  Entries entries_;
  ListOptions options_;
  ListRequest request_;
};

}  // namespace gpu_platform::cli
