# The policies of deploy/kubernetes on a real API server: the ways to ask for a GPU in a namespace with a queue, and what
# the platform's own account may do with its rights. Sourced by scripts/check_kubernetes after checks.sh. Nothing is made
# where a server only has to say what it would do.

# ---- What a user asks ----

queued=/api/v1/namespaces/ml/pods

# said_of USER METHOD PATH BODY [TYPE] [CURL-ARGUMENT...]: "made", "gated", or why not.
said_of() {
  call "$1" "$2" "$3" -H "Content-Type: ${5:-application/json}" -d "$4" "${@:6}" | jq -r '
    if .kind == "Status" and .status != "Success" then .message
    elif .spec.schedulingGates? // [] | any(.name == "gpu-platform/admission") then "gated" else "made" end'
}

# expect_said CLAIM WANTED SAID: all of it, or a part in '…'.
expect_part() {
  case $2 in
    made | gated) expect "$1" "$2" "$3" ;;
    *) if [[ $3 == *"$2"* ]]; then right "$1"; else fail "$1: wanted '…$2…', got '$3'"; fi ;;
  esac
}

outcome() { case $1 in made | gated) echo "$1" ;; *) echo "refused" ;; esac; }

# their_pod JQ-FILTER: a pod as a user writes it.
their_pod() {
  jq -cn '{apiVersion: "v1", kind: "Pod", metadata: {name: "asks", namespace: "ml"},
    spec: {containers: [{name: "a", image: "example.org/a:1"}]}}' | jq -c "def gpu(\$n): {limits: {(\$n): \"1\"}}; $1"
}

# asks WANTED JQ-FILTER WAY...
asks() {
  expect_part "a pod that asks by ${*:3} is $(outcome "$1")" "$1" "$(said_of user POST "$queued?dryRun=All" "$(their_pod "$2")")"
}

uncounted="does not count"
no_claims="does not count these resource claims"
node="leave spec.nodeName out"

