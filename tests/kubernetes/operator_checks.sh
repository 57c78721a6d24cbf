# What docs/kubernetes.md promises of workloads that were not submitted through the platform, with the operators that make
# their pods. Sourced by scripts/check_operators after checks.sh. Workloads are in the namespace "ml"; four nodes have eight
# GPUs each.

their_pods=/api/v1/namespaces/ml/pods
torch_jobs=/apis/kubeflow.org/v1/namespaces/ml/pytorchjobs
job_sets=/apis/jobset.x-k8s.io/v1alpha2/namespaces/ml/jobsets
ray_clusters=/apis/ray.io/v1/namespaces/ml/rayclusters

# ---- The site ----

put_workload_site() {
  local node gpus='{"nvidia.com/gpu": "8"}'
  objects nodes node 4 | put admin || return
  for node in node-{0..3}; do
    send admin PATCH "/api/v1/nodes/$node/status" "{\"status\": {\"capacity\": $gpus, \"allocatable\": $gpus}}" \
      application/merge-patch+json >/dev/null || return
  done
  put admin <<'END' || return
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"gpu-platform/queue": "default", "gpu-platform/user": "backup"}}}
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-platform-jobs"}}
END
  objects access gpu-platform-jobs | put admin && objects access-queue ml | put admin || return
  put_policies && until_true 60 is_gate_put || wrong "the policies put no gate on a pod"
}
is_gate_put() {
  send admin POST "$their_pods?dryRun=All" "$(pod_of probe '.metadata.namespace = "ml" |
    .spec.containers[0].resources.limits["nvidia.com/gpu"] = "1"')" | jq -e .spec.schedulingGates >/dev/null
}

platform() { "$build/gpu-platform" --server "unix:$cluster/daemon/socket" "$@"; }

# On the same data each time.
daemon_up() {
  mkdir -p "$cluster/daemon"
  cat >"$cluster/daemon/config.yaml" <<END
execution: {min_uid: 1}
policies: {preempt_min_runtime: 0s}
engines:
  local: false
  kubernetes:
    kubeconfig: $cluster/platform.kubeconfig
    namespace: gpu-platform-jobs
    devices: counts
    workloads: {enabled: true}
END
  setsid "$build/gpu-platform" serve --config "$cluster/daemon/config.yaml" --data-dir "$cluster/daemon/data" \
    --socket "$cluster/daemon/socket" </dev/null >>"$cluster/log/daemon" 2>&1 &
  daemon=$!
  disown
  until_true 60 eval "platform status >/dev/null 2>&1" || wrong "the daemon does not start"
}
daemon_down() { [[ -z ${daemon:-} ]] || kill -KILL "$daemon" 2>/dev/null || true; }

# ---- What is seen ----

free_gpus() { platform status --json | jq .available_gpus; }
has_free_gpus() { [[ $(free_gpus) == "$1" ]]; }

# pods_in NAME PHASE: how many pods of a workload are in it and are not being deleted.
pods_in() {
  api admin GET "$their_pods" | jq --arg name "$1-" --arg phase "$2" '[.items[] | select((.metadata.name | startswith($name))
    and .status.phase == $phase and .metadata.deletionTimestamp == null)] | length'
}
has_pods_in() { [[ $(pods_in "$1" "$2") == "$3" ]]; }
run() { until_true 60 has_pods_in "$1" Running "$2"; }

# jobs_of NAME: those of a workload as a list, the oldest first.
jobs_of() {
  platform jobs list --all --json | jq -c --arg name "/$1/" '[.jobs[] | select((.spec.workload // "") | contains($name))] |
    sort_by(.id | tonumber)'
}
# last_job NAME JQ-FILTER: of the newest job of a workload.
last_job() { jobs_of "$1" | jq -r "last | $2"; }
# expect_job CLAIM NAME JQ-FILTER WANTED: within a minute.
is_last_job() { [[ $(last_job "$1" "$2") == "$3" ]]; }
expect_job() {
  until_true 60 is_last_job "$2" "$3" "$4" || true
  expect "$1" "$4" "$(last_job "$2" "$3")"
}

