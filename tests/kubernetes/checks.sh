# What the platform relies on in Kubernetes, checked on a cluster of cluster.sh. Sourced by scripts/check_kubernetes.
# Each check prints lines "right: …" and "WRONG: …".

failures=0

right() { say "right: $*"; }
# A check goes on after what is wrong, so that one run shows all of it.
fail() { say "WRONG: $*"; failures=$((failures + 1)); }

# expect CLAIM WANTED ACTUAL
expect() {
  if [[ $2 == "$3" ]]; then right "$1"; else fail "$1: wanted '$2', got '$3'"; fi
}

# The status code of a call: USER METHOD PATH [BODY [TYPE]].
status_of() {
  call "$1" "$2" "$3" -o /dev/null -w '%{http_code}' -H "Content-Type: ${5:-application/json}" --data-binary "${4:-}"
}

# ---- Objects that the checks make, in the namespace "default" ----

pods=/api/v1/namespaces/default/pods
claims=/apis/resource.k8s.io/v1/namespaces/default/resourceclaims

# pod_of NAME [JQ-FILTER]: a pod as the platform's, changed by the filter.
pod_of() {
  jq -cn --arg name "$1" '{
    apiVersion: "v1", kind: "Pod",
    metadata: {name: $name, namespace: "default", annotations: {}},
    spec: {
      restartPolicy: "Never", automountServiceAccountToken: false, terminationGracePeriodSeconds: 2,
      containers: [{name: "job", image: "example.org/job:1"}]
    }
  }' | jq -c "${2:-.}"
}

# claim_of NAME UUID: for exactly this device.
claim_of() {
  jq -cn --arg name "$1" --arg uuid "$2" '{
    apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: {name: $name, namespace: "default"},
    spec: {devices: {requests: [{name: "gpu", exactly: {deviceClassName: "gpu.nvidia.com", selectors: [
      {cel: {expression: "device.attributes[\"gpu.nvidia.com\"].uuid == \"\($uuid)\""}}]}}]}}
  }'
}

make_pod() { send platform POST "$pods" "$(pod_of "$@")" >/dev/null; }

# value_of PATH JQ-FILTER: of an object, empty while it has none.
value_of() { (api admin GET "$1" | jq -r "$2 // empty") 2>/dev/null; }
is_value() { [[ $(value_of "$1" "$2") == "$3" ]]; }
is_gone() { [[ $(status_of admin GET "$1") == 404 ]]; }

# expect_value CLAIM PATH JQ-FILTER WANTED: within half a minute.
expect_value() {
  until_true 30 is_value "$2" "$3" "$4" || true
  expect "$1" "$4" "$(value_of "$2" "$3")"
}

# output_of_exec POD WORD...: what the command prints, without the frames of the WebSocket around it.
output_of_exec() {
  local query="stdout=true" word
  for word in "${@:2}"; do query+="&command=$word"; done
  call platform GET "$pods/$1/exec?$query" --http1.1 --no-buffer --max-time 10 -H "Connection: Upgrade" \
    -H "Upgrade: websocket" -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Protocol: v4.channel.k8s.io" \
    -H "Sec-WebSocket-Key: $(openssl rand -base64 16)" 2>/dev/null | tr -cd '[:print:]\n'
}

phase_and_end='"\(.status.phase) \(.status.containerStatuses[0].state.terminated | "\(.exitCode) \(.reason)")"'

# ---- The checks ----

check_nodes() {
  objects nodes node 2 | put admin
  expect_value "a node of kwok is ready" /api/v1/nodes/node-1 '.status.conditions[] | select(.type == "Ready").status' True
  expect_value "and nothing keeps pods away from it" /api/v1/nodes/node-1 '.spec.taints | length' 0
}

# The rules that a user has, a line "GROUP/RESOURCE VERB…" for each resource. Rules that every user has are left out.
rights_of() {  # USER NAMESPACE [CURL-ARGUMENT...]
  api "$1" POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews "${@:3}" -H "Content-Type: application/json" \
    -d "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectRulesReview\",\"spec\":{\"namespace\":\"$2\"}}" |
    jq -r '[.status.resourceRules[] | select(.apiGroups | any(IN("authorization.k8s.io", "authentication.k8s.io")) | not)
            | {key: "\(.apiGroups[])/\(.resources[])", verbs}]
      | group_by(.key)[] | "\(.[0].key) \(map(.verbs[]) | unique | join(" "))"'
}

