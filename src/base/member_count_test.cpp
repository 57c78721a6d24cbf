#include "base/member_count.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The namespace has a name: a conversion to a type that no other file could name would have no
// definition.
namespace gpu_platform::base {

struct CountedNothing {};
struct CountedInner {
  int a = 1;
  std::string b;
  friend bool operator==(const CountedInner&, const CountedInner&) = default;
};
struct CountedOuter {
  std::string text;
  std::vector<CountedInner> list;
  std::optional<CountedInner> maybe;
  CountedInner inner;
  std::shared_ptr<const CountedInner> shared;
  std::optional<bool> flag;
  std::optional<std::vector<CountedInner>> maybe_list;
};
struct CountedArray {
  int first = 0;
  std::int64_t points[4] = {};
};

static_assert(member_count<CountedNothing>() == 0);
static_assert(member_count<CountedInner>() == 2);
static_assert(member_count<CountedOuter>() == 7);
static_assert(member_count<CountedArray>() == 5);

}  // namespace gpu_platform::base
