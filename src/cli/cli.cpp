#include "cli/cli.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/overview.h"
#include "cli/words/completion.h"
#include "client/profiles.h"

namespace gpu_platform::cli {

namespace {

// clang-format off
constexpr std::array kCommands = {
    Command{{"submit", "[options] ([--] COMMAND [ARGUMENT…] | -f FILE)",
             "Put a job into the queue; prints its id.",
             "  gpu-platform submit --gpus 1 -- python train.py\n"
             "  gpu-platform submit --gpus 8 --gpu-type H100 --time 12h --priority high -- torchrun train.py\n"
             "  id=$(gpu-platform submit --gpus 2 job.sh data)   # a copy of the script, with its '#GPU --time 4h' lines\n"
             "  gpu-platform submit -f job.yaml --dry-run -o yaml\n"}, run_submit},
    Command{{"run", "[options] [--] COMMAND [ARGUMENT…]",
             "Run a job: submit it, show its output, and exit with its exit code.",
             "  gpu-platform run --gpus 1 -- nvidia-smi\n"
             "  gpu-platform run --gpus 4 --time 30m -- python train.py\n"
             "  gpu-platform run --gpus 1 --pty -- bash          # Ctrl-P Ctrl-Q detaches, 'jobs attach' attaches again\n"
             "  gpu-platform run --gpus 0 -i -- sha256sum < data.tar\n"
             "  gpu-platform run --gpus 0 -- make test\n"}, run_run},
    Command{{"notebook", "[options] [-- COMMAND [ARGUMENT…]]",
             "Start a notebook in a job, and open its page on this machine until Ctrl-C.",
             "  gpu-platform notebook --gpus 1                     # jupyter lab, with a token of its own\n"
             "  gpu-platform notebook --gpus 1 --time 4h --port 9000\n"
             "  gpu-platform notebook --gpus 1 -- python3 -m http.server {port}\n"}, run_notebook},
    Command{{"check", "[options] [[--] COMMAND [ARGUMENT…]]",
             "Say whether such a job would start now, or why not and when. Nothing is submitted.",
             "  gpu-platform check --gpus 8 --time 2h\n"
             "  gpu-platform check --gpus 4 --gpu-type H100 && echo free\n"
             "  gpu-platform check --gpus 64 --json | jq .reasons\n"}, run_check},
    Command{{"jobs list", "[options]",
             "Show your waiting and running jobs.",
             "  gpu-platform jobs list\n"
             "  gpu-platform jobs list --since yesterday --state failed --sort ended\n"
             "  gpu-platform jobs list --all --node dgx-h100-1 --columns id,user,state,started\n"
             "  gpu-platform jobs list --label run=7 --json | jq -r '.jobs[].id'\n"}, run_jobs_list},
    Command{{"jobs describe", "[options] ID",
             "Show the details of a job.",
             "  gpu-platform jobs describe 42\n"
             "  gpu-platform jobs describe 42 --json\n"
             "  gpu-platform jobs describe 40_3\n"}, run_jobs_describe},
    Command{{"jobs efficiency", "[options] [ID…]",
             "Show how much jobs used of what they held: GPUs, GPU memory, CPUs, memory and time.",
             "  gpu-platform jobs efficiency 42\n"
             "  gpu-platform jobs efficiency --since 7d --sort gpu\n"
             "  gpu-platform jobs efficiency --team vision --since monday --json | jq '.jobs[].gpu_use'\n"}, run_jobs_efficiency},
    Command{{"jobs cancel", "[options] (ID… | filters)",
             "Cancel jobs: send SIGTERM, and SIGKILL after the grace time.",
             "  gpu-platform jobs cancel 42 43\n"
             "  gpu-platform jobs cancel --name 'sweep-*' --state QUEUED\n"
             "  gpu-platform jobs cancel --label run=7 --yes --json\n"}, run_jobs_cancel},
    Command{{"jobs kill", "[options] (ID… | filters)",
             "Kill jobs at once, without a grace time.",
             "  gpu-platform jobs kill 42 43\n"
             "  gpu-platform jobs kill --state RUNNING --name 'sweep-*'\n"
             "  gpu-platform jobs kill 42 --json\n"}, run_jobs_kill},
    Command{{"jobs hold", "[options] (ID… | filters)",
             "Hold waiting jobs until they are released.",
             "  gpu-platform jobs hold 42 43\n"
             "  gpu-platform jobs hold --name 'sweep-*'\n"
             "  gpu-platform jobs hold --state QUEUED --yes --json\n"}, run_jobs_hold},
    Command{{"jobs release", "[options] (ID… | filters)",
             "Release held jobs.",
             "  gpu-platform jobs release 42 43\n"
             "  gpu-platform jobs release --all\n"
             "  gpu-platform jobs release 42 --json\n"}, run_jobs_release},
    Command{{"jobs requeue", "[options] (ID… | filters)",
             "Stop running jobs and put them back into the queue.",
             "  gpu-platform jobs requeue 42 43\n"
             "  gpu-platform jobs requeue --hold 42\n"
             "  gpu-platform jobs requeue --label run=7 --yes\n"}, run_jobs_requeue},
    Command{{"jobs rerun", "[options] ID",
             "Submit a job again, also an ended one, with changes; prints the new id.",
             "  gpu-platform jobs rerun 42\n"
             "  gpu-platform jobs rerun 42 --time 8h --memory 64G\n"
             "  gpu-platform jobs rerun 15_3      # one member of an array; 15 is the whole array\n"}, run_jobs_rerun},
    Command{{"jobs raise", "[options] ID…",
             "Raise waiting jobs above your other waiting jobs of the same team and class (formerly 'jobs top').",
             "  gpu-platform jobs raise 42\n"
             "  gpu-platform jobs raise 42 43      # 42 goes first, then 43\n"
             "  gpu-platform jobs raise 40_3 --json\n"}, run_jobs_top},
    Command{{"jobs signal", "[options] --signal SIGNAL ID…",
             "Send a signal to the processes of running jobs.",
             "  gpu-platform jobs signal 42 --signal USR1\n"
             "  gpu-platform jobs signal 42 43 -s STOP   # go on with CONT\n"
             "  gpu-platform jobs signal 40_3 -s 10 --json\n"}, run_jobs_signal},
    Command{{"jobs update", "[options] ID…",
             "Change the requests of jobs.",
             "  gpu-platform jobs update 42 --time 2h\n"
             "  gpu-platform jobs update 42 43 --priority low\n"
             "  gpu-platform jobs update 42 --name final --label run=8 --remove-label draft\n"}, run_jobs_update},
    Command{{"jobs logs", "[options] (ID… | --label KEY=VALUE)",
             "Print the output of jobs.",
             "  gpu-platform jobs logs 42\n"
             "  gpu-platform jobs logs --follow --tail 20 42\n"
             "  gpu-platform jobs logs 42 --attempt 1 > first-attempt.log\n"
             "  gpu-platform jobs logs -f 15           # all members of array 15: lines begin with '15_3: '\n"
             "  gpu-platform jobs logs -l run=7 --since 1h --tail 5\n"}, run_jobs_logs},
    Command{{"jobs events", "[options] ID",
             "Show what happened to a job: starts, preemptions, changes, its end, and the user of each change.",
             "  gpu-platform jobs events 42\n"
             "  gpu-platform jobs events 15_3 --json | jq -r '.events[].event'\n"}, run_jobs_events},
    Command{{"jobs wait", "[options] ID…",
             "Wait until jobs have ended; exit with 0 if all are COMPLETED, else with 1.",
             "  gpu-platform jobs wait 42\n"
             "  gpu-platform jobs wait 42 43 --timeout 2h\n"
             "  gpu-platform jobs wait $id && echo done\n"}, run_jobs_wait},
    Command{{"jobs explain", "[options] ID",
             "Explain why a job waits, until when, and what would start it now, or why a running job started.",
             "  gpu-platform jobs explain 42\n"
             "  gpu-platform jobs explain 42 --json | jq .counterfactuals\n"}, run_jobs_explain},
    Command{{"jobs wait-gpus", "[options]",
             "Wait until such a job would start; exit with 0, or with 124 when the time is up.",
             "  gpu-platform jobs wait-gpus --gpus 4 --timeout 10m\n"
             "  gpu-platform jobs wait-gpus --gpus 1 --gpu-memory 40G --time 1h && ./start\n"}, run_jobs_wait_gpus},
    Command{{"jobs attach", "[options] ID",
             "Attach to a job started with 'run --pty' or 'run --stdin'; Ctrl-P Ctrl-Q detaches.",
             "  gpu-platform jobs attach 42\n"}, run_jobs_attach},
    Command{{"jobs exec", "[options] ID -- COMMAND [ARGUMENT…]",
             "Run a command inside a running job, and exit with its exit code.",
             "  gpu-platform jobs exec 42 -- nvidia-smi\n"
             "  gpu-platform jobs exec -t 42 -- bash\n"
             "  tar c src | gpu-platform jobs exec 42 -- tar x -C /tmp\n"}, run_jobs_exec},
    Command{{"jobs cp", "[options] [ID:]SOURCE [ID:]TARGET",
             "Copy files and directories into a running job or out of it.",
             "  gpu-platform jobs cp 42:/tmp/trace.json .\n"
             "  gpu-platform jobs cp settings.yaml 42:          # into the job's directory\n"
             "  gpu-platform jobs cp 42:checkpoints ./backup\n"}, run_jobs_cp},
    Command{{"jobs port-forward", "[options] ID [LOCAL:]REMOTE",
             "Forward a local port to a port inside a running job, such as a notebook's.",
             "  gpu-platform jobs port-forward 42 8888\n"
             "  gpu-platform jobs port-forward 42 9000:8888\n"
             "  gpu-platform jobs port-forward 42 0:8888\n"}, run_jobs_port_forward},
    Command{{"jobs ssh-config", "[options] ID",
             "Print the lines for ~/.ssh/config with which ssh and editors reach a running job.",
             "  gpu-platform jobs ssh-config 42 >> ~/.ssh/config && ssh gpu-job-42\n"}, run_jobs_ssh_config},
    Command{{"jobs ssh-proxy", "[options] ID",
             "Carry one SSH connection into a running job: the ProxyCommand of 'jobs ssh-config'.",
             "  ssh -o ProxyCommand='gpu-platform jobs ssh-proxy 42' gpu-job-42\n"}, run_jobs_ssh_proxy},
    Command{{"queue", "[options]",
             "Show the waiting jobs in their order, with the reasons.",
             "  gpu-platform queue\n"
             "  gpu-platform queue --limit 20\n"
             "  gpu-platform queue --eta\n"
             "  gpu-platform queue --json\n"}, run_queue},
    Command{{"status", "[options]",
             "Show the GPUs, nodes and jobs of the cluster in figures.",
             "  gpu-platform status\n"
             "  gpu-platform status --all\n"
             "  gpu-platform status --json | jq .available_gpus\n"}, run_status},
    Command{{"nodes", "[options]",
             "Show one line for each node: its state, GPUs, CPUs and memory.",
             "  gpu-platform nodes\n"
             "  gpu-platform nodes -o name\n"
             "  gpu-platform nodes --json | jq '.nodes[] | select(.state != \"UP\")'\n"}, run_nodes},
    Command{{"watch", "[options]",
             "Show the GPUs and the jobs live, with graphs; q quits, h lists the keys.",
             "  gpu-platform watch\n"
             "  gpu-platform watch --interval 5s\n"
             "  gpu-platform watch --once > now.txt\n"}, run_watch},
    Command{{"monitor", "[options] (JOB | -- COMMAND [ARGUMENT…])",
             "Show what a job did on its GPUs, or run a command here and read the GPUs meanwhile.",
             "  gpu-platform monitor --gpus 0,1 --output run.json -- python bench.py   # without a daemon, too\n"
             "  gpu-platform monitor 42\n"
             "  gpu-platform monitor --follow 42\n"
             "  gpu-platform monitor 42 --json | jq '.gpu_stats'\n"}, run_monitor},
    Command{{"monitor diff", "[options] (JOB | FILE) (JOB | FILE)",
             "Compare what two jobs or commands did on their GPUs, and say what may be noise.",
             "  gpu-platform monitor diff 42 43\n"
             "  gpu-platform monitor diff before.json after.json --json\n"}, run_monitor_diff},
    Command{{"health", "[NODE | NODE:INDEX | UUID] [options]",
             "Show which GPUs are out of service or degraded, since when, why, and what helps.",
             "  gpu-platform health\n"
             "  gpu-platform health dgx-h100-1:3                      # the whole story of one GPU\n"
             "  gpu-platform health --gpu-id GPU-3f2a… --json | jq .verdict\n"}, run_health},
    Command{{"health evidence", "[NODE | NODE:INDEX | UUID] [options]",
             "Print the evidence that is kept about GPUs and nodes, one event a line.",
             "  gpu-platform health evidence > evidence.jsonl\n"
             "  gpu-platform health evidence dgx-h100-1 --since 7d\n"}, run_health_evidence},
    Command{{"health report", "[NODE | NODE:INDEX | UUID] [options]",
             "Write a report about GPUs for their vendor, without names and commands of users.",
             "  gpu-platform health report --output-file report.json\n"
             "  gpu-platform health report --gpu dgx-h100-1:3 --output-file gpu3.json\n"}, run_health_report},
    Command{{"health check", "(NODE | NODE:INDEX | UUID)… [options]",
             "Check GPUs without a reset; a degraded one goes back into service if it passes. This is refused while jobs hold it.",
             "  gpu-platform health check dgx-h100-1:3 --wait\n"
             "  gpu-platform health check dgx-h100-1:3 --deep --when-empty\n"
             "  gpu-platform health check --node dgx-h100-1 --deep --wait --yes\n"}, run_health_check},
    Command{{"health replay", "[options]",
             "Judge kept evidence, or that of a file: what is taken out, and whose fault each job was.",
             "  gpu-platform health replay --rules strict\n"
             "  gpu-platform health replay --evidence evidence.jsonl\n"
             "  gpu-platform health replay --evidence - --rules strict --json < evidence.jsonl | jq '.gpus[] | select(.taken_out)'\n"}, run_health_replay},
    Command{{"health rules", "[options]",
             "Show what each XID and condition means for a GPU, and where each rule comes from.",
             "  gpu-platform health rules\n"
             "  gpu-platform health rules --profile cloud --json | jq '.rules[] | select(.xid == 79)'\n"}, run_health_rules},
    Command{{"history", "[options]",
             "Show what GPUs, hosts and jobs did: utilization, memory, temperature, power and more over time.",
             "  gpu-platform history --gpu dgx-h100-1:3 --since 1d\n"
             "  gpu-platform history --job 42 --metric utilization,power\n"
             "  gpu-platform history --node dgx-h100-1 --since 7d --step 15m --percentiles 50,95,99\n"
             "  gpu-platform history --team vision --since 30d --csv > vision.csv\n"}, run_history},
    Command{{"report kpi", "[options]",
             "Show key figures of a time: waits, throughput, failures, allocation, utilization.",
             "  gpu-platform report kpi --since 7d\n"
             "  gpu-platform report kpi --since 30d --team vision\n"
             "  gpu-platform report kpi --since 2026-01-01 --until 2026-02-01 --csv > january.csv\n"
             "  gpu-platform report kpi --json | jq '.kinds[] | {kind, target_met}'\n"}, run_report_kpi},
    Command{{"report monthly", "[options]",
             "Show what a calendar month cost, by team and type of GPU.",
             "  gpu-platform report monthly --month 2026-10\n"
             "  gpu-platform report monthly --month 2026-10 --team vision --format csv\n"
             "  gpu-platform report monthly --month 2026-10 --format html -o october.html\n"
             "  gpu-platform report monthly --month 2026-10 --json | jq '.teams | map_values(.total_cost)'\n"}, run_report_monthly},
    Command{{"report balance", "[options]",
             "Show what became of the time of all GPUs, and whether it adds up. For operators.",
             "  gpu-platform report balance\n"
             "  gpu-platform report balance --month 2026-10\n"}, run_report_balance},
    Command{{"report savings", "[options]",
             "Show what spot capacity saved against on-demand prices, by team and type of GPU.",
             "  gpu-platform report savings\n"
             "  gpu-platform report savings --month 2026-10 --team vision\n"
             "  gpu-platform report savings --since 30d --json | jq .total.saved\n"}, run_report_savings},
    Command{{"report forecast", "[options]",
             "Show what the present month will have cost at its end, and how good that method was in past months.",
             "  gpu-platform report forecast\n"
             "  gpu-platform report forecast --team vision\n"
             "  gpu-platform report forecast --json | jq '{total, error_percent}'\n"}, run_report_forecast},
    Command{{"report advice", "[options]",
             "Show what could cost less: cheaper types of GPUs for jobs, idle GPUs by team, GPUs that are worth a reservation.",
             "  gpu-platform report advice\n"
             "  gpu-platform report advice --since 7d --team vision\n"
             "  gpu-platform report advice --json | jq '.families[] | select(.advised_gpu_type)'\n"}, run_report_advice},
    Command{{"usage", "[options]",
             "Show what was used and what it cost, by user, team, project, type of GPU and more.",
             "  gpu-platform usage --mine\n"
             "  gpu-platform usage --month 2026-10 --by team,type\n"
             "  gpu-platform usage --team vision --since 7d --by user --step day\n"
             "  gpu-platform usage --job 42 --explain\n"
             "  gpu-platform usage --by project --csv > projects.csv\n"}, run_usage},
    Command{{"usage export", "[options]",
             "Write a month of the ledger for other programs, as CSV: rows of FOCUS, or the lines as they are.",
             "  gpu-platform usage export --month 2026-10 -o october.csv\n"
             "  gpu-platform usage export --month 2026-10 --focus-version 1.2 --account hpc > october.csv\n"
             "  gpu-platform usage export --format ledger --month 2026-10 -o lines.csv\n"}, run_usage_export},
    Command{{"usage correct", "[options] AMOUNT",
             "Add a line to the ledger that charges an amount or takes it back (admins only).",
             "  gpu-platform usage correct --user ann --text 'the filer was down' -- -12.50\n"
             "  gpu-platform usage correct 40 --team vision --text 'a licence'\n"}, run_usage_correct},
    Command{{"prices list", "[options]",
             "Show what a GPU costs in one hour, and which GPUs have no price.",
             "  gpu-platform prices list\n"
             "  gpu-platform prices list --at 2026-10-01\n"
             "  gpu-platform prices list --json | jq -r '.unpriced[]'\n"}, run_prices_list},
    Command{{"prices set", "[options] PRICE",
             "Set the price of a GPU-hour, from now on or from a later time on (admins only).",
             "  gpu-platform prices set 4.90 --gpu-type H100\n"
             "  gpu-platform prices set 1.65 --gpu-type H100 --capacity spot --from 2027-01-01\n"}, run_prices_set},
    Command{{"prices withdraw", "[options] ID",
             "End a price; that of the configuration counts again (admins only).",
             "  gpu-platform prices withdraw 12\n"}, run_prices_withdraw},
    Command{{"prices instances", "[options]",
             "Show the cloud instances whose GPUs are known, for prices by instance.",
             "  gpu-platform prices instances\n"}, run_prices_instances},
    Command{{"budget list", "[options]",
             "Show what teams, users and projects may spend and have spent.",
             "  gpu-platform budget list\n"
             "  gpu-platform budget list --holder team\n"
             "  gpu-platform budget list --json | jq '.budgets[] | select(.level == \"SPENT\")'\n"}, run_budget_list},
    Command{{"budget show", "[options] team|user|project NAME",
             "Show a budget, and when it will be spent.",
             "  gpu-platform budget show team vision\n"}, run_budget_show},
    Command{{"budget set", "[options] team|user|project NAME",
             "Set a budget (admins; coordinators may lower that of their team).",
             "  gpu-platform budget set team vision --amount 12000 --at-limit refuse\n"
             "  gpu-platform budget set project demo --amount 500 --period year --at-limit stop\n"}, run_budget_set},
    Command{{"budget override", "[options] team|user|project NAME",
             "Let jobs start although the budget is spent (admins and coordinators above the team).",
             "  gpu-platform budget override team vision --until 3d --why 'the deadline of CVPR'\n"
             "  gpu-platform budget override team vision --end\n"}, run_budget_override},
    Command{{"budget remove", "[options] team|user|project NAME",
             "Remove a budget that was set at run time (admins only).",
             "  gpu-platform budget remove team vision\n"}, run_budget_remove},
    Command{{"topology", "[options]",
             "Show the links between GPUs, NUMA nodes and sockets.",
             "  gpu-platform topology\n"
             "  gpu-platform topology --node dgx-h100-1\n"
             "  gpu-platform topology --json | jq '.nodes[0].links'\n"}, run_topology},
    Command{{"shares", "[options]",
             "Show the usage, place, limits and guarantees of each team and user.",
             "  gpu-platform shares\n"
             "  gpu-platform shares --team vision\n"
             "  gpu-platform shares --json | jq '.shares[] | select(.place == 1)'\n"}, run_shares},
    Command{{"estimate", "[options] [MODEL] [SETTING=VALUE…] | -- SERVER COMMAND",
             "Compute the GPUs and the memory that a server of a language model needs.",
             "  gpu-platform estimate llama-3-70b tp-size=4 dtype=auto max-model-len=8192\n"
             "  gpu-platform estimate llama-3-70b --tensor-parallel-size 4 --max-model-len 32k --kv-cache-dtype fp8\n"
             "  gpu-platform estimate --file task.json\n"
             "  gpu-platform estimate mixtral-8x7b-awq gpu-memory=24G gpus-per-node=2\n"
             "  gpu-platform estimate -- vllm serve llama-3-70b --tensor-parallel-size 4\n"}, run_estimate},
    Command{{"reservations create", "NAME [options]",
             "Reserve GPUs for a time, for maintenance or a team (operators and admins only).",
             "  gpu-platform reservations create driver-update --begin tomorrow --duration 4h --maintenance --nodes dgx-1,dgx-2\n"
             "  gpu-platform reservations create course --begin 2026-01-31T09:00 --end 2026-01-31T17:00 --team teaching --gpus 8\n"
             "  gpu-platform reservations create deadline --begin now --duration 2d --user ann,bob --nodes dgx-3 --gpus-per-node 4\n"
             "  gpu-platform reservations create lecture --begin 2026-03-02T09:00 --duration 3h --repeat weekly --count 14 --team teaching --gpus 8\n"}, run_reservations_create},
    Command{{"reservations update", "NAME [options]",
             "Change a reservation, or skip its next occurrence (operators and admins only).",
             "  gpu-platform reservations update lecture --begin 2026-03-09T10:00 --duration 2h\n"
             "  gpu-platform reservations update lecture --skip\n"
             "  gpu-platform reservations update lecture --until 2026-06-30\n"
             "  gpu-platform reservations update lecture --repeat never\n"}, run_reservations_update},
    Command{{"reservations list", "[options]",
             "Show the reservations with their times, GPUs and users.",
             "  gpu-platform reservations list\n"
             "  gpu-platform reservations list --json | jq -r '.reservations[].name'\n"}, run_reservations_list},
    Command{{"reservations describe", "[options] NAME",
             "Show the details of a reservation.",
             "  gpu-platform reservations describe course\n"
             "  gpu-platform reservations describe course --json\n"}, run_reservations_describe},
    Command{{"reservations delete", "[options] NAME",
             "Cancel a reservation (the same as 'reservations cancel').",
             "  gpu-platform reservations delete course\n"}, run_reservations_cancel},
    Command{{"reservations cancel", "[options] NAME",
             "Cancel a reservation; jobs that wait for it are cancelled, running jobs go on.",
             "  gpu-platform reservations cancel course\n"
             "  gpu-platform reservations cancel course --json\n"}, run_reservations_cancel},
    Command{{"drain", "(NODE | NODE:INDEX | --gpu-id UUID) [options]",
             "Let a GPU or node finish its jobs and give it no new ones ('cordon' elsewhere).",
             "  gpu-platform drain dgx-h100-1:3 --reason 'a fan is loud'\n"
             "  gpu-platform drain dgx-h100-1 --reason 'new memory on Friday' --wait   # until it is empty\n"
             "  gpu-platform drain --gpu-id GPU-3f2a… --json\n"}, run_drain},
    Command{{"offline", "(NODE | NODE:INDEX | --gpu-id UUID) [options]",
             "Take a GPU or node out of service; this is refused while jobs hold it.",
             "  gpu-platform offline --gpu dgx-h100-1:3 --reason 'falls off the bus'\n"
             "  gpu-platform offline --node dgx-h100-1 --force\n"
             "  gpu-platform offline --gpu-id GPU-3f2a… --json\n"}, run_offline},
    Command{{"online", "(NODE | NODE:INDEX | --gpu-id UUID) [options]",
             "Put a GPU or node back into service ('uncordon' elsewhere).",
             "  gpu-platform online --gpu dgx-h100-1:3\n"
             "  gpu-platform online --node dgx-h100-1 --reason 'new memory is in'\n"
             "  gpu-platform online --gpu-id GPU-3f2a… --json\n"}, run_online},
    Command{{"reset", "(NODE | NODE:INDEX | UUID)… [options]",
             "Reset GPUs; each is checked then and goes back into service. This is refused while jobs hold it.",
             "  gpu-platform reset dgx-h100-1:3 --reason 'rows wait to be remapped' --wait\n"
             "  gpu-platform reset dgx-h100-1:3 dgx-h100-1:4 --when-empty --yes\n"
             "  gpu-platform reset --node dgx-h100-1 --force --yes --json\n"}, run_reset},
    Command{{"token create", "--name NAME [options]",
             "Make a token, with which other machines act as you; prints its secret once.",
             "  gpu-platform token create --name laptop\n"
             "  gpu-platform token create --name nightly --expires 30d --role viewer\n"
             "  gpu-platform token create --name ci --user ann --output-file ~ann/.token\n"}, run_token_create},
    Command{{"token list", "[options]",
             "Show tokens with their roles, their ends and their last uses.",
             "  gpu-platform token list\n"
             "  gpu-platform token list --all-users\n"
             "  gpu-platform token list --json | jq -r '.tokens[].name'\n"}, run_token_list},
    Command{{"token revoke", "[options] TOKEN",
             "Revoke a token and all tokens that were made with it; they are refused from now on.",
             "  gpu-platform token revoke laptop\n"
             "  gpu-platform token revoke ci --user ann\n"
             "  gpu-platform token revoke 7 --json\n"}, run_token_revoke},
    Command{{"team list", "[options]",
             "Show the teams of the configuration and those that were made at run time.",
             "  gpu-platform team list\n"
             "  gpu-platform team list --json | jq -r '.teams[] | select(.origin == \"RUN_TIME\").name'\n"}, run_team_list},
    Command{{"team show", "[options] TEAM",
             "Show a team, and the origin of each of its values.",
             "  gpu-platform team show vision\n"
             "  gpu-platform team show vision --json\n"}, run_team_show},
    Command{{"team create", "[options] NAME",
             "Make a team in addition to those of the configuration.",
             "  gpu-platform team create vision --member ann,bob:2 --max-gpus 8\n"
             "  gpu-platform team create speech --parent research --coordinator cyd\n"}, run_team_create},
    Command{{"team set", "[options] TEAM",
             "Change a team, where the configuration does not set the key.",
             "  gpu-platform team set vision --shares 3 --guaranteed-gpus 4\n"
             "  gpu-platform team set vision --max-gpus none\n"
             "  gpu-platform team set vision --coordinator cyd --remove-coordinator bob\n"}, run_team_set},
    Command{{"team delete", "[options] TEAM",
             "Remove a team that was made at run time and has no jobs.",
             "  gpu-platform team delete vision\n"}, run_team_delete},
    Command{{"team add-member", "[options] TEAM USER[:SHARES]…",
             "Add members to a team; users that a coordinator adds are invited.",
             "  gpu-platform team add-member vision ann\n"
             "  gpu-platform team add-member vision bob:2 cyd\n"
             "  gpu-platform team add-member vision ann --default\n"}, run_team_add_member},
    Command{{"team accept", "[options] TEAM",
             "Accept the invitation of a coordinator, and become a member of the team.",
             "  gpu-platform team accept vision\n"}, run_team_accept},
    Command{{"team decline", "[options] TEAM",
             "Decline the invitation of a coordinator.",
             "  gpu-platform team decline vision\n"}, run_team_decline},
    Command{{"team remove-member", "[options] TEAM USER…",
             "Remove members from a team, or withdraw invitations; jobs stay.",
             "  gpu-platform team remove-member vision ann\n"}, run_team_remove_member},
    Command{{"quota show", "[options] [TEAM]",
             "Show the limits and guarantees of teams; 'shares' shows what is used of them.",
             "  gpu-platform quota show\n"
             "  gpu-platform quota show vision\n"}, run_quota_show},
    Command{{"quota set", "[options] TEAM",
             "Change limits and guarantees of a team; its coordinators may lower its limits.",
             "  gpu-platform quota set vision --max-gpus 16\n"
             "  gpu-platform quota set vision --gpu-hours none --max-running-jobs 20\n"}, run_quota_set},
    Command{{"alerts list", "[options]",
             "Show what is wrong now, and what was lately.",
             "  gpu-platform alerts list\n"
             "  gpu-platform alerts list --state firing --severity critical\n"
             "  gpu-platform alerts list --json | jq -r '.alerts[] | select(.state == \"FIRING\").summary'\n"}, run_alerts_list},
    Command{{"alerts show", "[options] ID",
             "Show the details of an alert, and what helps.",
             "  gpu-platform alerts show 4be1c7e0a1b2c3d4\n"
             "  gpu-platform alerts show 4be1c7e0a1b2c3d4 --json\n"}, run_alerts_show},
    Command{{"alerts ack", "[options] ID",
             "Say that you look after an alert.",
             "  gpu-platform alerts ack 4be1c7e0a1b2c3d4 --comment 'a new fan is ordered'\n"}, run_alerts_ack},
    Command{{"alerts silence", "LABEL=VALUE… [options]",
             "Send no messages about alerts that match, for a time.",
             "  gpu-platform alerts silence node=dgx-1 --duration 4h --comment 'new memory'\n"
             "  gpu-platform alerts silence rule=GpuHot 'node=dgx-a*' --until tomorrow\n"
             "  gpu-platform alerts silence job=42 --duration 1d\n"}, run_alerts_silence},
    Command{{"alerts silences", "[options]",
             "Show the silences that are not over.",
             "  gpu-platform alerts silences\n"
             "  gpu-platform alerts silences -o name\n"}, run_alerts_silences},
    Command{{"alerts end-silence", "[options] ID",
             "End a silence; alerts that still fire are told.",
             "  gpu-platform alerts end-silence 3\n"}, run_alerts_end_silence},
    Command{{"alerts rules", "[options]",
             "Show the rules: what fires when, and where each comes from.",
             "  gpu-platform alerts rules\n"
             "  gpu-platform alerts rules -o wide\n"}, run_alerts_rules},
    Command{{"alerts channels", "[options]",
             "Show where messages go, and whether they do (operators and admins only).",
             "  gpu-platform alerts channels\n"
             "  gpu-platform alerts channels --json | jq '.channels[] | select(.problem != null)'\n"}, run_alerts_channels},
    Command{{"alerts test", "[options] CHANNEL",
             "Send a test message to a channel (operators and admins only).",
             "  gpu-platform alerts test chat\n"}, run_alerts_test},
    Command{{"audit list", "[options]",
             "Show the audit trail: the user, origin, action and outcome of each request.",
             "  gpu-platform audit list\n"
             "  gpu-platform audit list --job 42\n"
             "  gpu-platform audit list --outcome refused --since 1d\n"
             "  gpu-platform audit list --action exec --json | jq -r '.entries[].user'\n"}, run_audit_list},
    Command{{"api", "[METHOD] PATH [options]",
             "Make one call of the REST interface and print its answer.",
             "  gpu-platform api /v1/jobs\n"
             "  gpu-platform api /v1/jobs --data '{\"command\": [\"hostname\"], \"gpus\": 1}'\n"
             "  gpu-platform api DELETE /v1/jobs/42\n"
             "  gpu-platform api '/v1/jobs/42?watch=true'     # a stream, until the job has ended\n"}, run_api},
    Command{{"login", "[options] [SERVER]",
             "Log in to a daemon on another machine with a token, and use it from then on.",
             "  gpu-platform login https://gpus.example.org:8443\n"
             "  gpu-platform login https://gpus.example.org:8443 --ca-file site-ca.pem --name lab\n"
             "  pass show gpus | gpu-platform login https://gpus.example.org:8443 --token-stdin\n"
             "  gpu-platform login https://gpus.example.org:8443 --issuer https://sso.example.org/main --client-id gpus\n"}, run_login},
    Command{{"logout", "[PROFILE]",
             "Forget the token of a daemon.",
             "  gpu-platform logout\n"
             "  gpu-platform logout lab\n"}, run_logout},
    Command{{"profile list", "[options]",
             "Show the daemons that you have logged in to.",
             "  gpu-platform profile list\n"
             "  gpu-platform profile list -o name\n"}, run_profile_list},
    Command{{"profile use", "PROFILE",
             "Send commands to this daemon from now on.",
             "  gpu-platform profile use lab\n"
             "  gpu-platform profile use local       # this machine's own daemon\n"}, run_profile_use},
    Command{{"profile show", "[options] [PROFILE]",
             "Show a profile without its token.",
             "  gpu-platform profile show\n"
             "  gpu-platform profile show lab -o yaml\n"}, run_profile_show},
    Command{{"profile remove", "PROFILE",
             "Forget a daemon, with its token.",
             "  gpu-platform profile remove lab\n"}, run_profile_remove},
    Command{{"completion", "bash|zsh|fish",
             "Print the script that completes commands, options, jobs and nodes in a shell.",
             "  source <(gpu-platform completion bash)\n"
             "  gpu-platform completion zsh > \"${fpath[1]}/_gpu-platform\"\n"
             "  gpu-platform completion fish > ~/.config/fish/completions/gpu-platform.fish\n"}, run_completion},
    Command{{"whoami", "[options]",
             "Show how the daemon identifies you: your user, your role and your teams.",
             "  gpu-platform whoami\n"
             "  gpu-platform whoami --json | jq -r .role\n"}, run_whoami},
    Command{{"version", "[options]",
             "Show the version of this program and of the daemon.",
             "  gpu-platform version\n"
             "  gpu-platform version --json\n"
             "  gpu-platform --version\n"}, run_version},
    Command{{"config check", "[options] FILE",
             "Check a configuration file and report all problems.",
             "  gpu-platform config check /etc/gpu-platform/config.yaml\n"
             "  gpu-platform config check site.yaml --json\n"
             "  gpu-platform config check site.yaml && systemctl restart gpu-platform\n"}, run_config_check},
    Command{{"config show", "[options] [FILE]",
             "Show the effective configuration of the daemon or of a file, and the origin of each value.",
             "  gpu-platform config show\n"
             "  gpu-platform config show site.yaml --set\n"
             "  gpu-platform config show site.yaml --json | jq '.values[] | select(.line != null)'\n"}, run_config_show},
    Command{{"config reference", "",
             "Print the reference of all configuration keys.",
             "  gpu-platform config reference\n"
             "  gpu-platform config reference | less\n"
             "  gpu-platform config reference > docs/configuration.md\n"}, run_config_reference},
};
// clang-format on

// Names of commands as people know them from elsewhere.
constexpr std::array kAliases = {Alias{"logs", "jobs", "logs"}, Alias{"explain", "jobs", "explain"},
                                 Alias{"top", "", "watch"}};

// Former names of commands of a group. They still work, and no list has them.
constexpr std::array kFormerNames = {Alias{"top", "jobs", "raise"}};

Overview overview_of(std::span<const OtherCommand> others) {
  return {kCommands, others, kAliases};
}

// "jobs wait" for "wait"; empty: no group has such a command, or several have.
std::string in_a_group(std::string_view word) {
  std::string name;
  for (const Command& command : kCommands) {
    if (second_word(command.text.name) != word) continue;
    // The commands of jobs are those that people look for.
    if (first_word(command.text.name) == "jobs") return std::string(command.text.name);
    if (!name.empty()) return {};
    name = command.text.name;
  }
  return name;
}

int unknown_command(Console& console, std::string_view word, std::string_view group,
                    const std::vector<std::string_view>& known) {
  const std::string grouped = group.empty() ? in_a_group(word) : std::string();
  std::string suggestion = grouped.empty() ? base::did_you_mean(word, known)
                                           : fmt::format("; did you mean '{}'?", grouped);
  if (suggestion.empty() && !group.empty()) {
    suggestion = fmt::format("; the commands of {} are {}", group, fmt::join(known, ", "));
  }
  return usage_error(
      console,
      fmt::format("unknown command '{}{}{}'{}", group, group.empty() ? "" : " ", word, suggestion),
      group);
}

std::vector<std::string_view> top_names(std::span<const OtherCommand> others) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    const std::string_view name = first_word(command.text.name);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  for (const OtherCommand& other : others) names.push_back(other.name);
  for (const Alias& alias : kAliases) names.push_back(alias.name);
  names.push_back("help");
  return names;
}

std::vector<std::string_view> names_in_group(std::string_view group) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    if (first_word(command.text.name) == group && !second_word(command.text.name).empty()) {
      names.push_back(second_word(command.text.name));
    }
  }
  return names;
}

