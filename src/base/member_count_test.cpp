#include "base/member_count.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Not without a name: a conversion to a type that no other file could name would have no
// definition.
namespace gpu_platform::base::member_count_test {

struct Nothing {};
struct Inner {
  int a = 1;
  std::string b;
  friend bool operator==(const Inner&, const Inner&) = default;
};
struct Outer {
  std::string text;
  std::vector<Inner> list;
  std::optional<Inner> maybe;
  Inner inner;
  std::shared_ptr<const Inner> shared;
  std::optional<bool> flag;
  std::optional<std::vector<Inner>> maybe_list;
};
struct WithArray {
  int first = 0;
  std::int64_t points[4] = {};
};

static_assert(member_count<Nothing>() == 0);
static_assert(member_count<Inner>() == 2);
static_assert(member_count<Outer>() == 7);
static_assert(member_count<WithArray>() == 5);

}  // namespace gpu_platform::base::member_count_test
