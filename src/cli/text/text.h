#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "client/harmless.h"

// How values look to a person. Nothing here is for programs: they have --json.

namespace gpu_platform::cli {

using client::harmless;

// Columns that UTF-8 text takes on a terminal.
std::size_t display_width(std::string_view text);

// At most `width` columns of it, the last one an ellipsis where something was cut. Never cuts a
// character.
std::string shortened(std::string_view text, std::size_t width);

// The text in lines of at most `width` columns, divided at spaces; a longer word is divided where
// its line ends. At least one line. A width of 0 divides nothing.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// What a page of "key value" lines is printed on.
struct PageStyle {
  base::Instant now;
  std::size_t width = 0;  // of the terminal; 0: there is none, and nothing is wrapped
  bool is_wide = false;   // with all there is
};

// "Waits            1 node is 4 GPUs short": the key in so many columns, and the value, which goes
// on below its begin; nothing without a value. Ended, and made harmless.
std::string key_line(std::string_view key, std::string_view value, std::size_t key_width,
                     std::size_t width);

// "45s", "3m12s", "2h05m", "4d03h": two units at most, cut, not rounded. Negative counts as zero.
std::string age(base::Duration duration);

// "80 GiB", "1.5 GiB", "512 MiB", "0 B".
std::string readable_size(std::int64_t bytes);

// "2026-11-21 08:30:15 +0100", in the local time zone.
std::string local_time(base::Instant at);

// "2026-11-21 08:30", in the local time zone, for the columns of lists.
std::string short_time(base::Instant at);

// The text with its times of the form "2026-11-21T07:30:15Z" as local_time() has them.
std::string with_local_times(std::string_view text);

// A command line that a shell reads back as the same words.
std::string shell_quoted(const std::vector<std::string>& command);

// The words of a job's command as its user wrote them: the text of a job script, which stands in
// the command, and its interpreter are left out ("job.sh", "a"). Other words stay as they are.
std::vector<std::string> without_script_text(std::vector<std::string> command);

// A name that ends in a number, as ("dgx-", 7); without one, or with one that is too large, all of
// it and nothing. Names sort by it as people count.
std::pair<std::string, std::optional<std::uint64_t>> split_name(std::string_view name);

// "0-3,6": numbers in the order given, neighbours that count up joined.
std::string ranges_of(std::span<const std::int64_t> numbers);

// The words with `between` between each two.
std::string joined(std::span<const std::string> words, std::string_view between);

// A name of the API as the command line has it: "on-demand" for "ON_DEMAND".
std::string as_word(std::string_view name);

// "1 job", "3 jobs".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace gpu_platform::cli
