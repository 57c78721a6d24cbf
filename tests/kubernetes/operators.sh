# Operators that make pods of workloads: Kubeflow's training operator, JobSet's and KubeRay's, of their released modules, on a
# cluster of cluster.sh. Sourced by scripts/check_operators after it. They have the rights of admin.kubeconfig.

# Takes two cores some four minutes the first time.
build_operators() {
  build_set built-kubeflow operators/kubeflow ./ && build_set built-jobset operators/jobset tool &&
    build_set built-ray operators/ray tool
}

# module_folder FOLDER MODULE: where the sources are that operators/FOLDER/go.mod names.
module_folder() { (cd "$kubernetes_files/operators/$1" && go mod download -json "$2" | jq -r .Dir); }

make_kinds() {
  local folder file
  for folder in "$(module_folder kubeflow github.com/kubeflow/training-operator)/manifests/base/crds" \
    "$(module_folder jobset sigs.k8s.io/jobset)/config/components/crd/bases" \
    "$(module_folder ray github.com/ray-project/kuberay/ray-operator)/config/crd/bases"; do
    for file in "$folder"/*_*.yaml; do put_file "$file" || return; done
  done
}

# JobSet's webhooks complete what a manifest leaves out. PORT: where they listen.
make_webhooks() {
  sed -E -e '/^ +(service:|name: webhook-service|namespace: system)$/d' \
    -e "s|^ +path: (.*)|    url: https://127.0.0.1:$1\\1\\n    caBundle: $(base64 -w0 <"$KUBERNETES_CERTIFICATE")|" \
    "$(module_folder jobset sigs.k8s.io/jobset)/config/components/webhook/manifests.yaml" >"$cluster/webhooks.yaml"
  put_file "$cluster/webhooks.yaml"
}

start_kubeflow() {
  start_program training-operator --kubeconfig "$cluster/admin.kubeconfig"
  disown  # it is killed
}
start_jobset() {
  start_program jobset --kubeconfig "$cluster/admin.kubeconfig" --config "$cluster/jobset.yaml" --metrics-bind-address 0 \
    --health-probe-bind-address 0 --leader-elect=false
}
start_ray() {
  start_program ray-operator --kubeconfig "$cluster/admin.kubeconfig" --metrics-addr 0 --health-probe-bind-address 0 \
    --enable-leader-election=false
}

# stop_program NAME: at once, as a crash does.
stop_program() {
  local pid
  pid=$(sed -n "s/^$1 //p" "$cluster/processes" | tail -n 1)
  is_program "$1" "$pid" && kill -KILL "$pid"
  until_true 5 eval "! is_program $1 $pid"
}

operators_up() {
  local ports=() free_port
  find_free_port
  mkdir "$cluster/webhooks"
  cp "$cluster/certificates/apiserver.crt" "$cluster/webhooks/tls.crt"
  cp "$cluster/certificates/apiserver.key" "$cluster/webhooks/tls.key"
  cat >"$cluster/jobset.yaml" <<END
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: $free_port, certDir: "$cluster/webhooks"}
END
  make_kinds || return
  start_kubeflow
  start_jobset
  start_ray
  until_true 60 eval "(: <>/dev/tcp/127.0.0.1/$free_port) 2>/dev/null" || { wrong "JobSet's operator does not start"; return; }
  make_webhooks "$free_port"
}