const Command* find_command(std::string_view first, std::string_view second) {
  const auto* const former = std::ranges::find_if(kFormerNames, [&](const Alias& alias) {
    return alias.group == first && alias.name == second;
  });
  if (former != kFormerNames.end()) second = former->command;
  const auto it = std::ranges::find_if(kCommands, [&](const Command& command) {
    return first_word(command.text.name) == first && second_word(command.text.name) == second;
  });
  return it == kCommands.end() ? nullptr : &*it;
}

bool asks_for_help(std::string_view word) {
  return word == "--help" || word == "-h" || word == "help";
}

// "jobs …": the second word chooses.
int run_group(std::string_view group, const Invocation& given) {
  const std::span<const std::string> words = given.words;
  Console& console = given.console;
  if (words.empty()) {
    console.err(group_page(kCommands, group));
    return kUsage;
  }
  if (asks_for_help(words.front())) {
    console.out(group_page(kCommands, group));
    return kOk;
  }
  const Command* command = find_command(group, words.front());
  if (command == nullptr) {
    return unknown_command(console, words.front(), group, names_in_group(group));
  }
  Invocation invocation{words.subspan(1), given.server, console, given.check_site};
  return command->run(command->text, invocation);
}

int run_other(const OtherCommand& other, std::span<const std::string> words) {
  std::vector<std::string> copies(words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  return other.run(static_cast<int>(copies.size()), argv.data());
}

const Command* command_of(std::string_view name) {
  const auto alias = std::ranges::find(kAliases, name, &Alias::name);
  if (alias == kAliases.end()) return find_command(name, "");
  return alias->group.empty() ? find_command(alias->command, "")
                              : find_command(alias->group, alias->command);
}

// The command of two words, "jobs wait"; null: there is none. A command may have others below it,
// as 'health' has 'health report'.
const Command* command_below(std::span<const std::string> words) {
  return words.size() < 2 || words[1].empty() ? nullptr : find_command(words[0], words[1]);
}

CommandIndex index_of_commands(std::span<const OtherCommand> others) {
  CommandIndex index;
  for (const std::string_view name : top_names(others)) {
    const Command* command = command_of(name);
    const auto other = std::ranges::find(others, name, &OtherCommand::name);
    index.first_words.push_back(
        {std::string(name), std::string(command != nullptr      ? command->text.summary
                                        : other != others.end() ? other->summary
                                                                : std::string_view())});
  }
  index.second_words = [](std::string_view group) {
    std::vector<Candidate> words;
    for (const std::string_view name : names_in_group(group)) {
      words.push_back({std::string(name), std::string(find_command(group, name)->text.summary)});
    }
    return words;
  };
  index.find = [](std::span<const std::string> words, std::size_t& used) -> const Command* {
    used = 2;
    if (const Command* command = command_below(words)) return command;
    used = 1;
    return command_of(words[0]);
  };
  return index;
}

int dispatch(const Invocation& given, std::span<const OtherCommand> others) {
  const std::span<const std::string> words = given.words;
  Console& console = given.console;
  const std::string& name = words.front();
  Invocation rest{words.subspan(1), given.server, console, given.check_site};
  for (const OtherCommand& other : others) {
    if (other.name == name) return run_other(other, words);
  }
  // Not for people: what the scripts of 'completion' call.
  if (name == "complete" && words.size() > 1 && words[1] == "--") {
    return run_complete(index_of_commands(others), {words.subspan(2), given.server, console});
  }
  const Command* command = command_of(name);
  if (command != nullptr && command_below(words) == nullptr) {
    return command->run(command->text, rest);
  }
  if (!names_in_group(name).empty()) return run_group(name, rest);
  return unknown_command(console, name, "", top_names(others));
}

}  // namespace

