#include "model/network.h"

#include <utility>

#include "base/check.h"

namespace gpu_platform::model {

std::string_view to_string(NetworkLevel level) {
  switch (level) {
    case NetworkLevel::kAnywhere:
      return "anywhere";
    case NetworkLevel::kZone:
      return "zone";
    case NetworkLevel::kRack:
      return "rack";
    case NetworkLevel::kDomain:
      return "domain";
  }
  CHECK(false);
  std::unreachable();
}

std::string_view NetworkPlace::name_at(NetworkLevel level) const {
  switch (level) {
    case NetworkLevel::kAnywhere:
      return {};
    case NetworkLevel::kZone:
      return zone;
    case NetworkLevel::kRack:
      return rack;
    case NetworkLevel::kDomain:
      return domain;
  }
  CHECK(false);
  std::unreachable();
}

}  // namespace gpu_platform::model
