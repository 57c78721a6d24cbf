#include "api/calls.h"
#include "config/effective.h"

// The configuration in force.

namespace gpu_platform::api {

namespace {

void put_value(const config::InForce::Value& value, v1::ConfigurationValue& out) {
  const config::EffectiveValue& now = value.now;
  out.set_key(now.key);
  out.set_value(now.value);
  if (now.line != 0) {
    out.set_file(now.file);
    out.set_line(static_cast<std::uint32_t>(now.line));
  }
  out.set_takes_effect(now.effect == config::Effect::kAnytime ? v1::CONFIGURATION_EFFECT_ANYTIME
                                                              : v1::CONFIGURATION_EFFECT_START);
  if (value.next != now.value) out.set_next_value(value.next);
}

}  // namespace

v1::Configuration Calls::configuration() const {
  v1::Configuration out;
  const auto in_force = core_.configuration ? core_.configuration() : nullptr;
  if (in_force == nullptr) return out;
  if (!in_force->file.empty()) out.set_file(in_force->file);
  for (const config::InForce::Value& value : in_force->values) put_value(value, *out.add_values());
  return out;
}

}  // namespace gpu_platform::api