# In any namespace.
reader_rights="/nodes get list watch
/pods get list watch
resource.k8s.io/deviceclasses get list watch
resource.k8s.io/devicetaintrules get list watch
resource.k8s.io/resourceclaims get list watch
resource.k8s.io/resourceslices get list watch"

# In a namespace of jobs.
decider_rights="/nodes get list watch
/pods create delete get list patch watch
/pods/attach create get
/pods/exec create get
/pods/log get
/pods/portforward create get
/services create
resource.k8s.io/deviceclasses get list watch
resource.k8s.io/devicetaintrules get list watch
resource.k8s.io/resourceclaims create delete get list watch
resource.k8s.io/resourceslices get list watch"

allocator_rights="/nodes get list watch
/pods create delete get list patch watch
/pods/attach create get
/pods/binding create
/pods/exec create get
/pods/log get
/pods/portforward create get
/services create
resource.k8s.io/deviceclasses get list watch
resource.k8s.io/devicetaintrules get list watch
resource.k8s.io/resourceclaims create delete get list patch update watch
resource.k8s.io/resourceclaims/binding patch update
resource.k8s.io/resourceclaims/status patch update
resource.k8s.io/resourceslices get list watch"

# In a namespace whose workloads are admitted.
admitter_rights="/events create
/namespaces list watch
/nodes get list watch
/pods delete get list patch watch
/pods/status patch
batch/jobs get
jobset.x-k8s.io/jobsets get
kubeflow.org/jaxjobs get
kubeflow.org/mpijobs get
kubeflow.org/paddlejobs get
kubeflow.org/pytorchjobs get
kubeflow.org/tfjobs get
kubeflow.org/xgboostjobs get
ray.io/rayclusters get
resource.k8s.io/deviceclasses get list watch
resource.k8s.io/devicetaintrules get list watch
resource.k8s.io/resourceclaims create delete get list watch
resource.k8s.io/resourceslices get list watch"

check_rights() {
  expect "the platform has exactly the rights that deciding takes" "$decider_rights" "$(rights_of platform default)"
  expect "and reads in all other namespaces" "$reader_rights" "$(rights_of platform kube-system)"
  expect "and leases in its own namespace alone" "coordination.k8s.io/leases create get update" \
    "$(rights_of platform "$platform_namespace" | grep leases)"
}

binding_of() {  # POD NODE
  jq -cn --arg pod "$1" --arg node "$2" \
    '{apiVersion: "v1", kind: "Binding", metadata: {name: $pod}, target: {apiVersion: "v1", kind: "Node", name: $node}}'
}

# Runs last of all that concerns rights: it adds a role.
check_rights_to_allocate() {
  make_pod by-us '.spec.schedulerName = "gpu-platform"'
  expect "without the second role the platform binds no pod" 403 \
    "$(status_of platform POST "$pods/by-us/binding" "$(binding_of by-us node-0)")"
  expect "and allocates no device" 403 "$(status_of platform PATCH "$claims/pinned/status" '{"status":{}}' application/merge-patch+json)"
  expect "and secrets are out of its sight" 403 "$(status_of platform GET /api/v1/namespaces/default/secrets)"
  objects access-allocate default | put admin
  until_true 10 eval '[[ $(rights_of platform default) == "$allocator_rights" ]]' || true
  expect "with the second role it has exactly those that allocating takes" "$allocator_rights" "$(rights_of platform default)"
  expect "and binds a pod" 201 "$(status_of platform POST "$pods/by-us/binding" "$(binding_of by-us node-0)")"
  expect_value "which then runs on that node" "$pods/by-us" '"\(.status.phase) \(.spec.nodeName)"' "Running node-0"
}

# allocation_of POD UID: the status of a claim that the platform allocates itself: gpu-3 of node-0, for this pod.
allocation_of() {
  jq -cn --arg pod "$1" --arg uid "$2" '{status: {
    allocation: {
      devices: {results: [{request: "gpu", driver: "gpu.nvidia.com", pool: "node-0", device: "gpu-3"}]},
      nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: "metadata.name", operator: "In", values: ["node-0"]}]}]}
    },
    reservedFor: [{resource: "pods", name: $pod, uid: $uid}]}}'
}