check_ways_to_ask() {
  local gpu='.spec.containers[0].resources = gpu("nvidia.com/gpu")' claim='.spec.resourceClaims = [{name: "g", '
  asks made . nothing
  asks gated "$gpu" limits
  asks gated '.spec.containers[0].resources = {limits: {"nvidia.com/gpu": "1"}, requests: {"nvidia.com/gpu": "1"}}' requests
  asks gated '.spec.initContainers = [{name: "i", image: "x", resources: gpu("nvidia.com/gpu")}]' an init container
  asks gated '.spec.initContainers = [{name: "i", image: "x", restartPolicy: "Always", resources: gpu("nvidia.com/gpu")}]' a sidecar
  asks gated '.spec.containers += [{name: "b", image: "x", resources: gpu("nvidia.com/gpu")}]' its second container
  asks "$uncounted nvidia.com/mig-1g.10gb" '.spec.containers[0].resources = gpu("nvidia.com/mig-1g.10gb")' a MIG instance
  asks "$uncounted nvidia.com/gpu.shared" '.spec.containers[0].resources = gpu("nvidia.com/gpu.shared")' a shared GPU
  asks "$uncounted nvidia.com/mig-2g" '.spec.initContainers = [{name: "i", image: "x", resources: gpu("nvidia.com/mig-2g")}]' a MIG instance in an init container
  asks "$uncounted nvidia.com/mig-2g" "$gpu"' | .spec.containers[0].resources.limits["nvidia.com/mig-2g"] = "1"' both
  asks "$uncounted example.org/fast" '.spec.containers[0].resources = gpu("example.org/fast")' "a name that a DeviceClass gives"
  asks "$uncounted deviceclass.resource.kubernetes.io/gpu.nvidia.com" \
    '.spec.containers[0].resources = gpu("deviceclass.resource.kubernetes.io/gpu.nvidia.com")' "the name of a DeviceClass"
  asks made '.spec.containers[0].resources = gpu("rdma/a")' "a device that the site says is no GPU"
  asks gated "$gpu"' | .spec.containers[0].resources.limits["rdma/a"] = "1"' "it and a GPU"
  asks "$no_claims" "$claim"'resourceClaimName: "c"}]' "a claim's name"
  asks "$no_claims" "$claim"'resourceClaimTemplateName: "t"}]' "a claim's template"
  asks "$no_claims" "$claim"'resourceClaimTemplateName: "t"}] | .metadata.annotations = {"gpu-platform/gpus": "1"}' "a template, counted"
  asks gated "$claim"'resourceClaimName: "c"}] | .metadata.annotations = {"gpu-platform/gpus": "1"}' "a claim that the platform makes"
  asks "$no_claims" "$claim"'resourceClaimName: "c"}] | .metadata.annotations = {"gpu-platform/gpus": "0"}' "a claim of no GPU"
  asks "$no_claims" "$claim"'resourceClaimName: "c"}, {name: "h", resourceClaimName: "d"}] | .metadata.annotations = {"gpu-platform/gpus": "1"}' \
    two claims
  asks "$no_claims" "$gpu | $claim"'resourceClaimName: "c"}] | .metadata.annotations = {"gpu-platform/gpus": "1"}' "a claim and a number"
  asks "$node" "$gpu"' | .spec.nodeName = "node-0"' "a number on a node"
  asks "$node" '.spec.nodeName = "node-0" | .spec.initContainers = [{name: "i", image: "x", resources: gpu("nvidia.com/gpu")}]' \
    "an init container on a node"
  asks "$node" "$claim"'resourceClaimName: "c"}] | .spec.nodeName = "node-0"' "a claim on a node"
  asks "$node" '.spec.nodeName = "node-0" | .metadata.labels = {"ray.io/cluster": "r"}' "being of a RayCluster on a node"
  asks gated "$gpu"' | .spec.schedulerName = "other"' "another scheduler"
  asks gated "$gpu"' | .spec.nodeSelector = {"kubernetes.io/hostname": "node-0"}' "a nodeSelector"
  asks gated "$gpu"' | .spec.schedulingGates = [{name: "example.org/mine"}]' "a gate of its own"
  asks gated "$gpu"' | .spec.priorityClassName = "system-node-critical"' "a priority"
  asks "written by the platform alone" "$gpu"' | .metadata.labels = {"gpu-platform/adopted": "default"}' "the labels of an admitted pod"
  asks "$node" "$gpu"' | .spec.nodeName = "node-0" | .metadata.annotations = {"kubernetes.io/config.mirror": "1"}' "passing as a node's own"
  # Kubernetes itself takes no such pod.
  asks "spec.resources" '.spec.resources = gpu("nvidia.com/gpu")' "resources of the pod as a whole"
}

# The rights of the role edit, and what a careless site adds to it.
put_user() {
  objects user ml | put admin && put admin <<'END' || return
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "much", "namespace": "ml"}, "rules": [{"apiGroups": [""], "resources": ["bindings", "pods/binding", "pods/status", "pods/resize", "pods/ephemeralcontainers"], "verbs": ["create", "update", "patch"]}]}
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "much", "namespace": "ml"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "much"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "test-own-namespace"}, "rules": [{"apiGroups": [""], "resources": ["namespaces", "namespaces/status"], "resourceNames": ["ml"], "verbs": ["get", "patch"]}, {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}]}
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "test-own-namespace"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-own-namespace"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}
END
}

