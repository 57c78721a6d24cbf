#pragma once

#include <sys/mman.h>

#include <new>
#include <type_traits>

namespace gpu_platform::node {

// One page that a child of ours has in common with us, for what it says of itself until it executes
// its program. Nothing else is shared with it: its memory is a copy of ours, so that the kernel,
// which kills all processes that share memory with one that is out of memory, never kills us too.
//
// Only plain values go in, no pointers, and the reader believes none of them: at the end the child
// has a user's id. Pages that we have touched are ours and not the job's.
template <class Values>
class SharedPage {
 public:
  static_assert(std::is_trivially_destructible_v<Values> && sizeof(Values) <= 4096);

  SharedPage() {
    void* const page =
        mmap(nullptr, sizeof(Values), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) values_ = new (page) Values();
  }
  ~SharedPage() {
    if (values_ != nullptr) munmap(values_, sizeof(Values));
  }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  bool is_there() const { return values_ != nullptr; }
  Values& operator*() const { return *values_; }
  Values* operator->() const { return values_; }

 private:
  Values* values_ = nullptr;
};

}  // namespace gpu_platform::node
