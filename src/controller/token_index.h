#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/token.h"

namespace gpu_platform::controller {

// Finds tokens by what judges ask for.
// Ownership: values. Thread: one owner. Cost: O(log tokens), of the counts the tokens of the
// user.
class TokenIndex {
 public:
  void enter(const model::Token& token);
  void leave(const model::Token& token);

  std::size_t count_of(std::uint32_t uid) const;
  // Returns how many of these were made with tokens.
  std::size_t count_made_with_tokens(std::uint32_t uid) const;
  bool has_name(std::uint32_t uid, const std::string& name) const;
  // Returns the token that this maker's request made; nothing if it made none that still holds.
  std::optional<model::TokenId> of_request(const std::string& maker, const std::string& id) const;
  // Returns the tokens that were made with it, without those that were made with these.
  std::vector<model::TokenId> made_with(model::TokenId token) const;
  // Returns when the next one expires, and which; nothing if none ever does.
  std::optional<std::pair<base::Instant, model::TokenId>> next_to_expire() const;

  friend bool operator==(const TokenIndex&, const TokenIndex&) = default;

 private:
  std::set<std::pair<std::uint32_t, std::string>> names_;
  std::map<std::pair<std::string, std::string>, model::TokenId> requests_;
  std::set<std::pair<model::TokenId, model::TokenId>> made_with_;  // parent, child
  std::set<std::pair<std::uint32_t, model::TokenId>> of_tokens_;   // user, made with a token
  std::set<std::pair<base::Instant, model::TokenId>> ends_;
};

}  // namespace gpu_platform::controller
