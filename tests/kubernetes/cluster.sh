# A Kubernetes control plane for tests: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, and kwok, which
# plays the kubelets. Sourced by scripts/check_kubernetes after scripts/lib.sh. A cluster is a folder:
#
#   admin.kubeconfig     may do everything
#   platform.kubeconfig  the user gpu-platform, who has the roles of deploy/kubernetes/rbac.yaml alone; its jobs are in the
#                        namespace "default"
#   user.kubeconfig      the user ann, who has no rights yet
#   env                  server, certificate and ports, to be sourced
#   output               the log of each container, as a container runtime writes it
#   processes            a line for each: name, process id
#   log/                 what the programs say
#
# Functions return 1 with a line "WRONG: …" where something fails.

kubernetes_files=$ROOT/tests/kubernetes
kubernetes_version=v1.36.3  # as in go.mod
kubernetes_programs=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-platform/kubernetes
platform_namespace=gpu-platform

wrong() { say "WRONG: $*"; return 1; }

# until_true SECONDS COMMAND...: waits until the command succeeds.
until_true() {
  local limit=$((SECONDS + $1))
  shift
  until "$@"; do
    (( SECONDS < limit )) || return 1
    read -rt 0.1 <> <(:) || true
  done
}

# ---- The programs ----

# build_set NAME MODULE PACKAGE...: builds packages of a module below this folder, unless that was done for the same
# versions and sources. Returns 77 with a line "skipped: …" where they cannot be had.
build_set() {
  local stamp=$kubernetes_programs/$1 module=$kubernetes_files/$2 packages=("${@:3}") key flags
  key=$(cd "$module" && find go.mod go.sum $(printf '%s\n' "${packages[@]}" | grep '^[.]/') -type f -exec sha256sum {} + | LC_ALL=C sort)
  [[ -f $stamp && $(<"$stamp") == "$key" ]] && return
  command -v go >/dev/null || { say "skipped: no go, which builds the programs of Kubernetes"; return 77; }
  mkdir -p "$kubernetes_programs"
  if ! (cd "$module" && go mod download) 2>"$kubernetes_programs/download.log"; then
    say "skipped: Go's modules cannot be fetched: $(tail -n 1 "$kubernetes_programs/download.log")"
    return 77
  fi
  # Without its version a component would refuse to serve the APIs of its release.
  flags="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes_version"
  flags+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
  flags+=" -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes_version"
  (cd "$module" && CGO_ENABLED=0 nice go build -p "$(build_jobs)" -trimpath -ldflags "$flags" -o "$kubernetes_programs/" \
    "${packages[@]}") || { wrong "the programs of Kubernetes do not build"; return; }
  echo "$key" >"$stamp"
}

# Takes two cores some eight minutes the first time.
build_programs() {
  build_set built . ./etcd k8s.io/kubernetes/cmd/kube-{apiserver,scheduler,controller-manager} sigs.k8s.io/kwok/cmd/kwok \
    helm.sh/helm/v4/cmd/helm
}

# Some three minutes more.
build_node_programs() {
  build_set built-node . k8s.io/kubernetes/cmd/kubelet ./gpu_driver && build_set built-containerd containerd tool
}

# ---- Up ----

# Sets `free_port` to one that no process listens at now, below those that the kernel gives to connections.
find_free_port() {
  while :; do
    free_port=$((15000 + (RANDOM * 32768 + RANDOM) % 15000))
    [[ " ${ports[*]} " != *" $free_port "* ]] && ! (: <>"/dev/tcp/127.0.0.1/$free_port") 2>/dev/null && return
  done
}

# start_program NAME ARGUMENT...: in $cluster, outliving this shell.
start_program() {
  local name=$1
  setsid "$kubernetes_programs/$name" "${@:2}" >"$cluster/log/$name" 2>&1 </dev/null &
  echo "$name $!" >>"$cluster/processes"
}

