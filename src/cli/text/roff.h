#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::cli {

// A man page: what `man` shows of NAME.1.
struct ManPage {
  std::string name;
  std::string text;
};

// Writes a man page with the few macros of man(7). Any text is safe: nothing of it is read as a
// request or an escape, and what is not ASCII is written by its number.
class Roff {
 public:
  Roff(std::string_view name, std::string_view summary);

  Roff& section(std::string_view title);
  Roff& paragraph(std::string_view text);
  // A term that stands out, and what it means below it.
  Roff& item(std::string_view term, std::string_view text);
  // Lines as they are.
  Roff& lines(std::string_view text);

  ManPage page() const { return {name_, text_}; }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace gpu_platform::cli