# condition_of NAME: what the condition gpu-platform/Admitted says of the pods of a workload: "REASON: MESSAGE".
condition_of() {
  api admin GET "$their_pods" | jq -r --arg name "$1-" '[.items[] | select(.metadata.name | startswith($name)) |
    .status.conditions[]? | select(.type == "gpu-platform/Admitted") | "\(.reason): \(.message)"] | unique | join("; ")'
}
is_said() { [[ $(condition_of "$1") == *"$2"* ]]; }
expect_said() {  # CLAIM NAME PART
  until_true 60 is_said "$2" "$3" || true
  if is_said "$2" "$3"; then right "$1"; else fail "$1: wanted '…$3…', got '$(condition_of "$2")'"; fi
}

# ---- What is done ----

# make COLLECTION NAME: the manifest on stdin, which has NAME where its name belongs.
make() { send admin POST "$1" "$(sed "s/NAME/$2/")" application/yaml >/dev/null; }
change() { send admin PATCH "$1" "$2" application/merge-patch+json >/dev/null; }  # PATH MERGE-PATCH
delete() { api admin DELETE "$1" >/dev/null; }

running_pods() {  # PREFIX: the names and uids of those whose name begins so
  api admin GET "$their_pods" | jq -r --arg name "$1" '.items[] | select((.metadata.name | startswith($name)) and
    .status.phase == "Running") | "\(.metadata.name) \(.metadata.uid)"'
}
does_not_run() { [[ $(value_of "$their_pods/$1" 'select(.status.phase == "Running") | .metadata.uid') != "$2" ]]; }

# end_pods PREFIX [EXIT-CODE]: all that run and whose name begins so; returns when they have ended. The operator may remove
# the others when the first one ends.
end_pods() {
  local pod uid
  while read -r pod uid; do
    change "$their_pods/$pod" "{\"metadata\": {\"annotations\": {\"gpu-platform.test/run-seconds\": \"0\",
      \"gpu-platform.test/exit-code\": \"${2:-0}\"}}}" 2>/dev/null || true
    until_true 30 does_not_run "$pod" "$uid" || fail "the pod $pod does not end"
  done < <(running_pods "$1")
}

# torch_job NAME WORKERS RESTART-POLICY [RUN-POLICY]: a master and workers, each of eight GPUs.
torch_job() {
  make "$torch_jobs" "$1" <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME}
spec:
  runPolicy: ${4:-{\}}
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      restartPolicy: $3
      template:
        metadata: {annotations: {gpu-platform/priority: low}}
        spec: {containers: [{name: pytorch, image: example.org/torch:2, resources: {limits: {nvidia.com/gpu: 8}}}]}
    Worker: {<<: *role, replicas: $2}
END
}

# job_set NAME [FIELD]: a driver without GPUs and two jobs of two workers, each of four GPUs.
job_set() {
  make "$job_sets" "$1" <<END
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: NAME}
spec:
  ${2:-suspend: false}
  replicatedJobs:
    - name: driver
      template: {spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: driver, image: example.org/driver:1}]}}}}
    - name: workers
      replicas: 2
      template:
        spec:
          backoffLimit: 0
          parallelism: 2
          completions: 2
          template:
            metadata: {annotations: {gpu-platform/priority: low}}
            spec:
              restartPolicy: Never
              containers: [{name: worker, image: example.org/torch:2, resources: {limits: {nvidia.com/gpu: 4}}}]
END
}

ray_cluster() {  # NAME: a head without GPUs and two workers, each of eight
  make "$ray_clusters" "$1" <<'END'
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: NAME}
spec:
  rayVersion: 2.46.0
  headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: "rayproject/ray:2.46.0"}]}}}
  workerGroupSpecs:
    - groupName: gpu
      minReplicas: 2
      maxReplicas: 4
      rayStartParams: {}
      template: {spec: {containers: [{name: worker, image: "rayproject/ray:2.46.0", resources: {limits: {nvidia.com/gpu: 8}}}]}}
END
}

# ---- The checks ----

check_roles() {
  until_true 60 has_free_gpus 32 || fail "the daemon does not see the GPUs of the cluster"
  torch_job wide 3 OnFailure
  run wide 4 || fail "the roles of a PyTorchJob do not start"
  expect_job "a PyTorchJob with four roles is one job" wide '"\(.state) \(.spec.workload_pods)"' "RUNNING 4"
  expect "its pods have a node each" 4 "$(api admin GET "$their_pods" | jq '[.items[].spec.nodeName] | unique | length')"
  expect_said "they say that they are admitted" wide "Admitted: job $(last_job wide .id), attempt 1, on node node-"
  torch_job next 1 OnFailure
  expect_job "the next PyTorchJob waits" next .state QUEUED
  expect_said "its pods say why" next "NoCapacity: job $(last_job next .id): "
  end_pods wide-
  expect_job "it ends as its pods do" wide '"\(.state) \(.exit_code)"' "COMPLETED 0"
  run next 2 || fail "the next PyTorchJob does not start"
}

