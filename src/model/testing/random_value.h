#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "model/job_spec.h"
#include "model/stored_fields.h"

// Random values of everything that the store keeps, each member drawn through the struct's own list
// of fields. They need not make sense: any text has any bytes, and any number any size.
//
// The compiler counts that a list has as many entries as its struct has members; drawing checks
// that they are different ones. Together: each member is there, once.

namespace gpu_platform::model::testing {

template <class T>
void draw(base::Prng& random, T& value);

inline std::int64_t draw_number(base::Prng& random) {
  return static_cast<std::int64_t>(random.next()) >> random.below(64);
}

inline void draw(base::Prng& random, std::string& text) {
  text.resize(random.below(20));
  for (char& c : text) c = static_cast<char>(random.below(256));
}

// Each may hold others.
template <class T>
void draw(base::Prng& random, std::vector<T>& list);
template <class T>
void draw(base::Prng& random, std::optional<T>& maybe);

template <class T>
void draw(base::Prng& random, base::Shared<T>& shared) {
  T value;
  draw(random, value);
  shared = std::move(value);
}

template <class T>
void draw(base::Prng& random, std::vector<T>& list) {
  list.resize(random.below(4));
  for (T& element : list) draw(random, element);
}

template <class T>
void draw(base::Prng& random, std::optional<T>& maybe) {
  maybe.reset();
  if (random.chance(1, 2)) draw(random, maybe.emplace());
}

inline void draw(base::Prng& random, std::shared_ptr<const JobSpec>& spec) {
  JobSpec value;
  draw(random, value);
  spec = std::make_shared<const JobSpec>(std::move(value));
}

inline void draw(base::Prng& random, SpecPatch& patch) {
  for_each_spec_field([&](const auto& field) {
    if (field.change == Change::kNever || random.chance(1, 2)) return;
    typename std::remove_cvref_t<decltype(field)>::Type value{};
    draw(random, value);
    patch.set(field.member, std::move(value));
  });
}

template <class T>
void draw(base::Prng& random, T& value) {
  if constexpr (IsListed<T>) {
    static_assert(lists_every_member<T>(), "a member of the struct is not in its list of fields");
    std::apply(
        [&](auto&... member) {
          CHECK(std::set<const void*>({&member...}).size() == sizeof...(member));
          (draw(random, member), ...);
        },
        fields(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    value = random.chance(1, 2);
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(kValues<T> > 0, "how many values does the enumeration have?");
    value = static_cast<T>(random.below(kValues<T>));
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(random.next());
  } else if constexpr (HasValueMember<T>) {
    value.value = random.next();
  } else {
    value = T(draw_number(random));  // an amount or an instant
  }
}

template <class T>
T drawn(base::Prng& random) {
  T value{};
  draw(random, value);
  return value;
}

}  // namespace gpu_platform::model::testing
