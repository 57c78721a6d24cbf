#include "base/member_count.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpu_platform::base {
namespace {

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

}  // namespace
}  // namespace gpu_platform::base