# The PyTorchJob "next" runs.
check_replacement() {
  end_pods next-worker-0 3
  run next 2 || fail "the operator does not replace a pod that failed"
  expect_job "a pod that failed and is replaced leaves its job as it is" next '"\(.state) \(.attempts | length)"' "RUNNING 1"
  stop_program training-operator
  end_pods next-worker-0 3
  until_true 30 has_pods_in next Failed 1 || fail "the pod does not fail"
  start_kubeflow
  run next 2 || fail "an operator that is started again does not replace the pod"
  end_pods next-
  expect_job "nor does it matter that the operator is started again meanwhile" next '"\(.state) \(.attempts | length)"' "COMPLETED 1"
  torch_job fails 1 Never
  run fails 2 || fail "a PyTorchJob does not start"
  end_pods fails-worker-0 3
  end_pods fails-master-0 0
  expect_job "a PyTorchJob that fails has the exit code of the pod that did" fails '"\(.state) \(.exit_code)"' "FAILED 3"
}

# submit_urgent NODES: eight GPUs of each; sets `urgent` to the job.
submit_urgent() {
  urgent=$(platform submit --nodes "$1" --gpus-per-node 8 --priority critical --image example.org/x:1 --user backup -- train)
}
cancel() { platform jobs cancel "$1" >/dev/null 2>&1; }

check_preemption() {
  local urgent
  torch_job low 3 OnFailure
  run low 4 || fail "a PyTorchJob does not start"
  submit_urgent 1
  expect_job "a job of a higher class preempts a PyTorchJob" low '"\(.state) \(.attempts[0].reason)"' "QUEUED PREEMPTED"
  until_true 60 has_pods_in low Pending 4 || fail "the operator does not make the pods of the next attempt"
  cancel "$urgent"
  run low 4 || fail "the pods of the next attempt do not start"
  expect_job "the pods that the operator makes next are its next attempt" low '"\(.state) \(.attempts | length)"' "RUNNING 2"
  cancel "$(last_job low .id)"
  expect_job "a job that is cancelled ends" low .state CANCELLED
  expect_said "the pods that the operator makes then stay gated and say what to do" low "delete the workload"
  delete "$torch_jobs/low"
  torch_job never 3 Never
  run never 4 || fail "a PyTorchJob does not start"
  submit_urgent 1
  expect_job "a PyTorchJob that never restarts is over when it is preempted" never '"\(.state) \(.detail)"' \
    "CANCELLED its workload has finished"
  cancel "$urgent"
}

check_deletion_and_suspension() {
  torch_job gone 1 OnFailure
  run gone 2 || fail "a PyTorchJob does not start"
  delete "$torch_jobs/gone"
  expect_job "a PyTorchJob that is deleted ends its job" gone '"\(.state) \(.detail)"' "CANCELLED its workload was deleted"
  torch_job paused 1 OnFailure
  run paused 2 || fail "a PyTorchJob does not start"
  change "$torch_jobs/paused" '{"spec": {"runPolicy": {"suspend": true}}}'
  expect_job "one that is suspended ends its job" paused '"\(.state) \(.detail)"' "CANCELLED its workload was suspended"
  until_true 30 has_free_gpus 32 || true
  expect "and holds no GPU" 32 "$(free_gpus)"
  change "$torch_jobs/paused" '{"spec": {"runPolicy": {"suspend": false}}}'
  run paused 2 || fail "a PyTorchJob that is resumed does not start"
  expect "when it is resumed, it is another job" 2 "$(jobs_of paused | jq length)"
  delete "$torch_jobs/paused"
}