write_kubeconfig() {  # NAME TOKEN
  cat >"$cluster/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "$KUBERNETES_SERVER", certificate-authority: "$cluster/certificates/apiserver.crt"}}]
users: [{name: $1, user: {token: "$2"}}]
contexts: [{name: test, context: {cluster: test, user: $1}}]
current-context: test
END
}

# Users, each with a token that only this cluster knows.
write_users() {
  local line name user groups token
  while IFS=, read -r name user groups; do
    token=$(openssl rand -hex 16) || return
    printf '%s,%s,%s,"%s"\n' "$token" "$user" "$user" "$groups" >>"$cluster/tokens.csv"
    write_kubeconfig "$name" "$token"
  done <<'END'
admin,admin,system:masters
platform,gpu-platform,
user,ann,
scheduler,system:kube-scheduler,
controllers,system:kube-controller-manager,
kubelet,system:node:localhost,system:nodes
END
  openssl genrsa -out "$cluster/service-accounts.key" 2048 2>/dev/null &&
    openssl rsa -in "$cluster/service-accounts.key" -pubout -out "$cluster/service-accounts.pub" 2>/dev/null &&
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=kube-apiserver -keyout "$cluster/apiserver-client.key" \
      -out "$cluster/apiserver-client.crt" 2>/dev/null
}

start_etcd() {  # PORT PEER-PORT
  start_program etcd --data-dir "$cluster/etcd" --log-level warn --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$1" --advertise-client-urls "http://127.0.0.1:$1" \
    --listen-peer-urls "http://127.0.0.1:$2" --initial-advertise-peer-urls "http://127.0.0.1:$2" \
    --initial-cluster "default=http://127.0.0.1:$2"
  until_true 60 curl -fs "http://127.0.0.1:$1/health" -o /dev/null || wrong "etcd does not start"
}

start_apiserver() {  # PORT ETCD-PORT
  start_program kube-apiserver --etcd-servers "http://127.0.0.1:$2" --cert-dir "$cluster/certificates" \
    --bind-address 127.0.0.1 --secure-port "$1" --service-cluster-ip-range 10.0.0.0/24 --allow-privileged \
    --authorization-mode Node,RBAC --token-auth-file "$cluster/tokens.csv" --endpoint-reconciler-type none \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$cluster/service-accounts.pub" \
    --service-account-signing-key-file "$cluster/service-accounts.key" \
    --kubelet-client-certificate "$cluster/apiserver-client.crt" --kubelet-client-key "$cluster/apiserver-client.key" \
    --kubelet-preferred-address-types Hostname,InternalIP "${gates[@]}" ${gates:+"--runtime-config=$taint_rules_api"}
  until_true 120 api admin GET /readyz >/dev/null 2>&1 || wrong "kube-apiserver does not start"
}

# The limits of requests that they have by default let them bind a dozen pinned pods a second.
limits=(--kube-api-qps 1000 --kube-api-burst 2000)
with_default_limits() { limits=(); }

start_controllers() {
  local connection=(--leader-elect=false --secure-port 0 "${limits[@]}")
  start_program kube-scheduler --kubeconfig "$cluster/scheduler.kubeconfig" "${connection[@]}" "${gates[@]}"
  start_program kube-controller-manager --kubeconfig "$cluster/controllers.kubeconfig" "${connection[@]}" \
    --use-service-account-credentials --service-account-private-key-file "$cluster/service-accounts.key" \
    --root-ca-file "$cluster/certificates/apiserver.crt" "${gates[@]}"
}

start_kwok() {  # PORT
  sed "s|OUTPUT_FILE|$cluster/output|" "$kubernetes_files/stages.yaml" >"$cluster/stages.yaml"
  (( EUID != 0 )) || cat "$kubernetes_files/exec.yaml" >>"$cluster/stages.yaml"
  echo "2026-01-02T03:04:05.678900000Z stdout F the output of a container" >"$cluster/output"
  start_program kwok --kubeconfig "$cluster/admin.kubeconfig" --config "$cluster/stages.yaml" \
    --manage-all-nodes=false --manage-nodes-with-label-selector gpu-platform.test/kwok=true \
    --node-lease-duration-seconds 40 --node-ip 127.0.0.1 --node-port "$1" --server-address "127.0.0.1:$1" \
    --tls-cert-file "$cluster/certificates/apiserver.crt" --tls-private-key-file "$cluster/certificates/apiserver.key"
  until_true 60 curl -fs "http://127.0.0.1:$1/healthz" -o /dev/null || wrong "kwok does not start"
}

