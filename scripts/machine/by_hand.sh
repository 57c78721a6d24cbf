# `gpu-platform serve` by root on a machine with a systemd that passes neither cpu nor cpuset on; sourced by
# scripts/check_machine.

check_by_hand() {
  local job unit=gpu-platform
  start_machine by-hand systemd.mask=$unit.service systemd.mask=$unit-launcher.service systemd.mask=$unit-jobs.service || return 0
  expect "systemd passes neither cpu nor cpuset on at the top" inside "! grep -w cpu /sys/fs/cgroup/cgroup.subtree_control"
  serve_by_hand --emulate dgx-h100
  expect "every guard is held all the same" inside "gpu-platform status --json | jq -e 'all(.isolation[]; .held)'"
  expect "in a scope of systemd's, delegated and without a limit of tasks" \
    test "$(inside "systemctl show -p ActiveState,Delegate,TasksMax 'gpu-platform-*.scope'" | sort | tr '\n' ' ')" = \
    "ActiveState=active Delegate=yes TasksMax=infinity "
  guard_cpu
  stop_by_hand
  make_board
  serve_by_hand
  guard_cores
  job=$(submit_as alice --gpus 1 --nodelist machine --memory 32M -- sh -c 'sleep 1000')
  need until_job "$job" RUNNING 30
  need inside 'for round in 1 2 3; do systemctl daemon-reload; done
    systemd-run --quiet -p CPUWeight=50 sleep 0.1; sleep 1; systemctl daemon-reexec'
  walls_stand "systemd reloaded, and done with another unit that wanted cpu"
  need inside "pkill -KILL -f 'gpu-platform-node [l]auncher'"
  expect "the launcher is back" until_inside 30 "gpu-platform status --json | jq -e 'all(.isolation[]; .held)'"
  walls_stand "the launcher killed"
  need inside "pkill -KILL -f 'gpu-platform [s]erve'"
  serve_by_hand
  walls_stand "the daemon killed and started anew"
  stop_by_hand
  expect "with the daemon stopped the scope is there as long as its job" inside "systemctl is-active 'gpu-platform-*.scope'"
  serve_by_hand
  walls_stand "the daemon stopped and started anew"
  cancel "$job"
  stop_by_hand
  expect "nothing is left of the scope after the last process" \
    until_inside 30 "! ls -d /sys/fs/cgroup/system.slice/gpu-platform-*.scope /sys/fs/cgroup/gpu-platform-*"
  serve_by_hand
  expect "and one is made anew" inside "systemctl is-active 'gpu-platform-*.scope'"
  stop_by_hand
  need inside "mv /usr/bin/systemd-run /usr/bin/systemd-run-away"
  serve_by_hand
  expect "where systemd cannot be asked, the daemon says what does not hold and why" \
    inside "gpu-platform status --json | jq -e '.isolation[] | select(.guard == \"cores\") | (.held | not) and (.reason | test(\"systemd-run\"))'"
  expect "and jobs run" until_job "$(inside 'cd / && gpu-platform submit --user alice -- true 2>/dev/null')" COMPLETED 30
  pull_the_plug
}

# serve_by_hand [OPTION…]
serve_by_hand() {
  need inside 'GPU_EMULATOR_STATE=/srv/board/state setsid gpu-platform serve '"$*"' --config /etc/gpu-platform/config.yaml --data-dir /srv/data \
    --socket /run/gpu-platform/gpu-platform.sock >>/srv/serve.log 2>&1 </dev/null & disown'
  expect "serve answers" until_inside 60 "gpu-platform status --json" || inside 'cat /srv/serve.log' >&2
}
stop_by_hand() {
  need inside "pkill -f 'gpu-platform [s]erve' && while pgrep -f 'gpu-platform [s]erve'; do sleep 0.1; done"
}

# Of $job.
walls_stand() {
  expect "$1: the job runs behind its walls" \
    in_cgroup "$job" 'kill -0 $pid && [[ $PWD == */gpu-platform-*.scope/* && $(<cpuset.cpus) == [01] && -n $(<cpu.weight) ]]'
}
