#include <array>

#include "health/rule_table.h"

namespace gpu_platform::health {

namespace {

using enum FaultClass;
using enum RuleMode;

// The conditions of nodes that health tools publish, by their names in lower case, and some by
// their reasons, too. A condition says nothing of which GPU it is, so no row asks for a reset. What
// is no fault of a GPU, or hits programs of one kind only, does not drain a node.
// A row is two lines: clang-format would make it ten.
// clang-format off
const auto kPublished = std::to_array<Rule>({
    // Kubernetes' own word on a device: the pod's allocatedResourcesStatus.
    {"condition-devicehealth", 0, "its driver calls it unhealthy", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "KEP-4680; NVIDIA's plugin does not count the XIDs of programs", {}},
    // Azure: AKS' node problem detector.
    {"condition-gpumissing", 0, "fewer GPUs than its machine has", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "AKS: GPU health monitoring", {}},
    {"condition-nvlinkstatusinactive", 0, "NVLinks are inactive", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "AKS: GPU health monitoring", {}},
    {"condition-xiderrors", 0, "XIDs in its kernel log", kUnknown, Action::kDegrade, Repeat::kNever, Action::kDegrade, 55, false, kExecute,
     "AKS: GPU health monitoring; it stands for XIDs of programs (69), too", {}},
    {"condition-iblinkflapping", 0, "InfiniBand links come and go", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 75, false, kExecute,
     "AKS: GPU health monitoring; programs on one node do not notice", {}},
    {"condition-gpuclockthrottling", 0, "the clocks are held down", kHardware, Action::kAvoid, Repeat::kNever, Action::kDegrade, 70, false, kExecute,
     "AKS: GPU health monitoring; it ends by itself", {}},
    {"condition-unhealthynvidiadeviceplugin", 0, "its device plugin does not answer", kDriver, Action::kAvoid, Repeat::kNever, Action::kDegrade, 60, false, kExecute,
     "AKS: managed GPU nodes; pods would not start", {}},
    {"condition-unhealthynvidiadcgmservices", 0, "DCGM does not run", kSymptom, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "AKS: managed GPU nodes; it measures, and runs nothing", {}},
    {"condition-vmeventscheduled", 0, "its cloud has announced an event", kSymptom, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "AKS: node problem detector; most of them last seconds", {}},
    // Amazon: EKS' node monitoring agent. These are bad when they are False.
    {"condition-acceleratedhardwareready", 0, "its accelerators are not ready", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "EKS: node monitoring agent; only what asks for a repair is a condition", {}},
    {"condition-acceleratedhardwareready-dcgmerror", 0, "DCGM does not answer", kSymptom, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "EKS: node monitoring agent; so it is on a node without DCGM, too", {}},
    {"condition-kernelready", 0, "its kernel is not in order", kUnknown, Action::kAvoid, Repeat::kNever, Action::kDegrade, 50, false, kExecute,
     "EKS: node monitoring agent; Karpenter replaces the node", {}},
    {"condition-networkingready", 0, "its network is not in order", kUnknown, Action::kAvoid, Repeat::kNever, Action::kDegrade, 50, false, kExecute,
     "EKS: node monitoring agent; Karpenter replaces the node", {}},
    {"condition-storageready", 0, "its storage is not in order", kUnknown, Action::kAvoid, Repeat::kNever, Action::kDegrade, 50, false, kExecute,
     "EKS: node monitoring agent; Karpenter replaces the node", {}},
    {"condition-containerruntimeready", 0, "its container engine is not in order", kUnknown, Action::kAvoid, Repeat::kNever, Action::kDegrade, 50, false, kExecute,
     "EKS: node monitoring agent; Karpenter replaces the node", {}},
    // NVSentinel. Only what it calls fatal is a condition.
    {"condition-gpumemwatch", 0, "memory of its GPUs", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 90, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpuinforomwatch", 0, "corrupt InfoROM", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpusmwatch", 0, "multiprocessors of its GPUs", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpunvlinkwatch", 0, "NVLinks", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpumcuwatch", 0, "micro-controllers of its GPUs", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpupmuwatch", 0, "power management of its GPUs", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpudriverwatch", 0, "driver of its GPUs", kDriver, Action::kDrain, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpupciewatch", 0, "PCIe links of its GPUs", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 75, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpupowerwatch", 0, "power of its GPUs", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 70, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gputhermalwatch", 0, "heat", kHardware, Action::kAvoid, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "NVSentinel: GPU health monitor; it ends by itself", {}},
    {"condition-gpucpusetwatch", 0, "CPUs of its GPUs", kSymptom, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "NVSentinel: GPU health monitor", {}},
    {"condition-gpudcgmconnectivityfailure", 0, "DCGM does not answer", kSymptom, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "NVSentinel: GPU health monitor; it measures, and runs nothing", {}},
    {"condition-syslogsxiderror", 0, "XIDs that NVSentinel calls fatal", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "NVSentinel: syslog health monitor", {}},
    {"condition-syslogssxiderror", 0, "errors of an NVSwitch", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "NVSentinel: syslog health monitor", {}},
    {"condition-syslogsgpufallenoff", 0, "a GPU fell off the bus", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 95, false, kExecute,
     "NVSentinel: syslog health monitor", {}},
    // Oracle: OKE's checks for the node problem detector.
    {"condition-gpucount", 0, "fewer GPUs than its machine has", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpuecc", 0, "memory errors of its GPUs", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpurowremap", 0, "memory rows could not be remapped", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 90, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpubus", 0, "a GPU fell off the bus", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 95, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpupcie", 0, "PCIe links of its GPUs", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 75, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpufabricmanager", 0, "its fabric manager does not run", kDriver, Action::kDrain, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpufabricmgr", 0, "its fabric manager does not run", kDriver, Action::kDrain, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpuimex", 0, "its IMEX service does not run", kDriver, Action::kDrain, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-gpuxid", 0, "XIDs in its kernel log", kUnknown, Action::kDegrade, Repeat::kNever, Action::kDegrade, 55, false, kExecute,
     "OKE: oci-hpc-oke; it stands for XIDs of programs, too", {}},
    {"condition-nvlinkspeed", 0, "NVLinks are slower or fewer", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 75, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-dcgmihealth", 0, "DCGM's health check found something", kUnknown, Action::kDegrade, Repeat::kNever, Action::kDegrade, 60, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    {"condition-rdmalink", 0, "an RDMA link is down", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 75, false, kExecute,
     "OKE: oci-hpc-oke; programs on one node do not notice", {}},
    {"condition-rdmalinkflapping", 0, "RDMA links come and go", kHardware, Action::kDegrade, Repeat::kNever, Action::kDegrade, 75, false, kExecute,
     "OKE: oci-hpc-oke; programs on one node do not notice", {}},
    {"condition-rdmawpaauth", 0, "an RDMA link is not admitted", kUnknown, Action::kDegrade, Repeat::kNever, Action::kDegrade, 60, false, kExecute,
     "OKE: oci-hpc-oke; programs on one node do not notice", {}},
    {"condition-rdmarttcc", 0, "congestion control of RDMA", kSymptom, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "OKE: oci-hpc-oke, node problem detector", {}},
    // Alibaba: ACK's node problem detector. Its NvidiaXID74Error and the like use the rules of XIDs.
    {"condition-nvidiadevicelost", 0, "a GPU fell off the bus", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 95, false, kExecute,
     "ACK: hardware repair", {}},
    {"condition-nvidiaremappingrowsfailed", 0, "memory rows could not be remapped", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 90, false, kExecute,
     "ACK: hardware repair", {}},
    {"condition-nvidiaremappingrowsrequirereset", 0, "remaps of memory rows are pending", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "ACK: restart of the node", {}},
    {"condition-nvidiapendingretiredpages", 0, "retirements of memory pages are pending", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "ACK: restart of the node", {}},
    {"condition-nvidiainforomcorrupted", 0, "corrupt InfoROM", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "ACK: hardware repair", {}},
    {"condition-nvidiapowercableerr", 0, "power is missing", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 90, false, kExecute,
     "ACK: hardware repair", {}},
    // Others.
    {"condition-nebiusgpuerror", 0, "a check of its GPUs failed", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 80, false, kExecute,
     "Nebius: health checks; it cordons and restarts the node", {}},
    {"condition-cperhardwareerrorfatal", 0, "its firmware reports a fatal error", kHardware, Action::kDrain, Repeat::kNever, Action::kDegrade, 85, false, kExecute,
     "node-problem-detector: kernel monitor", {}},
    {"condition-unknown", 0, "a condition that no list knows", kUnknown, Action::kCount, Repeat::kNever, Action::kDegrade, 30, false, kExecute,
     "neither fatal nor fine without a word: for the operator", {}},
});
// clang-format on

}  // namespace

std::span<const Rule> published_rows() {
  return kPublished;
}

}  // namespace gpu_platform::health
