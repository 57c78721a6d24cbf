#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "cli/client_names.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

// How a command shows what it found: -o table|wide|json|yaml|name, as kubectl has it; --json is
// short for -o json. And how often: --watch.

namespace gpu_platform::cli {

// The place of the names that -o name prints, one in a line and nothing else, for scripts: plain
// ids, so that they can be given to another command as they are.
struct NamesPlace {
  std::string_view list;  // the key of the list, whose objects have names; empty: one object
  std::string_view name;  // the key of a name, or a path of keys: "gpu/uuid"
};

struct Output {
  enum class Format : std::uint8_t {
    kTable,
    kWide,  // more columns, and nothing is cut
    kJson,  // the daemon's document
    kYaml,  // the same
    kName,
  };

  Format format = Format::kTable;
  bool in_lines = false;  // with kJson, of a list: each entry alone, in a line of its own
  NamesPlace names;
  std::optional<base::Duration> watch;  // time between two looks

  bool is_wide() const { return format == Format::kWide; }
  // print_document() prints it; else it is text for people.
  bool is_document() const { return format >= Format::kJson; }
  // An error is a document too.
  bool wants_documents() const { return format == Format::kJson || format == Format::kYaml; }
  // The columns that a table may take; 0: nothing is cut.
  std::size_t width(const Console& console) const {
    return is_wide() ? 0 : console.process_environment().width;
  }
  PageStyle page_style(const Console& console) const {
    return {
        .now = console.process_environment().now(), .width = width(console), .is_wide = is_wide()};
  }
  TableStyle style(const Console& console) const {
    return {.width = width(console),
            .has_colors = client::wants_color(console.process_environment())};
  }
};

// Prints the daemon's JSON document in that form; what is no document as it came. Returns the exit
// code.
int print_document(Console& console, const Output& output, const std::string& document);

// The same for one of several documents: in YAML with a line before it that divides them.
int print_next_document(Console& console, const Output& output, const std::string& document);

}  // namespace gpu_platform::cli