# After check_rights_to_allocate.
check_own_allocation() {
  local uuid merge=application/merge-patch+json keeper='{"metadata":{"finalizers":["resource.kubernetes.io/delete-protection"]}}'
  uuid=$(value_of /apis/resource.k8s.io/v1/resourceslices/node-0-gpu.nvidia.com '.spec.devices[3].attributes.uuid.string')
  make_pod owned '.spec.schedulerName = "gpu-platform" | .spec.resourceClaims = [{name: "gpus", resourceClaimName: "owned"}]
    | .spec.containers[0].resources.claims = [{name: "gpus"}]'
  send platform POST "$claims" "$(claim_of owned "$uuid")" >/dev/null
  expect "the platform protects its claim" 200 "$(status_of platform PATCH "$claims/owned" "$keeper" "$merge")"
  expect "and allocates and reserves it" 200 "$(status_of platform PATCH "$claims/owned/status" \
    "$(allocation_of owned "$(value_of "$pods/owned" .metadata.uid)")" "$merge")"
  expect "and binds its pod" 201 "$(status_of platform POST "$pods/owned/binding" "$(binding_of owned node-0)")"
  expect_value "which then runs" "$pods/owned" .status.phase Running
  api platform DELETE "$pods/owned" >/dev/null
  until_true 30 is_value "$claims/owned" '.status.allocation // "none"' none || true
  expect "the device is free again without our help" none "$(value_of "$claims/owned" '.status.allocation // "none"')"
}

check_pinned_claim() {
  local uuid
  uuid=$(value_of /apis/resource.k8s.io/v1/resourceslices/node-1-gpu.nvidia.com '.spec.devices[5].attributes.uuid.string')
  make_pod pinned '.spec.schedulingGates = [{name: "gpu-platform/admission"}]
    | .spec.resourceClaims = [{name: "gpus", resourceClaimName: "pinned"}]
    | .spec.containers[0].resources.claims = [{name: "gpus"}]'
  expect_value "a gated pod waits" "$pods/pinned" '.status.conditions[0].reason' SchedulingGated
  send platform POST "$claims" "$(claim_of pinned "$uuid")" >/dev/null
  send platform PATCH "$pods/pinned" '{"spec":{"schedulingGates":null}}' application/merge-patch+json >/dev/null
  expect_value "without its gate it runs on the node of its device" "$pods/pinned" '"\(.status.phase) \(.spec.nodeName)"' "Running node-1"
  expect "a pinned claim gets exactly its device" "gpu.nvidia.com node-1 gpu-5" \
    "$(value_of "$claims/pinned" '.status.allocation.devices.results[] | "\(.driver) \(.pool) \(.device)"')"
  make_pod second '.spec.resourceClaims = [{name: "gpus", resourceClaimName: "second"}]
    | .spec.containers[0].resources.claims = [{name: "gpus"}]'
  send platform POST "$claims" "$(claim_of second "$uuid")" >/dev/null
  expect_value "a second claim for it waits" "$pods/second" '.status.conditions[0].reason' Unschedulable
  api platform DELETE "$pods/pinned" >/dev/null
  expect_value "and gets it when the first pod is gone" "$pods/second" .status.phase Running
}

check_ends() {
  make_pod well '.metadata.annotations = {"gpu-platform.test/run-seconds": "0"}'
  make_pod three '.metadata.annotations = {"gpu-platform.test/run-seconds": "1", "gpu-platform.test/exit-code": "3"}'
  make_pod memory '.spec.containers[0].env = [{name: "GPU_PLATFORM_TEST_RUN_SECONDS", value: "1"},
    {name: "GPU_PLATFORM_TEST_EXIT_CODE", value: "137"}, {name: "GPU_PLATFORM_TEST_REASON", value: "OOMKilled"}]'
  make_pod image '.metadata.annotations = {"gpu-platform.test/waiting": "ImagePullBackOff"}'
  make_pod stays .
  expect_value "a pod ends well" "$pods/well" "$phase_and_end" "Succeeded 0 Completed"
  expect_value "a pod ends with the exit code of its annotation" "$pods/three" "$phase_and_end" "Failed 3 Error"
  expect_value "and with that of its environment" "$pods/memory" "$phase_and_end" "Failed 137 OOMKilled"
  expect_value "a pod waits for its image" "$pods/image" .status.containerStatuses[0].state.waiting.reason ImagePullBackOff
  expect_value "a pod without an annotation runs" "$pods/stays" .status.phase Running
  expect "the output of a container arrives" "the output of a container" "$(api platform GET "$pods/stays/log")"
  (( EUID != 0 )) || expect "and a command in it runs, as nobody" "uid=65534" "$(output_of_exec stays id | grep -o 'uid=65534')"
}

