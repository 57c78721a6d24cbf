#include "node/driver/cuda_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "node/driver/cuda_kernels.h"
#include "node/driver/cuda_library.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 30;
constexpr std::size_t kLinkBytes = std::size_t{64} << 20;
constexpr std::size_t kSmallestChunk = std::size_t{1} << 20;
constexpr unsigned kThreads = 256;
constexpr unsigned kBlocks = 2048;
constexpr std::uint32_t kRounds = 4096;
constexpr int kStubLibrary = 34;  // CUDA_ERROR_STUB_LIBRARY

struct Chunk {
  CudaPointer at = 0;
  std::uint32_t words = 0;
};

struct Device {
  std::string uuid;
  void* context = nullptr;
  void* fill = nullptr;
  void* compare = nullptr;
  void* work = nullptr;
  CudaPointer faults = 0;  // a counter
};

std::string uuid_words(const unsigned char* bytes) {
  std::string words = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) words += '-';
    words += fmt::format("{:02x}", bytes[i]);
  }
  return words;
}

// After a call that failed nothing is called any more: CUDA's errors last for the process, so what
// followed would tell nothing.
class Burn {
 public:
  Burn(const CudaFunctions& cuda, CudaDepth depth) : cuda_(cuda), depth_(depth) {}

  void open(const std::string& uuid) {
    Device device;
    device.uuid = uuid;
    const std::optional<int> number = find(uuid);
    if (!number) return fail("CUDA does not list it");
    call("cuDevicePrimaryCtxRetain", cuda_.retain_context, &device.context, *number);
    use(device);
    void* module = nullptr;
    call("cuModuleLoadData", cuda_.load_module, &module, kKernels);
    call("cuModuleGetFunction", cuda_.find_kernel, &device.fill, module, "fill");
    call("cuModuleGetFunction", cuda_.find_kernel, &device.compare, module, "compare");
    call("cuModuleGetFunction", cuda_.find_kernel, &device.work, module, "work");
    device.faults = allocate(sizeof(std::uint32_t));
    devices_.push_back(device);
  }

