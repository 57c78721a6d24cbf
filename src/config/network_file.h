#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "config/configuration.h"
#include "model/network.h"

// Reads the places of the site's nodes in its network, from the file that cluster.network_file
// names. A line is for some nodes; "#" begins a comment:
//
//   dgx-[01-16]  domain=su1 rack=r1 zone=hall-a
//
// Each of domain, rack and zone may be left out. Pure.

namespace gpu_platform::config {

using NetworkPlaces = std::map<std::string, model::NetworkPlace, std::less<>>;  // by node

// The first problem, with its line.
std::expected<NetworkPlaces, Problem> parse_network(std::string_view text);

}  // namespace gpu_platform::config
