#!/usr/bin/env python3
"""drive_grpc.py ADDRESS CA TOKEN_FILE: makes every call that server reflection lists once, successfully, and prints how
many they are. It knows the calls by reflection alone. The user of the token is an administrator."""

import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

LIMIT = 30  # seconds for one call
PACKAGE = "gpu_platform.v1."

address, ca_file, token_file = sys.argv[1:]
token = open(token_file).read().strip()
credentials = grpc.composite_channel_credentials(
    grpc.ssl_channel_credentials(open(ca_file, "rb").read()), grpc.access_token_call_credentials(token))
channel = grpc.secure_channel(address, credentials)
database = ProtoReflectionDescriptorDatabase(channel)
pool = descriptor_pool.DescriptorPool(database)

calls = {}
for service_name in database.get_services():
    if not service_name.startswith(PACKAGE):
        continue
    service = pool.FindServiceByName(service_name)
    for call_descriptor in service.methods:
        calls[f"{service.name}.{call_descriptor.name}"] = call_descriptor
made = set()


def begin(name, fields, **options):
    """The answer, or the answers of a stream, still to come."""
    made.add(name)
    described = calls[name]
    request = json_format.ParseDict(fields, message_factory.GetMessageClass(described.input_type)())
    answer = message_factory.GetMessageClass(described.output_type)
    kind = channel.unary_stream if described.server_streaming else channel.unary_unary
    invoke = kind(f"/{described.containing_service.full_name}/{described.name}",
                  request_serializer=lambda message: message.SerializeToString(),
                  response_deserializer=answer.FromString)
    return invoke(request, timeout=options.pop("timeout", LIMIT), **options)


def call(name, /, **fields):
    return begin(name, fields)


def first_of(name, /, **fields):
    stream = begin(name, fields)
    answer = next(stream)
    stream.cancel()
    return answer


def refused(name, code, /, **fields):
    try:
        answer = begin(name, fields)
        if calls[name].server_streaming:
            next(answer)
    except grpc.RpcError as error:
        assert error.code() == code, (name, error)
        return error
    raise AssertionError(f"{name} was not refused")


def submit(*command, **spec):
    return call("JobService.SubmitJob", spec={"command": list(command), **spec}).id


def until_running(job):
    for change in begin("JobService.WatchJob", {"id": job}):
        if change.job.started_at.seconds:
            return
    raise AssertionError(f"job {job} has not started")


# ---- jobs

job = submit("sh", "-c", "echo hello", gpus=1, name="first")
assert call("JobService.WaitJob", id=job, timeoutSeconds=20).HasField("ended_at")
assert call("JobService.GetJob", id=job).spec.name == "first"
assert call("UseService.GetJobUse", id=job).id == job
assert call("JobService.GetOutput", id=job).data == b"hello\n"
assert b"".join(piece.data for piece in call("JobService.StreamOutput", id=job)) == b"hello\n"
assert job in [one.id for one in call("JobService.ListJobs", state=["JOB_STATE_COMPLETED"]).jobs]
assert first_of("JobService.WatchJobs", afterSeq="1").seq > 1

job = submit("sleep", "600", gpus=8, preemptible=False)
until_running(job)
assert call("JobService.SignalJob", id=job, signal="CONT").changed
step = {"id": job, "step": {"attempt": 1, "number": 0, "name": "train", "tasks": 1,
                            "startedAt": call("JobService.GetJob", id=job).started_at.ToJsonString()}}
assert call("JobService.RecordStep", **step).changed
for channel_call in ("ExecInJob", "AttachToJob", "ForwardPort"):
    error = refused(f"JobService.{channel_call}", grpc.StatusCode.UNIMPLEMENTED, id=job)
    assert "WebSocket" in error.details(), error

waiting = submit("sleep", "600", gpus=8)
assert call("PlanningService.ExplainJob", id=waiting)
assert waiting in [one.id for one in call("JobService.GetQueue").jobs]
call("JobService.RaiseJob", id=waiting)
assert call("JobService.HoldJob", id=waiting).changed
assert call("JobService.ReleaseJob", id=waiting).changed
assert call("JobService.UpdateJob", id=waiting, spec={"comment": "later"}).changed
assert call("JobService.CancelJob", id=waiting).changed
assert call("JobService.RequeueJob", id=job, hold=True).changed
assert call("JobService.ActOnJobs", action="JOB_ACTION_KILL", ids=[job]).jobs
assert call("JobService.KillJob", id=submit("sleep", "600")).changed