std::span<const Command> all_commands() {
  return kCommands;
}

void add_server_options(Arguments& arguments, client::ServerChoice& choice) {
  arguments
      .option("--server", choice.server, "SERVER",
              "https://HOST:PORT, unix:PATH, a profile, or local for this machine's daemon "
              "(default: GPU_PLATFORM_SERVER, else the current profile, else local)")
      .rarely_used()
      .option("--ca-file", choice.authorities, "FILE",
              "the authority that signed the server's certificate (default: the system's)")
      .option("--cert", choice.certificate, "FILE",
              "your certificate, where the server asks for one")
      .option("--key", choice.key, "FILE", "the key of your certificate");
}

std::expected<Client, int> client_for(const client::ServerChoice& choice, Console& console) {
  auto servers = client::servers_to_try(choice, console.process_environment());
  if (servers) return Client(std::move(*servers));
  const base::Error& error = servers.error();
  if (error.code == base::ErrorCode::kInvalidArgument) {
    return std::unexpected(
        usage_error(console, fmt::format("{}: {}", error.field, error.message), ""));
  }
  console.error(error.message);
  return std::unexpected(kFailure);
}

std::expected<Client, int> open_client(Arguments& arguments, Invocation& invocation) {
  client::ServerChoice choice;
  add_server_options(arguments, choice);
  if (const auto done = arguments.parse(invocation.words, invocation.console)) {
    return std::unexpected(*done);
  }
  if (!choice.server) choice.server = invocation.server;
  return client_for(choice, invocation.console);
}

