#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "alerts/alert.h"
#include "base/result.h"

namespace gpu_platform::alerts {

// The site's own text of an alert in messages for people: words with places such as
// {{alert.summary}}. There are no conditions and no loops.
class TextTemplate {
 public:
  static constexpr std::size_t kMaxBytes = 16 * 1024;

  // The error names the line and the place that is not known, with those that are.
  static base::Result<TextTemplate> parse(std::string_view text);

  std::string of(const Alert& alert, std::string_view site) const;

 private:
  struct Piece {
    std::string text;  // of a place: its name
    bool is_place = false;
  };
  std::vector<Piece> pieces_;
};

// The line that is used without a template of the site.
std::string usual_line(const Alert& alert);

}  // namespace gpu_platform::alerts