# Kubernetes 1.37 serves the rules that taint single devices; 1.36 does where it is asked to.
taint_rules_api=resource.k8s.io/v1beta2/devicetaintrules=true
gates=()
with_taint_rules() { gates=(--feature-gates DRADeviceTaintRules=true); }

# cluster_up FOLDER: the folder must be empty or absent. Pods can be made in the namespace "default" when it returns.
cluster_up() {
  local ports=() free_port
  mkdir -p "$1" && cluster=$(realpath "$1") && chmod 700 "$cluster" || return
  [[ -z $(ls -A "$cluster") ]] || { wrong "$cluster is not empty"; return; }
  mkdir "$cluster/log"
  for _ in etcd peer server kwok; do find_free_port; ports+=("$free_port"); done
  cat >"$cluster/env" <<END
KUBERNETES_SERVER=https://127.0.0.1:${ports[2]}
KUBERNETES_CERTIFICATE=$cluster/certificates/apiserver.crt
ETCD_PORT=${ports[0]}
KWOK_PORT=${ports[3]}
END
  . "$cluster/env"
  write_users && start_etcd "${ports[0]}" "${ports[1]}" && start_apiserver "${ports[2]}" "${ports[0]}" || return
  start_controllers
  start_kwok "${ports[3]}" && put_platform || return
  until_true 60 api admin GET /api/v1/namespaces/default/serviceaccounts/default >/dev/null 2>&1 ||
    wrong "kube-controller-manager makes no service account"
}

# The platform's namespace, its user's rights and the class of its devices.
put_platform() {
  objects namespace "$platform_namespace" | put admin && put_file "$ROOT/deploy/kubernetes/rbac.yaml" &&
    objects access default | put admin && objects classes | put admin
}

# ---- Down ----

is_program() { [[ $(readlink "/proc/$2/exe") == "$kubernetes_programs/$1"* ]]; }

