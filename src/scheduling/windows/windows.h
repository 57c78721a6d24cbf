#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "model/allocation.h"
#include "model/job.h"
#include "model/node.h"
#include "model/window.h"
#include "scheduling/trial.h"

// GPUs reserved for time windows, as placement sees them: to jobs of others the GPUs are gone from
// the window's begin to its end, to its own jobs all others are. A job is known to be of a window
// by its request; whether it may be was judged when it was submitted.

namespace gpu_platform::scheduling {

// From `begin` until before `end`; the end is that of a hard limit, the grace included.
struct Span {
  base::Instant begin;
  base::Instant end;
};

// Ownership: holds copies. Thread: one owner. Windows never overlap. Cost of a question: the
// windows that lie in the span, and their nodes.
class Windows {
 public:
  using Map = std::map<std::string, model::Window, std::less<>>;  // by name

  void put(model::Window window) {
    std::string name = window.name;
    windows_.insert_or_assign(std::move(name), std::move(window));
  }
  bool erase(std::string_view name) {
    const auto found = windows_.find(name);
    if (found == windows_.end()) return false;
    windows_.erase(found);
    return true;
  }

  const model::Window* find(std::string_view name) const {
    const auto found = windows_.find(name);
    return found == windows_.end() ? nullptr : &found->second;
  }
  const Map& all() const { return windows_; }
  bool empty() const { return windows_.empty(); }

  // The first begin or end that is still to come.
  std::optional<base::Instant> next_change(base::Instant now) const;
  bool is_any_between(base::Instant begin, base::Instant end) const;

  // For a job of that request that would run so long: takes what windows keep from it out of the
  // trial. `request` is as request_inside() made it where it is of a window.
  void withhold_from(Trial& trial, const model::ResourceRequest& request, const Span& span) const;
  // False where its own window is not there or ends before.
  bool is_over_before(const model::ResourceRequest& request, base::Instant end) const;
  // Whether it may hold this for so long.
  bool allow(const model::ResourceRequest& request, const model::Allocation& allocation,
             const Span& span) const;
  // The window that keeps some of it from such a job; null: none.
  const model::Window* find_in_the_way(const model::ResourceRequest& request,
                                       const model::Allocation& allocation, const Span& span) const;
  // The node with what is not to be had there out of service. Nothing where no window concerns it.
  struct Left {
    model::Node node;
    const model::Window* by = nullptr;  // of others' windows there the first; null: its own alone
  };
  std::optional<Left> as_left_to(const model::ResourceRequest& request, const model::Node& node,
                                 const Span& span) const;

  friend bool operator==(const Windows&, const Windows&) = default;

 private:
  Map windows_;
};

// What the allocation has in common with the window's GPUs, or with a whole node of it.
bool touches(const model::Window& window, const model::Allocation& allocation);
// No more than the window's.
bool lies_in(const model::Window& window, const model::Allocation& allocation);
// The request, but for the window's nodes alone; nothing where it could have none of them.
std::optional<model::ResourceRequest> request_inside(const model::Window& window,
                                                     const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