# What a user does to a pod that waits, and to one that was admitted.
check_changes_of_users() {
  local merge=application/merge-patch+json strategic=application/strategic-merge-patch+json
  local more='{"resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}, "name":'
  change_of_user() { expect_part "$1" "$2" "$(said_of user PATCH "$queued/$3?dryRun=All" "$4" "${5:-$merge}")"; }
  send user POST "$queued" "$(their_pod '.metadata.name = "waits" | .spec.containers[0].resources = gpu("nvidia.com/gpu")')" >/dev/null
  send user POST "$queued" "$(their_pod '.metadata.name = "plain" | .spec.schedulingGates = [{name: "example.org/mine"}]')" >/dev/null
  send user POST "$queued" "$(their_pod '.metadata.name = "runs"')" >/dev/null
  change_of_user "a user lifts no gate of the platform" "is lifted by the platform" waits '{"spec": {"schedulingGates": null}}'
  change_of_user "nor puts another one in its place" "only deletion is allowed" waits '{"spec": {"schedulingGates": [{"name": "example.org/mine"}]}}'
  change_of_user "nor writes its labels by way of the status" "written by the platform alone" waits/status \
    '{"metadata": {"labels": {"gpu-platform/adopted": "default"}}}'
  change_of_user "no ephemeral container asks for a device" "esources" runs/ephemeralcontainers \
    "{\"spec\": {\"ephemeralContainers\": [$more \"e\", \"image\": \"x\"}]}}" "$strategic"
  change_of_user "no resize does" "esources" runs/resize "{\"spec\": {\"containers\": [$more \"a\"}]}}" "$strategic"
  change_of_user "no update does" "may not change" runs "{\"spec\": {\"containers\": [$more \"a\"}]}}" "$strategic"
  change_of_user "a user still changes what is the user's" made runs '{"metadata": {"labels": {"mine": "1"}}}'
  expect_part "a user binds no pod where a queue is" "the schedulers of the cluster bind pods" \
    "$(said_of user POST "$queued/plain/binding" "$(binding_of plain node-0)")"
  expect_part "nor by the other way" "the schedulers of the cluster bind pods" \
    "$(said_of user POST /api/v1/namespaces/ml/bindings "$(binding_of plain node-0)")"
  expect_part "no scheduler binds a pod behind the gate" "schedulingGates" \
    "$(said_of scheduler POST "$queued/waits/binding" "$(binding_of waits node-0)")"
  expect_part "a user does not say whose jobs a namespace's pods are" "an administrator who may" \
    "$(said_of user PATCH "/api/v1/namespaces/ml?dryRun=All" '{"metadata": {"labels": {"gpu-platform/user": "bob"}}}' "$merge")"
  expect_part "nor takes the queue away" "an administrator who may" \
    "$(said_of user PATCH "/api/v1/namespaces/ml?dryRun=All" '{"metadata": {"labels": {"gpu-platform/queue": null}}}' "$merge")"
  expect_part "nor does it by way of the status" "an administrator who may" \
    "$(said_of user PATCH "/api/v1/namespaces/ml/status?dryRun=All" '{"metadata": {"labels": {"gpu-platform/user": "bob"}}}' "$merge")"
  expect_part "nor for a new namespace" "an administrator who may" "$(said_of user POST "/api/v1/namespaces?dryRun=All" \
    '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"gpu-platform/queue": "default", "gpu-platform/user": "bob"}}}')"
  expect_part "but writes other labels" made \
    "$(said_of user PATCH "/api/v1/namespaces/ml?dryRun=All" '{"metadata": {"labels": {"mine": "1"}}}' "$merge")"
}