# cluster_down FOLDER: ends its processes. The folder stays.
cluster_down() {
  local name pid lines
  [[ -f $1/processes ]] || return 0
  mapfile -t lines < <(tac "$1/processes")
  for name in "${lines[@]}"; do
    pid=${name#* } name=${name%% *}
    is_program "$name" "$pid" || continue
    kill "$pid" 2>/dev/null
    # etcd and kube-apiserver take their time to say farewell, and nothing of this cluster is kept.
    until_true 5 eval "! is_program $name $pid" || kill -KILL "$pid" 2>/dev/null
  done
  rm -f "$1/processes"
}

# Takes the cluster down when this process has ended.
take_down_after() {
  setsid bash -c 'tail --pid="$1" -f /dev/null; exec "$2" --down "$3"' - "$1" "$ROOT/scripts/check_kubernetes" "$cluster" \
    >/dev/null 2>&1 </dev/null &
}

# ---- Calls ----

# call USER METHOD PATH [CURL-ARGUMENT...]. The token stays out of the list of processes.
call() {
  curl -sS --max-time 60 --cacert "$KUBERNETES_CERTIFICATE" -H @- -X "$2" "$KUBERNETES_SERVER$3" "${@:4}" \
    < <(sed -n 's/.*token: "\(.*\)".*/Authorization: Bearer \1/p' "$cluster/$1.kubeconfig")
}

# api USER METHOD PATH [CURL-ARGUMENT...]: prints the answer; fails unless its status is 2xx.
api() { call "$1" "$2" "$3" --fail-with-body "${@:4}"; }

# send USER METHOD PATH BODY [TYPE]. A body may be longer than an argument.
send() { api "$1" "$2" "$3" -H "Content-Type: ${5:-application/json}" --data-binary @<(printf '%s' "$4"); }

# objects KIND [NAME [COUNT]]: see objects.jq.
objects() { jq -cn -f "$kubernetes_files/objects.jq" --arg what "$1" --arg name "${2:-}" --argjson count "${3:-0}"; }

# The path of an object: KIND NAME NAMESPACE.
path_of() {
  local core=/api/v1 rbac=/apis/rbac.authorization.k8s.io/v1 resource=/apis/resource.k8s.io/v1
  local admission=/apis/admissionregistration.k8s.io/v1 kind
  case $1 in
    Namespace) echo "$core/namespaces/$2" ;;
    Node) echo "$core/nodes/$2" ;;
    PersistentVolume) echo "$core/persistentvolumes/$2" ;;
    ClusterRole) echo "$rbac/clusterroles/$2" ;;
    ClusterRoleBinding) echo "$rbac/clusterrolebindings/$2" ;;
    Role) echo "$rbac/namespaces/$3/roles/$2" ;;
    RoleBinding) echo "$rbac/namespaces/$3/rolebindings/$2" ;;
    ResourceSlice) echo "$resource/resourceslices/$2" ;;
    DeviceClass) echo "$resource/deviceclasses/$2" ;;
    ResourceClaim) echo "$resource/namespaces/$3/resourceclaims/$2" ;;
    Pod) echo "$core/namespaces/$3/pods/$2" ;;
    CustomResourceDefinition) echo "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/$2" ;;
    *AdmissionPolicy) kind=${1,,} && echo "$admission/${kind%y}ies/$2" ;;
    *AdmissionPolicyBinding | *WebhookConfiguration) echo "$admission/${1,,}s/$2" ;;
    *) wrong "no path is known for $1" ;;
  esac
}

# apply_object USER KIND NAME NAMESPACE BODY: makes the object or brings it into this form.
apply_object() {
  local path answer
  path=$(path_of "$2" "$3" "$4") || return
  answer=$(send "$1" PATCH "$path?fieldManager=test&force=true" "$5" application/apply-patch+yaml 2>&1) ||
    wrong "$2 $3: $(jq -r '.message? // .' <<<"$answer" 2>/dev/null || echo "$answer")"
}

# put USER: applies the objects on stdin, JSON, one on each line.
put() {
  local object kind name namespace
  while read -r object; do
    IFS=$'\t' read -r kind name namespace < <(jq -r '[.kind, .metadata.name, .metadata.namespace // "default"] | @tsv' <<<"$object")
    apply_object "$1" "$kind" "$name" "$namespace" "$object" || return
  done
}

# put_file FILE: applies the documents of a YAML file as admin; namespaced ones go to the platform's namespace.
put_file() {
  local document kind name
  while read -rd '' document; do
    kind=$(sed -n 's/^kind: //p' <<<"$document")
    [[ -n $kind ]] || continue
    name=$(sed -n 's/^  name: //p' <<<"$document" | head -n 1)
    apply_object admin "$kind" "$name" "$platform_namespace" "$document" || return
  done < <(sed 's/^---$/\x00/' "$1"; printf '\0')
}

# The policies of deploy/kubernetes. The user of the test's cluster stands for the platform's service account.
put_policies() {
  local file
  for file in admission_labels admission_gate admission_account; do
    sed "s/'system:serviceaccount:gpu-platform:gpu-platform'/'gpu-platform'/" "$ROOT/deploy/kubernetes/$file.yaml" \
      >"$cluster/$file.yaml"
    put_file "$cluster/$file.yaml" || return
  done
}

# use_cluster FOLDER: later calls go to this running cluster.
use_cluster() {
  cluster=$(realpath "$1")
  [[ -f $cluster/processes && -f $cluster/env ]] || { wrong "no cluster runs in $1"; return; }
  . "$cluster/env"
}