  // Empty: its memory held all patterns.
  std::string check_memory(const Device& device) {
    use(device);
    const std::vector<Chunk> chunks = take_memory();
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < depth_.patterns; ++i) {
      const std::uint32_t seed = pattern_word(i + 1, 0x5a5a5a5aU);
      wrong += hold(device, chunks, seed) + hold(device, chunks, ~seed);
    }
    for (const Chunk& chunk : chunks) {
      bytes_ += std::uint64_t{chunk.words} * sizeof(std::uint32_t);
      call("cuMemFree", cuda_.release, chunk.at);
    }
    return wrong == 0 ? "" : fmt::format("{} words of its memory did not keep a pattern", wrong);
  }

  std::string check_work(const Device& device) {
    use(device);
    std::array<std::uint32_t, kLanes> expected{};
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) expected[lane] = work_result(lane, kRounds);
    CudaPointer table = allocate(sizeof expected);
    call("cuMemcpyHtoD", cuda_.copy_to_gpu, table, expected.data(), sizeof expected);
    std::uint64_t wrong = 0;
    const std::int64_t until = os::boot_ms() + depth_.work_ms;
    do {
      CudaPointer faults = device.faults;
      std::uint32_t rounds = kRounds;
      void* arguments[] = {&table, &rounds, &faults};
      wrong += count_faults(device, [&] { launch(device.work, arguments); });
    } while (wrong == 0 && failure_.empty() && os::boot_ms() < until);
    call("cuMemFree", cuda_.release, table);
    return wrong == 0 ? "" : fmt::format("{} of its threads computed a wrong result", wrong);
  }

  std::string check_link(const Device& from, const Device& to) {
    const std::uint32_t seed = pattern_word(++links_, 0x3c3c3c3cU);
    const auto words = static_cast<std::uint32_t>(kLinkBytes / sizeof(std::uint32_t));
    use(from);
    const Chunk source{allocate(kLinkBytes), words};
    fill(from, source, seed);
    use(to);
    const Chunk copy{allocate(kLinkBytes), words};
    call("cuMemsetD32", cuda_.set_words, copy.at, 0, words);
    call("cuMemcpyPeer", cuda_.copy_to_peer, copy.at, to.context, source.at, from.context,
         kLinkBytes);
    call("cuCtxSynchronize", cuda_.synchronize);
    const std::uint64_t wrong = compare(to, copy, seed);
    call("cuMemFree", cuda_.release, copy.at);
    use(from);
    call("cuMemFree", cuda_.release, source.at);
    return wrong == 0 ? ""
                      : fmt::format("{} words of a copy from {} to {} arrived wrong", wrong,
                                    from.uuid, to.uuid);
  }

  const std::vector<Device>& devices() const { return devices_; }
  // Why a call failed; empty: none did.
  const std::string& failure() const { return failure_; }
  std::string done() const {
    return fmt::format("{} GiB of memory, arithmetic for {} s on each GPU, {} copies between GPUs",
                       bytes_ >> 30, depth_.work_ms / 1000, links_);
  }

 private:
  template <class Function, class... Arguments>
  void call(const char* what, Function* function, Arguments... arguments) {
    if (!failure_.empty()) return;
    const int code = function(arguments...);
    if (code == 0) return;
    const char* name = nullptr;
    if (cuda_.error_name(code, &name) != 0 || name == nullptr) name = "an unknown error";
    fail(fmt::format("{}: {} ({})", what, name, code));
  }

  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  std::optional<int> find(const std::string& uuid) {
    int count = 0;
    call("cuDeviceGetCount", cuda_.device_count, &count);
    for (int i = 0; i < count; ++i) {
      int device = 0;
      unsigned char bytes[16] = {};
      call("cuDeviceGet", cuda_.device_get, &device, i);
      call("cuDeviceGetUuid", cuda_.device_uuid, bytes, device);
      if (uuid_words(bytes) == uuid) return device;
    }
    return std::nullopt;
  }

  void use(const Device& device) { call("cuCtxSetCurrent", cuda_.set_context, device.context); }

  CudaPointer allocate(std::size_t bytes) {
    CudaPointer at = 0;
    call("cuMemAlloc", cuda_.allocate, &at, bytes);
    return at;
  }

  // Nine tenths of what is free. A refusal only means less.
  std::vector<Chunk> take_memory() {
    std::size_t free = 0;
    std::size_t total = 0;
    call("cuMemGetInfo", cuda_.free_memory, &free, &total);
    std::vector<Chunk> chunks;
    std::size_t left = free / 10 * 9;
    std::size_t size = kChunkBytes;
    while (failure_.empty() && left >= kSmallestChunk && size >= kSmallestChunk) {
      const std::size_t bytes = std::min(left, size) / kSmallestChunk * kSmallestChunk;
      CudaPointer at = 0;
      if (cuda_.allocate(&at, bytes) != 0) {
        size /= 2;
        continue;
      }
      chunks.push_back({at, static_cast<std::uint32_t>(bytes / sizeof(std::uint32_t))});
      left -= bytes;
    }
    if (chunks.empty()) fail("none of its memory is free");
    return chunks;
  }

  // All is written before anything is read, so that addresses that meet are found.
  std::uint64_t hold(const Device& device, const std::vector<Chunk>& chunks, std::uint32_t seed) {
    std::uint32_t each = 0;
    for (const Chunk& chunk : chunks) fill(device, chunk, seed + each++);
    each = 0;
    std::uint64_t wrong = 0;
    for (const Chunk& chunk : chunks) wrong += compare(device, chunk, seed + each++);
    return wrong;
  }

  void fill(const Device& device, Chunk chunk, std::uint32_t seed) {
    void* arguments[] = {&chunk.at, &chunk.words, &seed};
    launch(device.fill, arguments);
    call("cuCtxSynchronize", cuda_.synchronize);
  }

  std::uint64_t compare(const Device& device, Chunk chunk, std::uint32_t seed) {
    CudaPointer faults = device.faults;
    void* arguments[] = {&chunk.at, &chunk.words, &seed, &faults};
    return count_faults(device, [&] { launch(device.compare, arguments); });
  }

  void launch(void* kernel, void** arguments) {
    call("cuLaunchKernel", cuda_.launch, kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr,
         arguments, nullptr);
  }

  template <class Work>
  std::uint32_t count_faults(const Device& device, const Work& work) {
    call("cuMemsetD32", cuda_.set_words, device.faults, 0, 1);
    work();
    call("cuCtxSynchronize", cuda_.synchronize);
    std::uint32_t faults = 0;
    call("cuMemcpyDtoH", cuda_.copy_from_gpu, &faults, device.faults, sizeof faults);
    return faults;
  }

  const CudaFunctions& cuda_;
  const CudaDepth depth_;
  std::vector<Device> devices_;
  std::string failure_;
  std::uint64_t bytes_ = 0;
  std::uint32_t links_ = 0;
};

