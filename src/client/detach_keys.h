#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::client {

// Looks for Ctrl-P Ctrl-Q, by which one leaves a terminal, among what is typed. A Ctrl-P is held
// back until the next key says whether it was meant so.
class DetachKeys {
 public:
  // What is to be passed on of it; after the keys nothing more.
  std::string filter(std::string_view typed) {
    std::string passed;
    for (const char key : typed) {
      if (were_pressed_) break;
      if (is_held_ && key == kSecond) {
        were_pressed_ = true;
        continue;
      }
      if (is_held_) passed += kFirst;
      is_held_ = key == kFirst;
      if (!is_held_) passed += key;
    }
    return passed;
  }
  bool were_pressed() const { return were_pressed_; }
  std::size_t held() const { return is_held_ ? 1 : 0; }  // bytes, which filter() may add

 private:
  static constexpr char kFirst = 0x10;   // Ctrl-P
  static constexpr char kSecond = 0x11;  // Ctrl-Q

  bool is_held_ = false;
  bool were_pressed_ = false;
};

}  // namespace gpu_platform::client
