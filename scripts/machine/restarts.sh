# A job outlives any fault of the services; sourced by scripts/check_machine.

check_restarts() {
  local job pid unit
  start_machine restarts || return 0
  have_gpus
  job=$(submit_as alice --gpus 1 --nodelist machine --memory 64M -- sh -c 'until [ -e /home/alice/flag ]; do sleep 0.2; done')
  need until_job "$job" RUNNING 30
  pid=$(of_job "$job" '.attempts[-1].pid')
  for unit in gpu-platform gpu-platform-launcher; do
    need inside "systemctl restart $unit"
    is_untouched "$unit restarted"
    need inside "systemctl kill --kill-who=main -s KILL $unit"
    is_untouched "$unit killed"
  done
  # Whether systemd does or refuses it, the job runs on.
  inside "systemctl stop gpu-platform-jobs.scope && systemctl restart gpu-platform-launcher" || true
  is_untouched "the scope of jobs stopped, the launcher restarted"
  need inside 'for round in 1 2 3 4 5; do systemctl daemon-reload; done; systemctl daemon-reexec'
  is_untouched "systemd reloaded and executed anew"
  expect "the job's walls are where they were" \
    in_cgroup "$job" '(( $(<memory.max) == 64 << 20 )) && [[ $(<cpuset.cpus) == [01] && $(<pids.max) == 64 ]]'
  expect "another job starts" until_job "$(submit_as bob -- true)" COMPLETED 60
  need inside 'touch /home/alice/flag'
  expect "the job completes" until_job "$job" COMPLETED 30
  expect "in its first attempt" test "$(of_job "$job" .attempt)" = 1
  pull_the_plug
}

# Within check_restarts, of $job and $pid.
is_untouched() {
  need until_inside 60 "gpu-platform status --json"
  expect "$1: the job runs on, as the same process" \
    inside "kill -0 $pid && gpu-platform jobs describe $job --json | jq -e '.state == \"RUNNING\" and .attempts[-1].pid == $pid'"
}
