#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The place of a node in the site's network, in the site's own names.

namespace gpu_platform::model {

// The nearness of a gang's nodes, as asked for or as found: the larger, the nearer.
enum class NetworkLevel : std::uint8_t {
  kAnywhere,
  kZone,
  kRack,
  kDomain,  // one NVLink domain or leaf switch
};
inline constexpr std::size_t kNetworkLevels = 4;
std::string_view to_string(NetworkLevel level);  // "domain"; "anywhere"

// Names are unique in the cluster: two nodes with the same name at a level are together there.
// Empty: not known; such a node shares that level with no other node.
struct NetworkPlace {
  std::string domain;
  std::string rack;
  std::string zone;

  // Empty for kAnywhere.
  std::string_view name_at(NetworkLevel level) const;

  friend auto operator<=>(const NetworkPlace&, const NetworkPlace&) = default;
};

}  // namespace gpu_platform::model
