# Every guard of docs/isolation.md on cgroup v2 alone, tried by jobs of ordinary users; sourced by scripts/check_machine.

check_guards() {
  start_machine guards || return 0
  expect "every guard is held" inside "gpu-platform status --json | jq -e 'all(.isolation[]; .held)'"
  guard_user
  guard_memory
  guard_processes
  guard_cpu
  guard_disk
  guard_devices
  guard_folders
  guard_tree
  have_gpus
  guard_cores
  pull_the_plug
}

guard_user() {
  local job
  job=$(submit_as alice -- sh -c 'id -un; grep NoNewPrivs /proc/self/status; kill -0 1')
  need until_job "$job" FAILED 30
  expect "user: a job is its user, gains no rights and signals no other's process" \
    inside "gpu-platform jobs logs $job | tr '\n' ' ' | grep -E '^alice NoNewPrivs:.1 .*not permitted'"
}

guard_memory() {
  local neighbour job
  neighbour=$(submit_as bob --memory 64M -- sh -c 'sleep 1000')
  job=$(submit_as alice --memory 64M -- perl -e '$x = "x" x (200 << 20); print "took it\n"; sleep 100')
  need until_job "$job" FAILED 60
  expect "memory: a job over its --memory ends OUT_OF_MEMORY" test "$(of_job "$job" .reason)" = OUT_OF_MEMORY
  expect "memory: its neighbour goes on" until_job "$neighbour" RUNNING 20
  expect "memory: the wall is the kernel's, swap included" \
    in_cgroup "$neighbour" '(( $(<memory.max) == 64 << 20 && $(<memory.swap.max) == 0 ))'
  cancel "$neighbour"
}

guard_processes() {
  local job
  job=$(submit_as alice -- perl -e 'while (1) { fork // select undef, undef, undef, 0.5 }')
  need until_job "$job" RUNNING 30
  expect "process-count: a fork bomb is stopped" until_in_cgroup "$job" 30 'grep -qE "max [1-9]" pids.events'
  expect "process-count: at execution.max_processes" in_cgroup "$job" '(( $(<pids.max) == 64 && $(<pids.current) <= 64 ))'
  cancel "$job"
  expect "process-count: nothing of it is left" inside "! pgrep -u alice"
}
until_in_cgroup() { local limit=$((SECONDS + $2)); until in_cgroup "$1" "$3"; do (( SECONDS < limit )) || return 1; sleep 0.3; done; }

# On one core for both, by the jobs' own will: there they have to share.
guard_cpu() {
  local large small spin='taskset -p -c 0 $$ >/dev/null; while :; do :; done' before after
  large=$(submit_as alice --cpus 60 -- sh -c "$spin")
  small=$(submit_as bob --cpus 20 -- sh -c "$spin")
  need until_job "$large" RUNNING 30
  need until_job "$small" RUNNING 30
  sleep 1
  before=($(cpu_time "$large") $(cpu_time "$small"))
  sleep 8
  after=($(cpu_time "$large") $(cpu_time "$small"))
  local share
  share=$(ratio $((after[0] - before[0])) $((after[1] - before[1])))
  expect "cpu: of one core 60 CPUs get $((share / 100)).$((share % 100)) times what 20 get (3)" between 190 "$share" 450
  cancel "$large" "$small"
}
cpu_time() { in_cgroup "$1" 'sed -n "s/^usage_usec //p" cpu.stat'; }

# From here on the daemon sees the machine's own GPUs.
have_gpus() {
  make_board
  need inside "cd /etc/systemd/system/gpu-platform.service.d
    sed -i 's/ --emulate [^ ]*//; /^.Service/a Environment=GPU_EMULATOR_STATE=/srv/board/state' emulated.conf
    systemctl daemon-reload && systemctl restart gpu-platform"
  need until_inside 60 "gpu-platform status --json | jq -e '.nodes[] | select(.name == \"machine\")'"
}

guard_cores() {
  local job gpu near
  job=$(submit_as alice --gpus 1 --nodelist machine --memory 32M -- sh -c \
    'taskset -c 0,1 grep Cpus_allowed_list /proc/self/status; taskset -c 0 echo on 0; taskset -c 1 echo on 1; sleep 1000')
  need until_printed "$job" 30 'on [01]'
  gpu=$(of_job "$job" '.gpus[0].index')
  near=$((gpu / 2))
  expect "cores: a job on GPU $gpu is on core $near" in_cgroup "$job" "[[ \$(<cpuset.cpus.effective) == $near ]]"
  expect "cores: it cannot leave it with taskset" \
    inside "gpu-platform jobs logs $job | tr -s '[:space:]' ' ' | grep -E 'Cpus_allowed_list: $near .*on $near' | grep -v 'on $((1 - near))'"
  cancel "$job"
}

