#pragma once

#include <string_view>

#include "health/rules.h"

namespace gpu_platform::health {

// What a condition of a node or a GPU asks for, and by which rule.
struct ConditionMeaning {
  const Rule* rule = nullptr;  // never null
  Action action = Action::kCount;
};

// `text` is "NAME", "NAME: REASON" or "NAME: REASON: further words", or a taint of a device. The
// first of these speaks:
// - the row of its name and its reason ("condition-acceleratedhardwareready-dcgmerror");
// - the rule of the XID that it names ("NvidiaXID79Error"), but no more than DRAIN: nothing tells
//   which GPU it was, or what the driver wants;
// - the row of its name ("condition-gpumissing");
// - the rule "node-fault", if its words speak of hardware (is_node_fault);
// - the rule "condition-unknown".
ConditionMeaning meaning_of_condition(std::string_view text, const Rules& rules,
                                      std::string_view gpu_type, std::string_view node = {});

}  // namespace gpu_platform::health
