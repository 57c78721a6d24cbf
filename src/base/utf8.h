#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::base {

// take_character returns this for a byte that begins no character.
inline constexpr char32_t kNotUtf8 = 0xffffffff;

// Takes the first character off the text, which must not be empty.
char32_t take_character(std::string_view& text);

// Characters that do more to a terminal or a log than show: C0 and C1 controls, marks that turn the
// direction of writing, other invisible ones; and kNotUtf8.
bool is_harmful(char32_t c);

// Puts U+FFFD in the place of each harmful character, but for those of `kept`, which are ASCII.
std::string without_harmful(std::string_view text, std::string_view kept = {});

}  // namespace gpu_platform::base