check_deletion() {
  make_pod kept '.metadata.finalizers = ["gpu-platform/attempt"]'
  make_pod stubborn '.metadata.finalizers = ["gpu-platform/attempt"] | .metadata.annotations = {"gpu-platform.test/ignores-term": "true"}'
  expect_value "a pod with a finalizer runs" "$pods/kept" .status.phase Running
  expect_value "so does one that ignores SIGTERM" "$pods/stubborn" .status.phase Running
  api platform DELETE "$pods/kept" >/dev/null
  api platform DELETE "$pods/stubborn" >/dev/null
  expect_value "a deleted pod is ended by SIGTERM" "$pods/kept" "$phase_and_end" "Failed 143 Error"
  expect_value "and stays, without a grace period, for its finalizer" "$pods/kept" '"\(.metadata.deletionGracePeriodSeconds)"' 0
  send platform PATCH "$pods/kept" '{"metadata":{"finalizers":null}}' application/merge-patch+json >/dev/null
  if until_true 30 is_gone "$pods/kept"; then right "it is gone without it"; else fail "it stays without a finalizer"; fi
  expect_value "one that ignores SIGTERM is killed at the end of its grace period" "$pods/stubborn" "$phase_and_end" "Failed 137 Error"
  api platform DELETE "$pods/stays" >/dev/null
  if until_true 30 is_gone "$pods/stays"; then right "a deleted pod goes"; else fail "a deleted pod stays"; fi
}

# Helm on the admin's behalf, with its files in the cluster's folder.
helm() {
  HELM_CONFIG_HOME=$cluster/helm HELM_CACHE_HOME=$cluster/helm HELM_DATA_HOME=$cluster/helm KUBECONFIG=$cluster/admin.kubeconfig \
    "$kubernetes_programs/helm" "$@" >>"$cluster/log/helm" 2>&1
}

rights_of_service_account() {
  rights_of admin "${1:-gpu-platform-jobs}" -H "Impersonate-User: system:serviceaccount:$platform_namespace:gpu-platform"
}

# The status of a pod that the chart's service account, or the admin, makes in the namespace of jobs; it is not made.
pod_of_chart() {  # JQ-FILTER [CURL-ARGUMENT...]
  call admin POST "/api/v1/namespaces/gpu-platform-jobs/pods?dryRun=All" "${@:2}" -o /dev/null -w '%{http_code}' \
    -H 'Content-Type: application/json' -d "$(platform_pod gp-lab-1-1-0 ".metadata.namespace = \"gpu-platform-jobs\" | $1")"
}
as_service_account=(-H "Impersonate-User: system:serviceaccount:$platform_namespace:gpu-platform")
refuses_labels() { [[ $(pod_of_chart .) == 422 ]]; }
refuses_privileges() {
  [[ $(pod_of_chart '.spec.containers[0].securityContext.privileged = true' "${as_service_account[@]}") == 422 ]]
}

annotation='.metadata.annotations["example.org/share"] = "1"'
takes_annotation() { [[ $(pod_of_chart "$annotation" "${as_service_account[@]}") == 201 ]]; }

# What the chart makes for the Prometheus operator and Grafana, which the cluster does not have.
monitoring_of_chart() {  # CHART
  "$kubernetes_programs/helm" template pool "$1" --show-only templates/monitoring.yaml --set api.tlsSecret=tls \
    --set monitoring.serviceMonitor.enabled=true,monitoring.serviceMonitor.tokenSecret=viewer \
    --set monitoring.rules=true,monitoring.dashboards=true 2>>"$cluster/log/helm"
}
count_alerts() { grep -c '^ *- alert: '; }