# Controllers make pods of templates, and a node shows its own.
check_pods_of_others_than_users() {
  local as_daemon_set=(-H "Impersonate-User: system:serviceaccount:kube-system:daemon-set-controller")
  local as_node=(-H "Impersonate-User: system:node:node-0" -H "Impersonate-Group: system:nodes")
  local uid mirror
  uid=$(value_of /api/v1/nodes/node-0 .metadata.uid)
  mirror='.spec.nodeName = "node-0" | .metadata.annotations = {"kubernetes.io/config.mirror": "1"} |
    .spec.containers[0].resources = gpu("nvidia.com/gpu") | .spec.tolerations = [{operator: "Exists", effect: "NoExecute"}] |
    .metadata.ownerReferences = [{apiVersion: "v1", kind: "Node", name: "node-0", uid: "'$uid'", controller: true}]'
  expect_part "a DaemonSet's pod without GPUs is on its node" made "$(said_of admin POST "$queued?dryRun=All" \
    "$(their_pod '.spec.nodeName = "node-0"')" application/json "${as_daemon_set[@]}")"
  expect_part "a DaemonSet whose template names a node gets no GPU by it" "$node" "$(said_of admin POST "$queued?dryRun=All" \
    "$(their_pod '.spec.nodeName = "node-0" | .spec.containers[0].resources = gpu("nvidia.com/gpu")')" application/json "${as_daemon_set[@]}")"
  expect_part "a node shows its static pod" made \
    "$(said_of admin POST "$queued?dryRun=All" "$(their_pod "$mirror")" application/json "${as_node[@]}")"
  expect "but none of another node" 1 "$(said_of admin POST "$queued?dryRun=All" "$(their_pod "$mirror | .spec.nodeName = \"node-1\"")" \
    application/json "${as_node[@]}" | grep -c -e "$node" -e 'can only create pods with spec.nodeName set to itself')"
  send user POST /apis/apps/v1/namespaces/ml/deployments '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
      "spec": {"containers": [{"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}' >/dev/null
  has_gated_pod() { [[ $(value_of "$queued?labelSelector=app%3Dweb" '.items[0].spec.schedulingGates[0].name') == gpu-platform/admission ]]; }
  if until_true 30 has_gated_pod; then right "a Deployment's pods are gated"; else fail "a Deployment's pods are not gated"; fi
}

# ---- What the platform's account may do ----

# platform_pod NAME [JQ-FILTER]: a pod as the platform makes it (manifests.cpp), changed by the filter.
platform_pod() {
  jq -cn --arg name "$1" '($name | split("-")) as $of | {
    apiVersion: "v1", kind: "Pod",
    metadata: {
      name: $name, namespace: "default", finalizers: ["gpu-platform/attempt"], annotations: {"gpu-platform/job-name": "train"},
      labels: {"gpu-platform/cluster": $of[1], "gpu-platform/job": $of[2], "gpu-platform/attempt": $of[3], "gpu-platform/rank": $of[4]}
    },
    spec: {
      restartPolicy: "Never", automountServiceAccountToken: false, enableServiceLinks: false,
      securityContext: {runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, seccompProfile: {type: "RuntimeDefault"}},
      tolerations: [{key: "nvidia.com/gpu", operator: "Exists"}],
      volumes: [{name: "shm", emptyDir: {medium: "Memory"}}],
      containers: [{name: "main", image: "example.org/job:1", volumeMounts: [{name: "shm", mountPath: "/dev/shm"}],
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: ["ALL"]}}}]
    }
  }' | jq -c "${2:-.}"
}

# platform_makes WANTED JQ-FILTER WHAT...
platform_makes() {
  expect_part "a pod of the platform's account ${*:3} is $(outcome "$1")" "$1" \
    "$(said_of platform POST "$pods?dryRun=All" "$(platform_pod gp-lab-7-1-0 "$2")")"
}