check_daemon_killed() {
  torch_job quick 1 OnFailure '{cleanPodPolicy: All, activeDeadlineSeconds: 600}'
  run quick 2 || fail "a PyTorchJob does not start"
  expect_job "the deadline of a PyTorchJob is its job's time limit" quick '.spec.time_limit_seconds | tostring' 600
  torch_job long 1 OnFailure
  run long 2 || fail "a PyTorchJob does not start"
  expect_job "another one runs beside it" long .state RUNNING
  daemon_down
  end_pods quick-
  end_pods long-worker-0 3
  until_true 30 has_pods_in quick Succeeded 0 || fail "the operator does not clean up"
  until_true 30 has_pods_in long Pending 1 || fail "the operator does not replace the pod"
  daemon_up || failures=$((failures + 1))
  expect_job "a PyTorchJob that has done its work and is cleaned up while no daemon runs is COMPLETED" quick \
    '"\(.state) \(.exit_code)"' "COMPLETED 0"
  run long 2 || fail "a pod that was replaced while no daemon ran is not admitted"
  expect_job "one whose pod is replaced meanwhile goes on" long '"\(.state) \(.attempts | length)"' "RUNNING 1"
  end_pods long-
  expect_job "and ends as its pods do" long '"\(.state) \(.exit_code)"' "COMPLETED 0"
}

check_job_set() {
  local urgent
  job_set set 'failurePolicy: {maxRestarts: 2}'
  run set 5 || fail "the pods of a JobSet do not start"
  expect_job "a JobSet of three Jobs is one job, its pods with GPUs count" set '"\(.state) \(.spec.workload_pods)"' "RUNNING 4"
  end_pods set-workers-0-0 7
  until_true 60 is_value "$job_sets/set" .status.restarts 1 || fail "the JobSet does not restart"
  run set 5 || fail "the pods of a JobSet that restarts do not start"
  expect_job "it goes on when the JobSet restarts all pods" set '"\(.state) \(.attempts | length)"' "RUNNING 1"
  submit_urgent 3
  expect_job "a job of a higher class preempts it" set '"\(.state) \(.attempts[0].reason)"' "QUEUED PREEMPTED"
  cancel "$urgent"
  run set 5 || fail "the pods of a JobSet that was preempted do not start again"
  expect_job "and it starts again when that one is over" set '"\(.state) \(.attempts | length)"' "RUNNING 2"
  end_pods set-
  expect_job "it ends as its pods do" set '"\(.state) \(.exit_code)"' "COMPLETED 0"
  job_set later 'suspend: true'
  job_set order 'startupPolicy: {startupPolicyOrder: InOrder}'
  expect_said "a JobSet that starts in order is refused" order "Refused: its JobSet starts its jobs one after the other"
  delete "$job_sets/order"
  job_set strict
  run strict 5 || fail "the pods of a JobSet do not start"
  submit_urgent 3
  expect_job "a JobSet without restarts is over when it is preempted" strict '"\(.state) \(.detail)"' \
    "CANCELLED its workload has finished"
  cancel "$urgent"
  expect "a JobSet that is suspended from the start is no job" 0 "$(jobs_of later | jq length)"
  change "$job_sets/later" '{"spec": {"suspend": false}}'
  run later 5 || fail "a JobSet that is resumed does not start"
  change "$job_sets/later" '{"spec": {"suspend": true}}'
  expect_job "a JobSet that is suspended ends its job" later '"\(.state) \(.detail)"' "CANCELLED its workload was suspended"
  delete "$job_sets/later"
}

check_ray() {
  local pod uid
  ray_cluster ray
  run ray 3 || fail "the pods of a RayCluster do not start"
  expect_job "a RayCluster is one job of its workers" ray '"\(.state) \(.spec.workload_pods)"' "RUNNING 2"
  read -r pod uid < <(running_pods ray-gpu-worker)
  delete "$their_pods/$pod"
  until_true 30 does_not_run "$pod" "$uid" || fail "the pod $pod does not end"
  run ray 3 || fail "the operator does not replace a worker"
  expect_job "it goes on when a worker is replaced" ray '"\(.state) \(.attempts | length)"' "RUNNING 1"
  delete "$ray_clusters/ray"
  expect_job "and is CANCELLED when it is deleted" ray '"\(.state) \(.detail)"' "CANCELLED its workload was deleted"
}

run_operator_checks() {
  check_roles
  check_replacement
  check_preemption
  check_deletion_and_suspension
  check_daemon_killed
  check_job_set
  check_ray
  (( failures == 0 ))
}
