# A whole machine under QEMU, made by scripts/machine/make; sourced by scripts/check_machine. Expects in $machine the
# folder of its disk, in $parts that of its kernel. What it leaves behind is in $machine: console.log, ledger.
#
# The disk. QEMU gets it from nbdkit with a cache that nothing but a flush of the machine writes back (cache=writeback), as
# a disk has one that loses it with the power. To pull the plug is: QEMU stands still, nbdkit is killed, QEMU is killed.
# What the machine had flushed is then in disk.img, what it had not is gone, also what had already left its kernel. To
# kill QEMU alone would lose no more than the memory of the machine.

accelerator=tcg
disk_pid='' machine_pid='' orders='' answers=''

# power_on: begins to boot.
power_on() {
  start_disk
  rm -f "$machine"/orders.{in,out}
  mkfifo "$machine"/orders.{in,out}
  # Both ends are open before QEMU is there, so that neither waits for the other.
  exec {orders}<>"$machine/orders.in" {answers}<>"$machine/orders.out"
  qemu-system-x86_64 -M pc -accel "$accelerator" -cpu max -smp 2 -m 1024 -nodefaults -display none \
    -object memory-backend-ram,size=512M,id=near0 -numa node,nodeid=0,cpus=0,memdev=near0 \
    -object memory-backend-ram,size=512M,id=near1 -numa node,nodeid=1,cpus=1,memdev=near1 \
    -kernel "$parts"/kernel/boot/vmlinuz-* -initrd "$parts/initrd.gz" \
    -append "console=ttyS0 quiet mitigations=off random.trust_cpu=on panic=-1 no_timer_check systemd.show_status=0 $*" \
    -drive "file=nbd:unix:$machine/disk.sock,format=raw,if=virtio,cache=writeback" \
    -device virtio-serial-pci \
    -chardev "pipe,id=orders,path=$machine/orders" -device virtserialport,chardev=orders,name=orders \
    -chardev "file,id=ledger,path=$machine/ledger,append=on" -device virtserialport,chardev=ledger,name=ledger \
    -chardev "file,id=console,path=$machine/console.log,append=on" -serial chardev:console \
    {orders}>&- {answers}>&- </dev/null 2>>"$machine/qemu.log" &
  machine_pid=$!
}

# One that saved its cache goes on with it.
start_disk() {
  [[ -z $disk_pid ]] || return 0
  rm -f "$machine/disk.sock"
  TMPDIR=$machine nbdkit --foreground --exit-with-parent --unix "$machine/disk.sock" --filter=cache file "$machine/disk.img" \
    cache=writeback cache-min-block-size=4K 2>>"$machine/disk.log" &
  disk_pid=$!
  until [[ -S $machine/disk.sock ]]; do
    kill -0 "$disk_pid" 2>/dev/null || { cat "$machine/disk.log" >&2; return 1; }
    sleep 0.05
  done
}

# pull_the_plug [lost | kept]: the disk's cache goes with the power (default), or the disk saves it, as some do.
pull_the_plug() {
  [[ -n $machine_pid ]] || return 0
  kill -STOP "$machine_pid" 2>/dev/null || true
  if [[ ${1:-lost} == lost ]]; then stop_disk; fi
  kill -KILL "$machine_pid" 2>/dev/null || true
  wait "$machine_pid" 2>/dev/null || true
  machine_pid=''
  exec {orders}>&- {answers}>&-
}

# stop_disk: with all that is not written back.
stop_disk() {
  [[ -n $disk_pid ]] || return 0
  kill -KILL "$disk_pid" 2>/dev/null || true
  wait "$disk_pid" 2>/dev/null || true
  disk_pid=''
}

# next_answer SECONDS: the next line that the machine sends goes to $answer; fails where none comes, or it is off.
next_answer() {
  local part until=$((SECONDS + $1))
  answer=
  while (( SECONDS < until )); do
    # What came of a line before the time was up is kept.
    if IFS= read -r -t 1 -u "$answers" part; then answer+=$part; return 0; fi
    answer+=$part
    kill -0 "$machine_pid" 2>/dev/null || return 1
  done
  return 1
}

# wait_for_up SECONDS: until the machine takes orders; sets $boot_id.
wait_for_up() {
  while next_answer "$1"; do
    [[ $answer == up\ * ]] || continue
    boot_id=${answer#up }
    return 0
  done
  return 1
}

patience=60
# inside COMMAND: runs it in the machine, as root, with bash; prints what it printed, and has its exit status; 124 when
# no answer came in $patience seconds. One at a time: there is one line for orders.
inside() {
  local name=$RANDOM$RANDOM$RANDOM word code text answer
  printf '%s %s\n' "$name" "$(printf '%s' "$*" | base64 -w0)" >&"$orders"
  while next_answer "$patience"; do
    read -r word code text <<<"$answer"
    [[ $word == "$name" ]] || continue
    [[ -z $text ]] || { base64 -d <<<"$text"; echo; }
    return "$code"
  done
  return 124
}

# until_inside SECONDS COMMAND: until it succeeds there.
until_inside() {
  local until=$((SECONDS + $1))
  shift
  while ! inside "$@" >/dev/null; do
    (( SECONDS < until )) || return 1
    sleep 0.3
  done
}