check_pods_of_the_account() {
  local main='.spec.containers[0]' context='.spec.containers[0].securityContext' field
  send admin POST /api/v1/namespaces/default/serviceaccounts '{"metadata": {"name": "powerful"}}' >/dev/null
  platform_makes made . "of a job"
  platform_makes made '.spec.schedulingGates = [{name: "gpu-platform/gang"}] | .spec.hostname = "rank-0" | .spec.subdomain = "gp-lab-7-1"' "of a gang"
  platform_makes "no privileges" "$context.privileged = true | $context.allowPrivilegeEscalation = null" "that is privileged"
  platform_makes "no privileges" "$context.allowPrivilegeEscalation = true" "that may become root"
  platform_makes "no privileges" "$context.capabilities.add = [\"SYS_ADMIN\"]" "with a capability"
  platform_makes "no privileges" "$context.capabilities.drop = []" "that drops none"
  platform_makes "no privileges" "$context.runAsUser = 0 | $context.runAsNonRoot = false" "whose container is root"
  platform_makes "no privileges" "$context.procMount = \"Unmasked\" | .spec.hostUsers = false" "with all of /proc"
  platform_makes "no privileges" "$context.seccompProfile = {type: \"Unconfined\"}" "without a filter of system calls"
  platform_makes "no privileges" '.spec.initContainers = [{name: "i", image: "x", securityContext: {privileged: true}}]' "with a privileged init container"
  platform_makes "do not run as root" '.spec.securityContext.runAsUser = 0 | .spec.securityContext.runAsNonRoot = false' "of root"
  platform_makes "do not run as root" 'del(.spec.securityContext)' "without a security context"
  platform_makes "do not run as root" '.spec.securityContext.sysctls = [{name: "kernel.shm_rmid_forced", value: "1"}]' "with a sysctl"
  for field in hostNetwork hostPID hostIPC; do platform_makes "share nothing" ".spec.$field = true" "with $field"; done
  platform_makes "share nothing" "$main.ports = [{containerPort: 80, hostPort: 80}]" "with a port of the host"
  platform_makes "share nothing" '.spec.hostAliases = [{ip: "10.0.0.1", hostnames: ["registry"]}]' "with host aliases"
  platform_makes "emptyDir" '.spec.volumes += [{name: "h", hostPath: {path: "/"}}]' "with the host's files"
  platform_makes "emptyDir" '.spec.volumes += [{name: "h", secret: {secretName: "s"}}]' "with a secret"
  platform_makes "emptyDir" '.spec.volumes += [{name: "h", configMap: {name: "s"}}]' "with a ConfigMap"
  platform_makes "emptyDir" '.spec.volumes += [{name: "h", persistentVolumeClaim: {claimName: "s"}}]' "with a volume of others"
  platform_makes "emptyDir" '.spec.volumes += [{name: "h", projected: {sources: [{serviceAccountToken: {path: "t"}}]}}]' "with a token of its own making"
  platform_makes "read no secrets" "$main.env = [{name: \"S\", valueFrom: {secretKeyRef: {name: \"s\", key: \"k\"}}}]" "with a secret in a variable"
  platform_makes "read no secrets" "$main.envFrom = [{secretRef: {name: \"s\"}}]" "with a secret as variables"
  platform_makes "read no secrets" "$main.livenessProbe = {httpGet: {host: \"10.0.0.1\", port: 80}}" "with a probe"
  platform_makes "read no secrets" "$main.lifecycle = {preStop: {exec: {command: [\"x\"]}}}" "with a hook"
  platform_makes "no service account" '.spec.serviceAccountName = "powerful"' "of another service account"
  platform_makes "no service account" 'del(.spec.automountServiceAccountToken)' "with a token"
  platform_makes "where a scheduler puts" '.spec.nodeName = "node-0"' "on a node"
  platform_makes "where a scheduler puts" '.spec.tolerations += [{operator: "Exists"}]' "that tolerates all"
  platform_makes "where a scheduler puts" '.spec.tolerations += [{key: "node-role.kubernetes.io/control-plane", operator: "Exists"}]' "for a control plane"
  platform_makes "where a scheduler puts" '.spec.priorityClassName = "system-node-critical"' "of the system's priority"
  platform_makes "claim of its own name" '.spec.resourceClaims = [{name: "g", resourceClaimName: "theirs"}]' "with a claim of others"
  platform_makes "claim of its own name" '.spec.resourceClaims = [{name: "g", resourceClaimTemplateName: "theirs"}]' "with a template"
  platform_makes "its labels" '.metadata.labels.app = "web"' "with a label of others"
  platform_makes "its labels" '.metadata.annotations["container.apparmor.security.beta.kubernetes.io/main"] = "unconfined"' "with an annotation of others"
  platform_makes "its labels" '.metadata.ownerReferences = [{apiVersion: "v1", kind: "Node", name: "node-0", uid: "1"}]' "with an owner"
  platform_makes "by their labels" '.metadata.labels["gpu-platform/job"] = "8"' "of another name"
  platform_makes "by their labels" '.metadata.name = "web"' "of a name of others"
}

