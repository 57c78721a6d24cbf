#include "node/devices/device_program.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace gpu_platform::node {

namespace {

// The parts of the kernel's question.
enum Register : __u8 {
  kVerdict = BPF_REG_0,
  kContext = BPF_REG_1,  // bpf_cgroup_dev_ctx
  kAccess = BPF_REG_2,
  kType = BPF_REG_3,
  kMajor = BPF_REG_4,
  kMinor = BPF_REG_5,
};

constexpr int kTypeBits = 16;  // of access_type; the access itself lies above them
constexpr int kRefuse = 0;
constexpr int kAllow = 1;
constexpr std::size_t kVerdictSize = 2;  // instructions of one verdict

bpf_insn instruction(int code, Register to, int offset, int value) {
  bpf_insn made{};
  made.code = static_cast<__u8>(code);
  made.dst_reg = to;
  made.off = static_cast<__s16>(offset);
  made.imm = value;
  return made;
}

class Assembler {
 public:
  void load(Register to, std::size_t offset) {
    bpf_insn made = instruction(BPF_LDX | BPF_MEM | BPF_W, to, static_cast<int>(offset), 0);
    made.src_reg = kContext;
    out_.push_back(made);
  }
  void copy(Register to, Register from) {
    bpf_insn made = instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, 0, 0);
    made.src_reg = from;
    out_.push_back(made);
  }
  void mask(Register to, int bits) {
    out_.push_back(instruction(BPF_ALU64 | BPF_AND | BPF_K, to, 0, bits));
  }
  void shift_right(Register to, int bits) {
    out_.push_back(instruction(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, bits));
  }
  void skip_if_equal(Register what, int value, std::size_t instructions) {
    out_.push_back(
        instruction(BPF_JMP | BPF_JEQ | BPF_K, what, static_cast<int>(instructions), value));
  }
  void skip_unless_equal(Register what, std::uint32_t value, std::size_t instructions) {
    out_.push_back(instruction(BPF_JMP | BPF_JNE | BPF_K, what, static_cast<int>(instructions),
                               static_cast<int>(value)));
  }
  void verdict(int value) {
    out_.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, kVerdict, 0, value));
    out_.push_back(instruction(BPF_JMP | BPF_EXIT, kVerdict, 0, 0));
  }
  void allow_device(DeviceNumber device) {
    skip_unless_equal(kMajor, device.major, kVerdictSize + 1);
    skip_unless_equal(kMinor, device.minor, kVerdictSize);
    verdict(kAllow);
  }
  void refuse_major(std::uint32_t major) {
    skip_unless_equal(kMajor, major, kVerdictSize);
    verdict(kRefuse);
  }
  std::vector<bpf_insn> take() { return std::move(out_); }

 private:
  std::vector<bpf_insn> out_;
};

int call_bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

template <class T>
__u64 address(const T* pointer) {
  return reinterpret_cast<__u64>(pointer);
}

constexpr std::size_t kMaxLoaded = 64;

int load_into_kernel(const std::vector<bpf_insn>& program) {
  constexpr char kName[] = "gp_devices";
  constexpr char kLicense[] = "";  // it calls nothing of the kernel's
  bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = address(program.data());
  attributes.insn_cnt = static_cast<__u32>(program.size());
  attributes.license = address(kLicense);
  memcpy(attributes.prog_name, kName, sizeof kName);
  return call_bpf(BPF_PROG_LOAD, attributes);
}

std::string call_failed(const char* what) {
  return std::string(what) + " the device program: " + strerror(errno);
}

}  // namespace

std::vector<bpf_insn> assemble(const DeviceRules& rules) {
  Assembler out;
  out.load(kAccess, offsetof(bpf_cgroup_dev_ctx, access_type));
  out.copy(kType, kAccess);
  out.mask(kType, (1 << kTypeBits) - 1);
  out.shift_right(kAccess, kTypeBits);
  out.load(kMajor, offsetof(bpf_cgroup_dev_ctx, major));
  out.load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor));

  out.skip_if_equal(kType, BPF_DEVCG_DEV_CHAR, kVerdictSize);
  out.verdict(kRefuse);

  constexpr std::size_t kMknodSize = 2 + 2 * kVerdictSize;
  out.mask(kAccess, BPF_DEVCG_ACC_MKNOD);
  out.skip_if_equal(kAccess, 0, kMknodSize);
  out.allow_device({0, 0});
  out.verdict(kRefuse);

  for (const DeviceNumber device : rules.allowed) out.allow_device(device);
  for (const std::uint32_t major : rules.guarded) out.refuse_major(major);
  out.verdict(kAllow);
  return out.take();
}

int DevicePrograms::load(const DeviceRules& rules, std::string& why) {
  for (const Loaded& one : loaded_) {
    if (one.rules == rules) return one.program;
  }
  const int program = load_into_kernel(assemble(rules));
  if (program < 0) {
    why = call_failed("load");
    return -1;
  }
  if (loaded_.size() == kMaxLoaded) {
    for (const Loaded& one : loaded_)
      close(one.program);  // those in use live on with their cgroups
    loaded_.clear();
  }
  loaded_.push_back({rules, program});
  return program;
}

std::string attach_device_program(int cgroup_fd, int program) {
  bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.target_fd = static_cast<__u32>(cgroup_fd);
  attributes.attach_bpf_fd = static_cast<__u32>(program);
  attributes.attach_type = BPF_CGROUP_DEVICE;
  // Not a link, which would end with us; beside programs of others, not instead of them.
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  return call_bpf(BPF_PROG_ATTACH, attributes) == 0 ? std::string() : call_failed("attach");
}

}  // namespace gpu_platform::node