check_chart() {
  local chart=$ROOT/deploy/helm/gpu-platform
  local options=(--namespace "$platform_namespace" --set journal.storageClassName=- --set api.tlsSecret=tls)
  expect "the chart is of the program's version" "$(sed -n 's/^project(.* VERSION \([^ ]*\).*/\1/p' "$ROOT/CMakeLists.txt")" \
    "$(sed -n 's/^appVersion: "\(.*\)"/\1/p' "$chart/Chart.yaml")"
  expect "it makes a ServiceMonitor, rules and dashboards" "ConfigMap PrometheusRule ServiceMonitor" \
    "$(monitoring_of_chart "$chart" | sed -n 's/^kind: //p' | sort | paste -sd' ')"
  expect "and its rules have all alerts" "$(count_alerts <"$ROOT/deploy/prometheus/alert.rules.yaml")" \
    "$(monitoring_of_chart "$chart" | count_alerts)"
  expect "and its ConfigMap all dashboards" "$(find "$ROOT/deploy/grafana" -name '*.json' -printf 'gpu-platform-%f\n' | sort)" \
    "$(monitoring_of_chart "$chart" | sed -n 's/^  \(gpu-platform-.*json\): |$/\1/p' | sort)"
  objects volume journal | put admin
  objects plain gpu-platform-jobs | put admin
  objects plain ml | put admin
  if helm lint --strict "$chart"; then right "Helm has no advice about the chart"; else fail "Helm has advice about the chart"; fi
  # The roles are there already: the test's user has them, too.
  if helm install pool "$chart" "${options[@]}" --take-ownership --wait --timeout 60s; then
    right "the chart runs in a namespace that admits restricted pods alone, with its journal on a volume"
  else
    fail "the chart does not come up"
  fi
  expect "its jobs run in this cluster" "in_cluster: true" \
    "$(value_of "/api/v1/namespaces/$platform_namespace/configmaps/pool-config" '.data["config.yaml"]' | grep -o 'in_cluster: .*')"
  expect "its service account has the rights that deciding takes" "$decider_rights" "$(rights_of_service_account)"
  expect "and reads in the namespaces that it is not given" "$reader_rights" "$(rights_of_service_account kube-system)"
  expect "and leases in its namespace" "coordination.k8s.io/leases create get update" \
    "$(rights_of_service_account "$platform_namespace" | grep leases)"
  until_true 30 refuses_privileges || true
  expect "its policies refuse a privileged pod of its account" 422 \
    "$(pod_of_chart '.spec.containers[0].securityContext.privileged = true' "${as_service_account[@]}")"
  expect "and take one of a job" 201 "$(pod_of_chart . "${as_service_account[@]}")"
  expect "but not with an annotation that the site does not name" 422 \
    "$(pod_of_chart "$annotation" "${as_service_account[@]}")"
  until_true 30 refuses_labels || true
  expect "but not from others: the labels are its own" 422 "$(pod_of_chart .)"
  helm upgrade pool "$chart" "${options[@]}" --set rbac.allocate=true --set config.scheduling.max_queue_size=7 \
    --set 'admission.annotations={example.org/}' --wait --timeout 60s || fail "the chart does not upgrade"
  if until_true 30 takes_annotation; then right "with admission.annotations it takes one of these"; else fail "it does not take an annotation that is named"; fi
  expect "with rbac.allocate it has those that allocating takes" "$allocator_rights" "$(rights_of_service_account)"
  helm upgrade pool "$chart" "${options[@]}" --set rbac.workloads=true --set rbac.queueNamespaces='{ml}' --set admission.policies=true \
    --set config.scheduling.max_queue_size=7 --wait --timeout 60s || fail "the chart does not upgrade again"
  expect "with rbac.workloads it has those that admitting workloads takes" "$admitter_rights" "$(rights_of_service_account ml)"
  expect "a value of config arrives in the file" "  max_queue_size: 7" \
    "$(value_of "/api/v1/namespaces/$platform_namespace/configmaps/pool-config" '.data["config.yaml"]' | grep max_queue)"
}

run_checks() {
  check_nodes
  check_rights
  check_ends
  check_pinned_claim
  check_deletion
  check_rights_to_allocate
  check_own_allocation
  check_chart
  check_admission
  (( failures == 0 ))
}
