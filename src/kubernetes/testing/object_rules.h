#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "kubernetes/testing/api_request.h"

// What an API server demands of objects, as far as the platform meets it. Pure.

namespace gpu_platform::kubernetes {

inline constexpr std::string_view kClaimFinalizer = "resource.kubernetes.io/delete-protection";

// Whether the objects of a resource change their status through the subresource alone.
bool has_status_subresource(const ApiPath& path);

// Why an object cannot be made; nothing if it can.
std::optional<ApiAnswer> refuse_new(const ApiPath& path, std::string_view kind,
                                    const nlohmann::json& object);
// Fills in what the server does: a pod's phase and defaults, a namespace's phase. A status that
// only the subresource may change is dropped.
void complete_new(const ApiPath& path, nlohmann::json& object, const std::string& now);

// Why an object cannot become another; nothing if it can.
std::optional<ApiAnswer> refuse_change(const ApiPath& path, std::string_view kind,
                                       const nlohmann::json& before, const nlohmann::json& after);

// A pod whose containers have ended for good.
bool is_pod_over(const nlohmann::json& pod);
// Sets a condition of a status, with the time of its change; the same condition changes nothing.
struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason = "";
  std::string message = "";
};
void set_condition(nlohmann::json& object, const Condition& condition, const std::string& now);

}  // namespace gpu_platform::kubernetes
