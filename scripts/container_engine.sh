# A container engine of a script's own; sourced, after lib.sh. Everything of it lies below one folder.
engine=  # its process; empty: there is none
engine_image=localhost/gp-busybox:1
engine_options=()

podman_here() { podman "${engine_options[@]}" "$@"; }

# start_engine FOLDER, whose name is short (Podman takes 50 characters): starts Podman's service, with an image of busybox alone, and writes FOLDER/rules, which
# execution.containers names. Prints why there is none, and nothing where it runs.
start_engine() {
  local folder=$1 program image=$1/image
  (( EUID == 0 )) || { echo "only root's engine is used"; return; }
  for program in podman busybox; do
    command -v "$program" >/dev/null || { echo "$program is not installed"; return; }
  done
  engine_options=(--root "$folder/root" --runroot "$folder/run" --tmpdir "$folder/tmp"
    --storage-driver vfs --cgroup-manager cgroupfs --events-backend none)
  mkdir -p "$image"/{bin,etc,dev,proc,sys,tmp}
  cp "$(command -v busybox)" "$image/bin/busybox"
  for program in sh cat id ls touch; do ln -s busybox "$image/bin/$program"; done
  echo "from the image" >"$image/etc/motd"
  tar -C "$image" -cf - . | podman_here import - "$engine_image" >/dev/null 2>"$folder/told" ||
    { echo "podman imports no image: $(head -1 "$folder/told")"; return; }
  podman_here run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "$engine_image" sh -c : 2>"$folder/told" ||
    { echo "podman runs no container here: $(head -1 "$folder/told")"; return; }
  podman "${engine_options[@]}" system service --time 0 "unix://$folder/socket" >/dev/null 2>&1 &
  engine=$!
  cat >"$folder/rules" <<RULES
socket $folder/socket
image ${engine_image%:*}:*
gpus nodes
ulimit nofile 1024
ulimit nproc 1024
RULES
}

stop_engine() {
  [[ -n $engine ]] || return 0
  podman_here rm --all --force --time 0 >/dev/null 2>&1 || true
  kill "$engine" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
  engine=
}