check_reach_of_the_account() {
  local place
  for place in kube-system ml "$platform_namespace"; do
    expect "the platform's account makes no pod in $place" 403 "$(status_of platform POST "/api/v1/namespaces/$place/pods?dryRun=All" \
      "$(platform_pod gp-lab-7-1-0 ".metadata.namespace = \"$place\"")")"
    expect "and enters none" 403 "$(status_of platform POST "/api/v1/namespaces/$place/pods/gp-lab-7-1-0/exec?command=id")"
    expect "and reads the output of none" 403 "$(status_of platform GET "/api/v1/namespaces/$place/pods/gp-lab-7-1-0/log")"
  done
  # With rights in every namespace, as a site may ask for.
  objects access default | jq -c 'select(.metadata.name == "test-gpu-platform") | .metadata.name = "test-wide" |
    .roleRef.name = "gpu-platform-jobs"' | put admin
  can_make_anywhere() {
    [[ $(status_of platform POST "/api/v1/namespaces/ml/pods?dryRun=All" "$(platform_pod gp-lab-7-1-0 '.metadata.namespace = "ml"')") == 201 ]]
  }
  until_true 10 can_make_anywhere || fail "a binding for all namespaces gives no rights"
  expect_part "with rights in all namespaces it still makes none in kube-system" "makes no pods in the namespaces of the cluster" \
    "$(said_of platform POST "/api/v1/namespaces/kube-system/pods?dryRun=All" "$(platform_pod gp-lab-7-1-0 '.metadata.namespace = "kube-system"')")"
  send admin POST "$pods" "$(pod_of theirs)" >/dev/null
  for place in exec?command=id attach portforward?ports=80; do
    expect_part "and enters no pod of others by ${place%%\?*}" "enters its own pods alone" "$(said_of platform POST "$pods/theirs/$place" '')"
  done
  expect_part "and deletes none" "deletes its own pods" "$(said_of platform DELETE "$pods/theirs?dryRun=All" '')"
  expect_part "and changes none" "changes its own pods" "$(said_of platform PATCH "$pods/theirs?dryRun=All" \
    '{"metadata": {"labels": {"a": "b"}}}' application/merge-patch+json)"
  send admin POST "$claims" "$(claim_of theirs GPU-1)" >/dev/null
  expect_part "and deletes no claim of others" "deletes its own pods" "$(said_of platform DELETE "$claims/theirs?dryRun=All" '')"
  expect_part "and makes no claim for others" "a claim of the platform" "$(said_of platform POST "$claims?dryRun=All" "$(claim_of mine GPU-1)")"
  send admin PATCH /api/v1/namespaces/default '{"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}' \
    application/merge-patch+json >/dev/null
  expect_part "a claim of it has no administrator's access" "administrator access" "$(said_of platform POST "$claims?dryRun=All" \
    "$(claim_of gp-lab-7-1-0 GPU-1 | jq -c '.spec.devices.requests[0].exactly.adminAccess = true | .metadata.labels = {"gpu-platform/cluster": "lab",
      "gpu-platform/job": "7", "gpu-platform/attempt": "1", "gpu-platform/rank": "0"}')")"
  expect_part "a service of it selects no pods of others" "is headless" "$(said_of platform POST "/api/v1/namespaces/default/services?dryRun=All" \
    '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}')"
  api admin DELETE /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/test-wide >/dev/null
}

