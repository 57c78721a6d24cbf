"""drive_client.py FOLDER URL CA-FILE TOKEN-FILE DOCUMENT

Makes every call of the OpenAPI document once, successfully, with the client that openapi-python-client has made from it
(FOLDER/pool_client). Prints the number of calls. A call that has no row here, or a row without a call, is an error.
"""

import importlib
import json
import pkgutil
import re
import ssl
import sys
import time

folder, url, ca_file, token_file, document = sys.argv[1:]
sys.path.insert(0, folder)

import pool_client  # noqa: E402
import pool_client.api  # noqa: E402
from pool_client import models as m  # noqa: E402

LIMIT = 60  # seconds for anything that is waited for
client = pool_client.AuthenticatedClient(
    base_url=url, token=open(token_file).read().strip(), verify_ssl=ssl.create_default_context(cafile=ca_file),
    timeout=LIMIT, raise_on_unexpected_status=True)

operations = {operation["operationId"]: operation
              for path in json.load(open(document))["paths"].values() for operation in path.values()}


def module_name(operation_id):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation_id).lower()


modules = {name.rpartition(".")[2]: name
           for _, name, is_package in pkgutil.walk_packages(pool_client.api.__path__, "pool_client.api.")
           if not is_package}
made = set()


def module_of(operation_id):
    made.add(operation_id)
    return importlib.import_module(modules[module_name(operation_id)])


def call(operation_id, **arguments):
    """One call that answers once; its answer in the type that the document gives it."""
    answer = module_of(operation_id).sync_detailed(client=client, **arguments)
    assert answer.status_code < 300, (operation_id, answer.status_code, answer.content)
    assert answer.parsed is not None and not isinstance(answer.parsed, m.Problem), (operation_id, answer.content)
    return answer.parsed


def refused(status, operation_id, **arguments):
    """One call that is refused with the status, as the document allows it."""
    answer = module_of(operation_id).sync_detailed(client=client, **arguments)
    assert answer.status_code == status, (operation_id, answer.status_code, answer.content)
    assert isinstance(answer.parsed, m.Problem), (operation_id, answer.content)


def first_event(operation_id, **arguments):
    request = module_of(operation_id)._get_kwargs(**arguments)
    with client.get_httpx_client().stream(**request) as answer:
        assert answer.status_code == 200, (operation_id, answer.status_code)
        assert answer.headers["content-type"] == "text/event-stream"
        for line in answer.iter_lines():
            if line.startswith("data: "):
                return json.loads(line[6:])
    raise AssertionError(f"{operation_id}: no event")


def opens_websocket(operation_id, **arguments):
    request = module_of(operation_id)._get_kwargs(**arguments)
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    with client.get_httpx_client().stream(**request, headers=headers) as answer:
        if answer.status_code != 101:
            answer.read()
            raise AssertionError(f"{operation_id}: {answer.status_code} {answer.text}")


def submit(*command, **more):
    job = call("SubmitJob", body=m.JobSpec(command=list(command), cpus=1, memory_bytes=1 << 26, **more))
    assert isinstance(job, m.Job)
    return job.id


def until_running(job):
    end = time.monotonic() + LIMIT
    while call("GetJob", id=job).state != "RUNNING":
        assert time.monotonic() < end, f"job {job} does not run"
        time.sleep(0.05)


# ---- pages, and the cluster

assert call("WhoAmI").role == "ADMIN"
assert call("GetHealth").status == "ok"
assert call("GetReadiness").ready
assert call("GetVersion").api == "v1"
assert "gpu_platform_jobs_submitted_total" in call("GetMetrics")
assert call("GetOpenApiDocument")["openapi"] == "3.1.0"
assert call("GetStatus").total_gpus == 8
assert len(call("ListNodes").nodes) == 1
page = call("ListGpus", limit=5)
assert len(page.gpus) == 5 and len(call("ListGpus", page_token=page.next_page).gpus) == 3
gpu = call("ListGpus").gpus[0].gpu
assert call("GetGpuHealth", gpu_id=gpu.uuid).gpu.uuid == gpu.uuid
assert len(call("GetTopology").nodes[0].gpus) == 8
assert call("DrainGpus", body=m.GpuSelection(gpu_id=gpu.uuid, reason="a test")).changed
assert call("TakeGpusOffline", body=m.GpuSelection(gpu_id=gpu.uuid, force=True)).changed
assert call("BringGpusOnline", body=m.GpuSelection(gpu_id=gpu.uuid)).changed
call("GetStatistics")
call("GetSlurmNames")
assert any(each.key == "api.threads" for each in call("GetConfiguration").values)
call("ListShares")

