# A real node for a cluster of cluster.sh: kubelet, containerd, and gpu_driver in place of NVIDIA's driver. Sourced by
# scripts/check_kubelet after cluster.sh; needs root. The node has PIDs and mounts of its own, so that ending its first
# process ends all of it, and changes nothing of the machine but a cgroup that node_down removes. Its name is
# "localhost", because a kubelet takes no loopback address and kube-apiserver then calls it by its name.

node_name=localhost
node_image=gpu-platform.test/busybox:1

# Prints the digest of stdin's bytes, which it keeps as a blob of the image in the current folder.
put_blob() {
  local file
  file=$(mktemp -p . blob-XXXXXX) && cat >"$file" || return
  set -- "$(sha256sum "$file" | cut -d' ' -f1)"
  mkdir -p blobs/sha256 && mv "$file" "blobs/sha256/$1" && echo "sha256:$1"
}

# A descriptor of a blob: MEDIA-TYPE DIGEST.
descriptor() {
  jq -cn --arg type "application/vnd.oci.image.$1" --arg digest "$2" --argjson size "$(stat -c %s "blobs/sha256/${2#*:}")" \
    '{mediaType: $type, digest: $digest, size: $size}'
}

# make_image FILE: an OCI archive of one static program with all its names. It is the image of jobs and of sandboxes.
make_image() {
  local work file=$1 layer config manifest
  work=$(mktemp -d) && cd "$work" || return
  mkdir -p root/{bin,etc,tmp,proc,sys,dev} && cp "$(command -v busybox)" root/bin/busybox || return
  for name in $(root/bin/busybox --list); do ln -s busybox "root/bin/$name" 2>/dev/null; done
  echo "root:x:0:0::/:/bin/sh" >root/etc/passwd
  layer=$(tar -C root --owner 0 --group 0 -cf - . | put_blob) || return
  config=$(jq -cn --arg layer "$layer" '{architecture: "amd64", os: "linux", rootfs: {type: "layers", diff_ids: [$layer]},
    config: {Env: ["PATH=/bin"], Cmd: ["/bin/sleep", "1000000000"]}}' | put_blob) || return
  manifest=$(jq -cn --argjson config "$(descriptor config.v1+json "$config")" --argjson layer "$(descriptor layer.v1.tar "$layer")" \
    '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", $config, layers: [$layer]}' | put_blob) || return
  echo '{"imageLayoutVersion":"1.0.0"}' >oci-layout
  jq -cn --argjson manifest "$(descriptor manifest.v1+json "$manifest")" --arg name "$node_image" \
    '{schemaVersion: 2, manifests: [$manifest + {annotations: {"io.containerd.image.name": $name}}]}' >index.json
  tar -cf "$file" oci-layout index.json blobs
  cd "$ROOT" && rm -rf "$work"
}

write_containerd_config() {
  cat >"$node/containerd.toml" <<END
version = 3
root = "$node/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[grpc]
  address = "/run/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  pinned_images = {sandbox = "$node_image"}
[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
  cdi_spec_dirs = ["$node/cdi"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  cni = {bin_dirs = ["$node/network"], conf_dir = "$node/networks"}
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    options = {BinaryName = "$(command -v runc)", SystemdCgroup = false}
END
}

write_kubelet_config() {  # PORT
  cat >"$node/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $1
readOnlyPort: 0
healthzPort: 0
# kube-apiserver alone may call it.
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $cluster/apiserver-client.crt}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$node_cgroup
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
protectKernelDefaults: true
podLogsDir: $node/logs
volumePluginDir: $node/plugins
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
nodeStatusUpdateFrequency: 5s
END
}

# The cgroup of the node, in every hierarchy that there is.
make_cgroup() {
  local hierarchy
  node_cgroup=gpu-platform-kubelet-$$
  while read -r hierarchy; do
    mkdir -p "$hierarchy/$node_cgroup" || return
    # A cgroup of version 1 has no processors until it is told which.
    if [[ -f $hierarchy/$node_cgroup/cpuset.cpus && -f $hierarchy/cpuset.cpus ]]; then
      cat "$hierarchy/cpuset.cpus" >"$hierarchy/$node_cgroup/cpuset.cpus"
      cat "$hierarchy/cpuset.mems" >"$hierarchy/$node_cgroup/cpuset.mems"
    fi
  done < <(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts)
}

slices=/apis/resource.k8s.io/v1/resourceslices
# A kubelet that starts deletes what is said of its node's devices, some seconds after it has made the node. A driver that
# had published its own before would notice a minute later.
forgotten_slice() {
  jq -cn --arg node "$node_name" '{apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: {name: "forgotten"},
    spec: {driver: "forgotten.gpu-platform.test", nodeName: $node, devices: [{name: "none"}],
      pool: {name: $node, generation: 1, resourceSliceCount: 1}}}'
}

# node_up FOLDER PID: starts the node of the running cluster $cluster in a new folder. It ends with the process PID at the
# latest.
node_up() {
  local ports=() free_port
  mkdir -p "$1"/{cdi,log,network,networks,settings} && node=$(realpath "$1") || return
  find_free_port
  make_cgroup && make_image "$node/image.tar" || { wrong "the node cannot be prepared"; return; }
  write_containerd_config
  write_kubelet_config "$free_port"
  install -m 755 "$kubernetes_files/node_network" "$node/network/loopback"
  install -m 755 "$kubernetes_files/node_network" "$node/network/alone"
  echo '{"cniVersion": "1.0.0", "name": "alone", "plugins": [{"type": "alone"}]}' >"$node/networks/alone.conflist"
  send admin POST "$slices" "$(forgotten_slice)" >/dev/null || { wrong "a ResourceSlice cannot be made"; return; }
  setsid unshare --pid --fork --kill-child --mount --mount-proc "$kubernetes_files/node_init" \
    "$cluster" "$node" "$kubernetes_programs" "$node_name" >"$node/log/init" 2>&1 </dev/null &
  echo $! >"$node/pid"
  disown
  setsid bash -c 'tail --pid="$1" -f /dev/null; kill -KILL "$2"' - "$2" "$(<"$node/pid")" >/dev/null 2>&1 </dev/null &
  until_true 60 is_value "/api/v1/nodes/$node_name" '.status.conditions[] | select(.type == "Ready").status' True ||
    { wrong "the kubelet does not become ready: $(value_of "/api/v1/nodes/$node_name" '.status.conditions[].message')"; return; }
  until_true 60 is_gone "$slices/forgotten" || { wrong "the kubelet does not delete old ResourceSlices"; return; }
  touch "$node/takes_drivers"
  until_true 30 is_value "$slices?fieldSelector=spec.nodeName=$node_name" '.items | length' 1 ||
    wrong "gpu_driver publishes no GPUs"
}

# node_down: ends every process of the node. Its mounts go with them.
node_down() {
  local hierarchy
  [[ -n ${node:-} && -f $node/pid ]] || return 0
  kill -KILL "$(<"$node/pid")" 2>/dev/null || true
  while read -r hierarchy; do
    [[ -d $hierarchy/$node_cgroup ]] || continue
    until_true 10 remove_cgroup "$hierarchy/$node_cgroup" || wrong "$hierarchy/$node_cgroup cannot be removed" || true
  done < <(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts)
  rm -f "$node/pid"
}

# Works when the last process has gone.
remove_cgroup() { find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; [[ ! -d $1 ]]; }