# The pod "waits" has the platform's gate.
check_admission_by_the_account() {
  local merge=application/merge-patch+json patch=application/json-patch+json strategic=application/strategic-merge-patch+json admit
  local their_claims=/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims
  change_of_platform() { expect_part "$1" "$2" "$(said_of platform PATCH "$queued/$3?dryRun=All" "$4" "${5:-$merge}")"; }
  admit='[{"op": "remove", "path": "/spec/schedulingGates/0"}, {"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": "node-0"}},
    {"op": "add", "path": "/metadata/labels", "value": {"gpu-platform/adopted": "lab", "gpu-platform/cluster": "lab", "gpu-platform/job": "7",
      "gpu-platform/attempt": "1", "gpu-platform/rank": "0"}}]'
  change_of_platform "the platform's account admits a pod that waits" made waits "$admit" "$patch"
  change_of_platform "but changes no image" "no containers" waits '{"spec": {"containers": [{"name": "a", "image": "example.org/evil:1"}]}}' "$strategic"
  change_of_platform "nor what a pod tolerates" "no containers" waits \
    '[{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]' "$patch"
  change_of_platform "nor annotations" "no containers" waits '{"metadata": {"annotations": {"a": "b"}}}'
  change_of_platform "nor labels of others" "its own labels alone" waits '{"metadata": {"labels": {"app": "web"}}}'
  change_of_platform "nor marks a pod that it does not admit" "its own labels alone" plain \
    '{"metadata": {"labels": {"gpu-platform/adopted": "lab", "gpu-platform/job": "7"}}}'
  change_of_platform "nor lifts the gates of others" "takes its own gates" plain '{"spec": {"schedulingGates": null}}'
  change_of_platform "nor writes finalizers" "takes its own gates" waits '{"metadata": {"finalizers": ["example.org/f"]}}'
  change_of_platform "nor chooses by other labels of nodes" "chooses the node" waits '{"spec": {"nodeSelector": {"zone": "a"}}}'
  change_of_platform "it writes its condition" gated waits/status \
    '{"status": {"conditions": [{"type": "gpu-platform/Admitted", "status": "False", "reason": "NoCapacity"}]}}' "$strategic"
  change_of_platform "but no phase" "nothing else of its status" waits/status '{"status": {"phase": "Failed"}}'
  change_of_platform "and no address" "nothing else of its status" waits/status '{"status": {"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}}'
  expect_part "it deletes no pod that it has not admitted" "deletes its own pods" "$(said_of platform DELETE "$queued/waits?dryRun=All" '')"
  send platform PATCH "$queued/waits" "$admit" "$patch" >/dev/null || fail "the platform's account admits no pod"
  expect_part "a pod that was admitted asks for no more" "may not change" "$(said_of user PATCH "$queued/waits?dryRun=All" \
    '{"spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}' "$strategic")"
  expect_part "and is deleted by the platform" made "$(said_of platform DELETE "$queued/waits?dryRun=All" '{}')"
  send platform POST "$their_claims" "$(claim_of exact GPU-1 | jq -c '.metadata.namespace = "ml" | .metadata.labels = {
    "gpu-platform/adopted": "lab", "gpu-platform/job": "7", "gpu-platform/attempt": "1", "gpu-platform/rank": "0"}')" >/dev/null ||
    fail "the platform's account makes no claim for a pod that it admits"
  expect_part "a user puts no claim in the place of the platform's" "deletes it when the pod is over" \
    "$(said_of user DELETE "$their_claims/exact?dryRun=All" '')"
  expect "an administrator removes it" 200 "$(status_of admin DELETE "$their_claims/exact" '{}')"
}

is_refused() {
  [[ $(said_of user POST "$queued?dryRun=All" "$(their_pod '.spec.nodeName = "node-0" | .spec.containers[0].resources = gpu("nvidia.com/gpu")')") == *"$node"* ]]
}
is_account_held() {
  [[ $(said_of platform POST "$pods?dryRun=All" "$(platform_pod gp-lab-7-1-0 '.metadata.labels.app = "web"')") == *"its labels"* ]]
}
has_service_account() { api admin GET /api/v1/namespaces/ml/serviceaccounts/default >/dev/null 2>&1; }

# After the other checks: the policies then hold the platform's user, too.
check_admission() {
  objects plain ml | jq -c '.metadata.labels = {"gpu-platform/queue": "default"}' | put admin
  put_user && objects access-queue ml | put admin && until_true 30 has_service_account || fail "there is no namespace with a queue"
  put_policies || fail "the policies are not taken"
  until_true 30 is_refused || fail "the policies for users are not in force"
  until_true 30 is_account_held || fail "the policies for the platform's account are not in force"
  check_ways_to_ask
  check_changes_of_users
  check_pods_of_others_than_users
  check_pods_of_the_account
  check_admission_by_the_account
  check_reach_of_the_account
}
