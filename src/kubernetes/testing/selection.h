#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

// Label and field selectors of lists and watches.

namespace gpu_platform::kubernetes {

// A condition on the value of a label or field.
struct Requirement {
  std::string key;
  std::set<std::string> values;  // empty: any value
  bool is_negated = false;       // the value must be none of these, or the key be absent
};

struct Selection {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;

  bool is_everything() const { return labels.empty() && fields.empty(); }
  bool matches(const nlohmann::json& object) const;
};

// Selectors as in a query: "a=b,c!=d,e in (f,g),h,!i" and "spec.nodeName=n1,status.phase!=Failed".
// An error has the server's words. Fields: metadata.name, metadata.namespace, spec.nodeName,
// spec.driver and status.phase.
base::Result<Selection> parse_selection(std::string_view label_selector,
                                        std::string_view field_selector);

}  // namespace gpu_platform::kubernetes
