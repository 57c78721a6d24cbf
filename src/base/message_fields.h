#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/codec.h"

// The fields of a message as one list for both directions: a function template that visits them in
// their order with a FieldWriter or a FieldReader,
//
//   void fields(auto& f, base::FieldsOf<Stop> auto& m) {
//     f.number(m.code);
//     f.check(m.code != 0);
//   }
//
// so that no field is written and not read, or in another order. What is checked rejects what is
// read; the writer trusts its caller.

namespace gpu_platform::base {

template <class T, class Message>
concept FieldsOf = std::is_same_v<std::remove_const_t<T>, Message>;

template <class T>
concept FieldNumber = std::unsigned_integral<T> && !std::is_same_v<T, bool>;

class FieldWriter {
 public:
  explicit FieldWriter(Encoder& out) : out_(out) {}

  template <FieldNumber Number>
  void number(const Number& value) {
    out_.u64(value);
  }
  void flag(const bool& value) { out_.boolean(value); }
  void text(std::string_view value) { out_.text(value); }
  // Cut to that many bytes; a longer one is rejected.
  void cut_text(std::string_view value, std::size_t max) { out_.text(value.substr(0, max)); }
  // An enumeration with so many values, from 0.
  template <class Enum>
  void choice(const Enum& value, std::size_t) {
    out_.u64(static_cast<std::uint64_t>(value));
  }
  // One of two values, as a flag.
  template <class T>
  void either(const T& value, T yes, T) {
    out_.boolean(value == yes);
  }
  // Calls visit with each item.
  template <class T, class Visit>
  void list(const std::vector<T>& items, Visit visit,
            std::size_t = std::numeric_limits<std::size_t>::max()) {
    out_.u64(items.size());
    for (const T& item : items) visit(item);
  }
  template <class T, class Visit>
  void optional(const std::optional<T>& value, Visit visit) {
    out_.boolean(value.has_value());
    if (value) visit(*value);
  }
  void check(bool) {}

 private:
  Encoder& out_;
};

class FieldReader {
 public:
  explicit FieldReader(Decoder& in) : in_(in) {}

  template <FieldNumber Number>
  void number(Number& value) {
    const std::uint64_t wide = in_.u64();
    check(wide <= std::numeric_limits<Number>::max());
    value = static_cast<Number>(wide);
  }
  void flag(bool& value) { value = in_.boolean(); }
  // A view is one into the input.
  template <class Text>
  void text(Text& value) {
    value = in_.text();
  }
  void cut_text(std::string& value, std::size_t max) {
    const std::string_view text = in_.text();
    check(text.size() <= max);
    value = text.substr(0, max);
  }
  template <class Enum>
  void choice(Enum& value, std::size_t count) {
    const std::uint64_t number = in_.u64();
    check(number < count);
    value = static_cast<Enum>(number);
  }
  template <class T>
  void either(T& value, T yes, T no) {
    value = in_.boolean() ? yes : no;
  }
  template <class T, class Visit>
  void list(std::vector<T>& items, Visit visit,
            std::size_t max = std::numeric_limits<std::size_t>::max()) {
    const std::size_t count = in_.count();
    check(count <= max);
    for (std::size_t i = 0; i < count && in_.ok(); ++i) visit(items.emplace_back());
  }
  template <class T, class Visit>
  void optional(std::optional<T>& value, Visit visit) {
    if (in_.boolean()) visit(value.emplace());
  }
  void check(bool holds) {
    if (!holds) in_.reject();
  }

 private:
  Decoder& in_;
};

}  // namespace gpu_platform::base
