#include "model/job_selection.h"
#include "model/job_spec.h"

#include <algorithm>

namespace gpu_platform::model {

namespace {

// Bytes of the UTF-8 character that `text` begins with.
std::size_t character_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) ++size;
  return size;
}

}  // namespace

// The usual way without recursion: on a mismatch the last `*` takes one character more. At most
// pattern times text steps.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t after_star = std::string_view::npos;
  std::size_t star_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_end = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t += character_size(text.substr(t));
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      star_end += character_size(text.substr(star_end));
      t = star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool selects(const JobSelection& selection, const Job& job) {
  const JobSpec& spec = *job.spec;
  if (is_ended(job.state)) return false;
  if (!selection.ids.empty() && !std::ranges::binary_search(selection.ids, job.id)) return false;
  if (selection.user && spec.user != *selection.user) return false;
  const auto& states = selection.states;
  if (!states.empty() && std::ranges::find(states, job.state) == states.end()) return false;
  if (!selection.name.empty() && !matches_pattern(selection.name, spec.name)) return false;
  return std::ranges::all_of(selection.labels, [&](const Label& label) {
    return std::ranges::find(spec.labels, label) != spec.labels.end();
  });
}

}  // namespace gpu_platform::model
