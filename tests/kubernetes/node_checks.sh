# What checks.sh finds on nodes that kwok plays, on a real kubelet. Sourced by scripts/check_kubelet after checks.sh.

# make_shell_pod NAME SCRIPT [JQ-FILTER]: runs the script in the node's image.
make_shell_pod() {
  local filter
  filter=$(jq -rn --arg image "$node_image" --arg script "$2" \
    '".spec.containers[0] += {image: \($image | tojson), command: [\"sh\", \"-c\", \($script | tojson)]}"')
  send platform POST "$pods" "$(pod_of "$1" "$filter | ${3:-.}")" >/dev/null
}

log_of() { api platform GET "$pods/$1/log" 2>/dev/null; }

check_real_ends() {
  make_shell_pod well 'echo all is well'
  make_shell_pod three 'echo not well >&2; exit 3'
  make_shell_pod memory 'tail /dev/zero' '.spec.containers[0].resources.limits = {memory: "32Mi"}'
  make_shell_pod image 'true' '.spec.containers[0] += {image: "gpu-platform.test/absent:1", imagePullPolicy: "Never"}'
  expect_value "a container ends well" "$pods/well" "$phase_and_end" "Succeeded 0 Completed"
  expect "and its output arrives" "all is well" "$(log_of well)"
  expect_value "a container ends with its exit code" "$pods/three" "$phase_and_end" "Failed 3 Error"
  expect "and what it wrote to its standard error arrives" "not well" "$(log_of three)"
  expect_value "one that takes too much memory says so" "$pods/memory" "$phase_and_end" "Failed 137 OOMKilled"
  expect_value "one without an image waits" "$pods/image" .status.containerStatuses[0].state.waiting.reason ErrImageNeverPull
}

check_real_device() {
  local uuid
  uuid=$(value_of "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName=$node_name" \
    '.items[0].spec.devices[] | select(.name == "gpu-2").attributes.uuid.string')
  make_shell_pod pinned 'env | grep GPU_PLATFORM_TEST_GPU' '.spec.schedulingGates = [{name: "gpu-platform/admission"}]
    | .spec.resourceClaims = [{name: "gpus", resourceClaimName: "pinned"}]
    | .spec.containers[0].resources.claims = [{name: "gpus"}]'
  send platform POST "$claims" "$(claim_of pinned "$uuid")" >/dev/null
  send platform PATCH "$pods/pinned" '{"spec":{"schedulingGates":null}}' application/merge-patch+json >/dev/null
  expect_value "a pod with a pinned claim runs and ends" "$pods/pinned" .status.phase Succeeded
  expect "exactly its device is in the container" "GPU_PLATFORM_TEST_GPU_2=$uuid" "$(log_of pinned)"
  until_true 30 is_value "$claims/pinned" '.status.allocation // "none"' none || true
  expect "and is free again after the end" none "$(value_of "$claims/pinned" '.status.allocation // "none"')"
}

check_real_deletion() {
  local finalizer='.metadata.finalizers = ["gpu-platform/attempt"]'
  make_shell_pod kept 'trap "exit 5" TERM; while :; do sleep 0.1; done' "$finalizer"
  make_shell_pod stubborn 'trap "" TERM; while :; do sleep 0.1; done' "$finalizer"
  expect_value "a pod with a finalizer runs" "$pods/kept" .status.phase Running
  expect_value "so does one that ignores SIGTERM" "$pods/stubborn" .status.phase Running
  expect "a command runs in a container" "in the container" "$(output_of_exec kept echo in the container | grep -o 'in the container')"
  api platform DELETE "$pods/kept" >/dev/null
  api platform DELETE "$pods/stubborn" >/dev/null
  expect_value "a deleted pod is ended by SIGTERM" "$pods/kept" "$phase_and_end" "Failed 5 Error"
  expect_value "and stays, without a grace period, for its finalizer" "$pods/kept" '"\(.metadata.deletionGracePeriodSeconds)"' 0
  send platform PATCH "$pods/kept" '{"metadata":{"finalizers":null}}' application/merge-patch+json >/dev/null
  if until_true 30 is_gone "$pods/kept"; then right "it is gone without it"; else fail "it stays without a finalizer"; fi
  expect_value "one that ignores SIGTERM is killed at the end of its grace period" "$pods/stubborn" "$phase_and_end" "Failed 137 Error"
}

run_node_checks() {
  check_real_ends
  check_real_device
  check_real_deletion
  (( failures == 0 ))
}