# Of QEMU's disk: BFQ shares its time by weight, the wall of bytes a second holds exactly.
guard_disk() {
  local large small before after share read='while :; do dd if=$0 of=/dev/null iflag=direct bs=128k status=none; done' user
  for user in alice bob; do
    inside "setpriv --reuid $user --regid $user --clear-groups dd if=/dev/zero of=/home/$user/data bs=1M count=32 status=none"
  done
  need inside "sync; echo bfq >/sys/block/vda/queue/scheduler"
  expect "disk: its scheduler knows weights" inside "grep '\[bfq\]' /sys/block/vda/queue/scheduler"
  large=$(submit_as alice --cpus 60 -- sh -c "$read" /home/alice/data)
  small=$(submit_as bob --cpus 20 -- sh -c "$read" /home/bob/data)
  need until_job "$large" RUNNING 30
  need until_job "$small" RUNNING 30
  expect "disk: a job of 60 CPUs has the weight 600, for both that read one" \
    in_cgroup "$large" 'grep -q "^default 600" io.weight && grep -q "^default 600" io.bfq.weight'
  before=($(bytes_read "$large") $(bytes_read "$small"))
  sleep 10
  after=($(bytes_read "$large") $(bytes_read "$small"))
  share=$(ratio $((after[0] - before[0])) $((after[1] - before[1])))
  expect "disk: 60 CPUs read $((share / 100)).$((share % 100)) times what 20 read (3)" between 160 "$share" 500
  need inside "systemctl set-property --runtime gpu-platform-jobs.scope 'IOReadBandwidthMax=/dev/vda 1M'"
  sleep 1
  before=($(bytes_read "$large") $(bytes_read "$small") $(inside 'date +%s%N'))
  sleep 8
  after=($(bytes_read "$large") $(bytes_read "$small") $(inside 'date +%s%N'))
  local rate=$(( (after[0] + after[1] - before[0] - before[1]) * 1000000 / ((after[2] - before[2]) / 1000) ))
  expect "disk: what a site allows gpu-platform-jobs.scope all jobs have together: $((rate >> 10)) KiB/s of 977" \
    between 500000 "$rate" 1200000
  need inside "systemctl set-property --runtime gpu-platform-jobs.scope IOReadBandwidthMax=; echo none >/sys/block/vda/queue/scheduler"
  cancel "$large" "$small"
}
bytes_read() { in_cgroup "$1" 'grep -o "rbytes=[0-9]*" io.stat | cut -d= -f2'; }

guard_devices() {
  local job
  need inside 'mkdir -p /srv/gpus; for minor in 0 1 2 3; do mknod -m 666 /srv/gpus/$minor c 195 $minor; done; chmod 666 /dev/vda /dev/mem'
  job=$(submit_as alice --gpus 1 --nodelist two-cores-1 -- sh -c \
    'for node in /srv/gpus/* /dev/vda /dev/mem /dev/null; do (exec 3<$node) 2>&1 | sed "s,.*: ,$node: ,"; done; echo tried all')
  need until_printed "$job" 30 'tried all'
  local gpu
  gpu=$(of_job "$job" '.gpus[0].index')
  printed_by "$job" >"$machine/devices" || expect "devices: the job's output can be read" false
  expect "devices: its own GPU $gpu has no driver and no guard" grep "gpus/$gpu: No such device" "$machine/devices"
  expect "devices: the three others, the disk and the memory are refused" \
    test "$(grep -c 'not permitted' "$machine/devices")" = 5
  need inside 'chmod 600 /dev/vda /dev/mem'
}

guard_folders() {
  local first second
  first=$(submit_as alice -- sh -c 'echo secret >/tmp/mine; echo secret >/dev/shm/mine; echo written; sleep 1000')
  need until_printed "$first" 30 written
  second=$(submit_as alice -- sh -c 'ls -A /tmp /dev/shm; echo seen')
  need until_printed "$second" 30 seen
  expect "folders: /tmp and /dev/shm of a job are its own" \
    inside "! gpu-platform jobs logs $second | grep mine && ! ls /tmp/mine /dev/shm/mine 2>/dev/null"
  cancel "$first"
}

guard_tree() {
  local job
  job=$(submit_as bob -- sh -c 'trap "" TERM HUP; (setsid sh -c "trap \"\" TERM; sleep 1001 & sleep 1002" &) & echo away; sleep 1003')
  need until_printed "$job" 30 away
  cancel "$job"
  expect "processes: a job that hides processes in sessions of their own ends with all of them" inside "! pgrep -u bob"
}