# ---- jobs

job = submit("sh", "-c", "echo hello", gpus=1, request_id="once", name="first")
assert submit("sh", "-c", "echo hello", gpus=1, request_id="once", name="first") == job  # answered with 200
assert call("WaitJob", id=job, timeout_seconds=LIMIT).state == "COMPLETED"
assert call("GetJobUse", id=job).id == job
assert call("GetOutput", id=job).data == "aGVsbG8K"
assert first_event("WatchJob", id=job)["change"] == "CURRENT"
assert first_event("WatchJobs", all_=True, after_seq=1)["job"] is not None
assert first_event("WatchGpus")["gpu"]["index"] == 0
assert first_event("WatchReadings")["reading"]["values"] is not None
assert call("ListReadings", gpu=["dgx-h100-1:0"]).readings is not None
assert len(call("QueryHistory", gpu=["dgx-h100-1:0"]).series) == 4
assert len(call("GetKpi").kinds) == 4
assert any(each.id == job for each in call("ListJobs", all_=True).jobs)

server = "import socket,time; s = socket.create_server(('127.0.0.1', 8765)); print('open', flush=True); time.sleep(600)"
job = submit("python3", "-c", server, takes_input=True, preemptible=False)
until_running(job)
assert call("SignalJob", id=job, body=m.SignalOptions(signal="CONT")).changed
step = m.JobStep(attempt=1, number=0, name="train", tasks=1,
                    started_at=call("GetJob", id=job).started_at)
assert call("RecordStep", id=job, body=step).changed
opens_websocket("ExecInJob", id=job, command=["true"])
opens_websocket("AttachToJob", id=job)
opens_websocket("ForwardPort", id=job, port=8765)
assert call("KillJob", id=job).changed

job = submit("sleep", "600", gpus=8)
until_running(job)
waiting = submit("sleep", "600", gpus=8)
assert call("ExplainJob", id=waiting) is not None
assert any(each.id == waiting for each in call("GetQueue").jobs)
call("RaiseJob", id=waiting)
assert call("HoldJob", id=waiting).changed
assert call("ReleaseJob", id=waiting).changed
assert call("UpdateJob", id=waiting, body=m.JobUpdate(spec=m.JobSpec(comment="later"))).changed
assert call("RequeueJob", id=job, body=m.RequeueOptions(hold=True)).changed
assert call("CancelJob", id=waiting).changed
assert call("ActOnJobs", body=m.BulkAction(action="KILL", ids=[job])).jobs

# ---- planning, reservations, tokens, teams, the audit trail

call("CheckJob", body=m.JobCheck(spec=m.JobSpec(command=["true"], gpus=1)))
assert call("SizeModelServer", body=m.ModelServer(model="llama-3-70b")).gpus > 0
body = m.NewReservation(name="test", users=["backup"], gpus=1, duration_seconds=60, ignore_running=True)
assert call("CreateReservation", body=body).name == "test"
assert call("GetReservation", name="test").name == "test"
assert call("ListReservations").reservations
assert call("UpdateReservation", name="test", body=m.ReservationUpdate(duration_seconds=120))
assert call("CancelReservation", name="test")
assert call("CreateToken", body=m.NewToken(name="second", never_expires=False)).secret
assert len(call("ListTokens").tokens) == 2
assert call("RevokeToken", token="second").name == "second"
assert call("CreateTeam", body=m.TeamSettings(name="vision", max_gpus=4)).name == "vision"
assert call("SetTeam", name="vision", body=m.TeamSettings(max_gpus=2)).max_gpus == 2
assert call("GetTeam", name="vision").max_gpus == 2
refused(404, "AcceptInvitation", name="vision", body=m.InvitationAnswer())
refused(404, "DeclineInvitation", name="vision", body=m.InvitationAnswer())
assert [team.name for team in call("ListTeams").teams] == ["vision"]
assert call("RemoveTeam", name="vision").name == "vision"
assert call("ListAudit", limit=10).entries

left_out = operations.keys() - made
assert not left_out, f"no call of {sorted(left_out)}"
print(len(made))
