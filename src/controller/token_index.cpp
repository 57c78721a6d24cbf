#include "controller/token_index.h"

namespace gpu_platform::controller {

void TokenIndex::enter(const model::Token& token) {
  names_.emplace(token.uid, token.name);
  if (!token.request_id.empty()) {
    requests_.emplace(std::pair{token.created_by, token.request_id}, token.id);
  }
  if (token.made_with.valid()) {
    made_with_.emplace(token.made_with, token.id);
    of_tokens_.emplace(token.uid, token.id);
  }
  if (token.expires_at.is_set()) ends_.emplace(token.expires_at, token.id);
}

void TokenIndex::leave(const model::Token& token) {
  names_.erase({token.uid, token.name});
  requests_.erase({token.created_by, token.request_id});
  made_with_.erase({token.made_with, token.id});
  of_tokens_.erase({token.uid, token.id});
  ends_.erase({token.expires_at, token.id});
}

std::size_t TokenIndex::count_of(std::uint32_t uid) const {
  std::size_t count = 0;
  for (auto at = names_.lower_bound({uid, {}}); at != names_.end() && at->first == uid; ++at) {
    ++count;
  }
  return count;
}

std::size_t TokenIndex::count_made_with_tokens(std::uint32_t uid) const {
  std::size_t count = 0;
  for (auto at = of_tokens_.lower_bound({uid, {}}); at != of_tokens_.end() && at->first == uid;
       ++at) {
    ++count;
  }
  return count;
}

bool TokenIndex::has_name(std::uint32_t uid, const std::string& name) const {
  return names_.contains({uid, name});
}

std::optional<model::TokenId> TokenIndex::of_request(const std::string& maker,
                                                     const std::string& id) const {
  const auto found = requests_.find({maker, id});
  if (found == requests_.end()) return std::nullopt;
  return found->second;
}

std::vector<model::TokenId> TokenIndex::made_with(model::TokenId token) const {
  std::vector<model::TokenId> children;
  for (auto at = made_with_.lower_bound({token, {}}); at != made_with_.end() && at->first == token;
       ++at) {
    children.push_back(at->second);
  }
  return children;
}

std::optional<std::pair<base::Instant, model::TokenId>> TokenIndex::next_to_expire() const {
  if (ends_.empty()) return std::nullopt;
  return *ends_.begin();
}

}  // namespace gpu_platform::controller
