# Jobs in the machine, for what scripts/check_machine looks at; sourced by it.

# need COMMAND…: makes or waits for what the next checks stand on; where it fails, that is wrong, too.
need() { "$@" >/dev/null || expect "needed by the next check: $*" false; }

# submit_as USER ARGUMENT…: prints the id.
submit_as() {
  local user=$1
  shift
  inside "cd / && setpriv --reuid $user --regid $user --init-groups gpu-platform submit $(printf '%q ' "$@") 2>/dev/null"
}
# of_job ID FILTER: what jq makes of the job.
of_job() { inside "gpu-platform jobs describe $1 --json | jq -r '$2'"; }
until_job() { until_inside "$3" "gpu-platform jobs describe $1 --json | jq -e '.state == \"$2\"'"; }
# in_cgroup ID COMMAND: with the cgroup of a running job as the working directory, and $pid its first process.
in_cgroup() {
  inside "pid=\$(gpu-platform jobs describe $1 --json | jq -r '.attempts[-1].pid')
    cd /sys/fs/cgroup\$(sed -n s/^0:://p /proc/\$pid/cgroup) && { $2; }"
}
printed_by() { inside "gpu-platform jobs logs $1"; }
# until_printed ID SECONDS PATTERN
until_printed() { until_inside "$2" "gpu-platform jobs logs $1 | grep -qE '$3'"; }
# The exit status of `wait` is that of the job that was killed.
cancel() { need inside "gpu-platform jobs kill $* && { for id in $*; do gpu-platform jobs wait \$id; done; true; }"; }

# start_machine NAME [KERNEL-ARGUMENT…]: a new one, up, with the daemon answering.
start_machine() {
  local name=$1
  shift
  new_machine "$name"
  power_on "$@"
  wait_for_up 180 || { not_up; return 1; }
  [[ $* == *mask=gpu-platform* ]] || until_inside 180 "gpu-platform status --json" || { not_up; return 1; }
}
not_up() {
  expect "the machine comes up" false
  tail -15 "$machine/console.log" >&2
  inside "journalctl -b --no-pager -n 30 -u 'gpu-platform*'" >&2 || true
  pull_the_plug
}

# Where the machine's driver (the emulated one) finds four GPUs that are the machine's own, two near each core. Jobs on
# emulated nodes are not bound to cores, since the board's are not the machine's.
make_board() {
  need inside "[ -e /srv/board ] || gpu-emulator create --board two-cores --node-name machine --dir /srv/board
    chmod -R a+rwX /srv/board"
}

# ratio OF TO: of two numbers, in hundredths.
ratio() { echo $(( $1 * 100 / ($2 > 0 ? $2 : 1) )); }
# between LOW VALUE HIGH
between() { (( $1 <= $2 && $2 <= $3 )); }