int run_in(const ProcessEnvironment& process_environment, const std::vector<std::string>& all_words,
           std::span<const OtherCommand> others, const SiteCheck& check_site) {
  Console console(process_environment);
  std::span<const std::string> words = all_words;
  std::optional<std::string> server;
  if (!words.empty() && words.front().starts_with("--server=")) {
    server = words.front().substr(std::string_view("--server=").size());
    words = words.subspan(1);
  } else if (words.size() >= 2 && words.front() == "--server") {
    server = words[1];
    words = words.subspan(2);
  }
  if (words.empty()) {
    console.err(short_overview(overview_of(others)));
    return kUsage;
  }
  if (words.front() == "--version") {
    console.out("gpu-platform " GP_VERSION "\n");
    return kOk;
  }
  Invocation given{words, server, console, check_site ? &check_site : nullptr};
  if (!asks_for_help(words.front())) return dispatch(given, others);
  const bool wants_all = words.size() == 2 && words[1] == "--all";
  if (words.size() == 1 || wants_all) {
    const Overview overview = overview_of(others);
    console.out(wants_all ? full_overview(overview) : short_overview(overview));
    return kOk;
  }
  // "help submit" is "submit --help".
  std::vector<std::string> asked(words.begin() + 1, words.end());
  asked.emplace_back("--help");
  given.words = asked;
  return dispatch(given, others);
}

int run(int argc, char** argv, std::span<const OtherCommand> others, const SiteCheck& check_site) {
  const ProcessEnvironment process_environment = client::environment_of_process();
  return run_in(process_environment,
                std::vector<std::string>(argv + std::min(argc, 1), argv + argc), others,
                check_site);
}

}  // namespace gpu_platform::cli