# ---- the cluster

assert call("ClusterService.GetStatus").ListFields()
assert call("ClusterService.ListNodes").nodes[0].name == "dgx-h100-1"
gpus = call("ClusterService.ListGpus").gpus
assert len(gpus) == 8
assert call("ClusterService.GetGpuHealth", gpu="dgx-h100-1:0").ListFields()
assert first_of("ClusterService.WatchGpus", node="dgx-h100-1").gpu.index == 0
assert call("ClusterService.GetTopology", node="dgx-h100-1").ListFields()
assert first_of("TelemetryService.WatchReadings", node="dgx-h100-1").reading.node == "dgx-h100-1"
assert call("TelemetryService.ListReadings", gpu=["dgx-h100-1:0"]).readings
assert len(call("TelemetryService.QueryHistory", gpu=["dgx-h100-1:0"]).series) == 4
assert len(call("KpiService.GetKpi").kinds) == 4
assert call("ClusterService.DrainGpus", gpu="dgx-h100-1:7", reason="test").gpus
call("ClusterService.TakeGpusOffline", gpu="dgx-h100-1:7", reason="test")
assert call("ClusterService.BringGpusOnline", gpu="dgx-h100-1:7").gpus
assert call("ClusterService.GetHealth").ListFields()
assert call("ClusterService.GetReadiness").ListFields()
assert call("ClusterService.GetVersion").version

# ---- planning, reservations, teams, tokens, and the rest

assert call("PlanningService.CheckJob", spec={"command": ["true"], "gpus": 1}).ListFields()
assert call("PlanningService.SizeModelServer", model="llama-3-70b").gpus > 0
made_reservation = call("ReservationService.CreateReservation", name="grpc", users=["backup"], gpus=1, durationSeconds=60,
                        ignoreRunning=True)
assert made_reservation.name == "grpc"
assert call("ReservationService.GetReservation", name="grpc").begin == made_reservation.begin
assert call("ReservationService.ListReservations").reservations
assert call("ReservationService.UpdateReservation", name="grpc", durationSeconds=120).name == "grpc"
assert call("ReservationService.CancelReservation", name="grpc").name == "grpc"
assert call("TeamService.CreateTeam", name="speech", maxGpus=4).max_gpus == 4
assert call("TeamService.SetTeam", name="speech", maxGpus=2).max_gpus == 2
assert call("TeamService.GetTeam", name="speech").max_gpus == 2
assert "speech" in [team.name for team in call("TeamService.ListTeams").teams]
refused("TeamService.AcceptInvitation", grpc.StatusCode.NOT_FOUND, name="speech")
refused("TeamService.DeclineInvitation", grpc.StatusCode.NOT_FOUND, name="speech")
assert call("TeamService.RemoveTeam", name="speech").name == "speech"
assert call("TokenService.CreateToken", name="grpc").secret
assert "grpc" in [one.name for one in call("TokenService.ListTokens").tokens]
assert call("TokenService.RevokeToken", token="grpc").name == "grpc"
assert call("AuditService.ListAudit", limit=10).entries
assert call("AccessService.WhoAmI").user == "backup"
assert call("ConfigurationService.GetConfiguration").ListFields()
call("ShareService.ListShares")
call("StatisticsService.GetStatistics")
call("SlurmService.GetSlurmNames")

# ---- health, which is told without a credential

open_channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(open(ca_file, "rb").read()))
health = health_pb2_grpc.HealthStub(open_channel)
SERVING = health_pb2.HealthCheckResponse.SERVING
assert health.Check(health_pb2.HealthCheckRequest(), timeout=LIMIT).status == SERVING
assert health.Check(health_pb2.HealthCheckRequest(service=PACKAGE + "JobService"), timeout=LIMIT).status == SERVING
watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=LIMIT)
assert next(watch).status == SERVING
watch.cancel()
assert "grpc.health.v1.Health" in database.get_services()

# ---- errors

refused("JobService.GetJob", grpc.StatusCode.NOT_FOUND, id="99999")
error = refused("JobService.SubmitJob", grpc.StatusCode.INVALID_ARGUMENT, spec={"command": ["true"], "gpus": 4000000000})
assert dict(error.trailing_metadata())["field"] == "gpus", error.trailing_metadata()
try:
    list(begin("JobService.WatchJobs", {}, timeout=0.3))
    raise AssertionError("a stream outlived its deadline")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error

left_out = calls.keys() - made
assert not left_out, f"no call of {sorted(left_out)}"
print(len(made))