// Does the parts one after the other, until a call fails.
class Check {
 public:
  Check(const CudaFunctions& cuda, const std::vector<std::string>& uuids, CudaDepth depth)
      : uuids_(uuids), burn_(cuda, depth) {}

  CudaOutcome run() {
    out_.has_run = true;
    if (!run_all()) blame_rest();
    out_.detail = burn_.done();
    return std::move(out_);
  }

 private:
  bool run_all() {
    for (const std::string& uuid : uuids_) {
      if (!try_one(uuid, uuid, [&] { burn_.open(uuid); })) return false;
    }
    for (const Device& device : burn_.devices()) {
      const bool has_run = try_one(device.uuid, device.uuid, [&] {
        note(device.uuid, burn_.check_memory(device));
        note(device.uuid, burn_.check_work(device));
      });
      if (!has_run) return false;
      checked_.push_back(device.uuid);
    }
    for (const auto& [uuid, why] : out_.failures) bad_alone_.insert(uuid);
    for (const Device& from : burn_.devices()) {
      for (const Device& to : burn_.devices()) {
        if (from.uuid == to.uuid || has_failed(from.uuid) || has_failed(to.uuid)) continue;
        const auto copy = [&] {
          const std::string why = burn_.check_link(from, to);
          note(from.uuid, why);
          note(to.uuid, why);
        };
        if (!try_one(from.uuid, to.uuid, copy)) return false;
      }
    }
    return true;
  }

  template <class Part>
  bool try_one(const std::string& gpu, const std::string& other, const Part& part) {
    part();
    if (burn_.failure().empty()) return true;
    note(gpu, burn_.failure());
    note(other, burn_.failure());
    failed_ = gpu;
    return false;
  }

  void note(const std::string& uuid, const std::string& why) {
    if (!why.empty()) out_.failures.emplace(uuid, why);
  }

  // What a GPU that failed sends or gets would be blamed on its peer. A copy that failed is not.
  bool has_failed(const std::string& uuid) const { return bad_alone_.contains(uuid); }

  // Nothing is known of those that were not checked before.
  void blame_rest() {
    for (const std::string& uuid : uuids_) {
      if (std::ranges::find(checked_, uuid) != checked_.end()) continue;
      out_.failures.emplace(uuid, fmt::format("it was not checked, because {} failed", failed_));
    }
  }

  const std::vector<std::string>& uuids_;
  Burn burn_;
  CudaOutcome out_;
  std::vector<std::string> checked_;
  std::set<std::string> bad_alone_;
  std::string failed_;
};

}  // namespace

CudaOutcome check_with_cuda(const std::vector<std::string>& uuids, CudaDepth depth,
                            const char* library) {
  CudaFunctions cuda;
  CudaOutcome outcome;
  std::string why = open_cuda(library, cuda);
  const int code = why.empty() ? cuda.init(0) : 0;
  if (code == kStubLibrary) why = "there is a libcuda without a driver";
  if (!why.empty()) {
    outcome.detail = "readings only: " + why;
    return outcome;
  }
  if (code == 0) return Check(cuda, uuids, depth).run();
  outcome.has_run = true;
  outcome.detail = "CUDA does not start";
  for (const std::string& uuid : uuids) {
    outcome.failures.emplace(uuid, fmt::format("CUDA does not start (cuInit: {})", code));
  }
  return outcome;
}

}  // namespace gpu_platform::node
