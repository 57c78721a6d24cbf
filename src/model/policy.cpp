#include "model/policy.h"

namespace gpu_platform::model {

std::string_view to_string(StrangerPolicy policy) {
  switch (policy) {
    case StrangerPolicy::kIgnore:
      return "ignore";
    case StrangerPolicy::kAvoid:
      return "avoid";
    case StrangerPolicy::kAlert:
      return "alert";
  }
  return "avoid";
}

}  // namespace gpu_platform::model
