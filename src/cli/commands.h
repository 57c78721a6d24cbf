#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/client_names.h"
#include "cli/words/arguments.h"
#include "client/profiles.h"

// The commands. Each reads its words, does its work and returns the exit code.

namespace gpu_platform::cli {

// What a command gets: its words without its own name, and everything outside.
struct Invocation {
  std::span<const std::string> words;
  std::optional<std::string> server;  // --server, if it stood before the command
  Console& console;
  const SiteCheck* check_site = nullptr;  // null: configurations are checked by their text alone
};

struct Command {
  CommandText text;
  int (*run)(const CommandText& text, Invocation& invocation);
};

int run_submit(const CommandText& text, Invocation& invocation);
int run_run(const CommandText& text, Invocation& invocation);
int run_jobs_list(const CommandText& text, Invocation& invocation);
int run_jobs_describe(const CommandText& text, Invocation& invocation);
int run_jobs_efficiency(const CommandText& text, Invocation& invocation);
int run_jobs_cancel(const CommandText& text, Invocation& invocation);
int run_jobs_kill(const CommandText& text, Invocation& invocation);
int run_jobs_hold(const CommandText& text, Invocation& invocation);
int run_jobs_release(const CommandText& text, Invocation& invocation);
int run_jobs_top(const CommandText& text, Invocation& invocation);
int run_jobs_signal(const CommandText& text, Invocation& invocation);
int run_jobs_rerun(const CommandText& text, Invocation& invocation);
int run_jobs_requeue(const CommandText& text, Invocation& invocation);
int run_jobs_update(const CommandText& text, Invocation& invocation);
int run_jobs_logs(const CommandText& text, Invocation& invocation);
int run_jobs_events(const CommandText& text, Invocation& invocation);
int run_jobs_explain(const CommandText& text, Invocation& invocation);
int run_jobs_wait_gpus(const CommandText& text, Invocation& invocation);
int run_notebook(const CommandText& text, Invocation& invocation);
int run_check(const CommandText& text, Invocation& invocation);
int run_jobs_wait(const CommandText& text, Invocation& invocation);
int run_jobs_attach(const CommandText& text, Invocation& invocation);
int run_jobs_exec(const CommandText& text, Invocation& invocation);
int run_jobs_cp(const CommandText& text, Invocation& invocation);
int run_jobs_ssh_config(const CommandText& text, Invocation& invocation);
int run_jobs_ssh_proxy(const CommandText& text, Invocation& invocation);
int run_jobs_port_forward(const CommandText& text, Invocation& invocation);
int run_prices_list(const CommandText& text, Invocation& invocation);
int run_prices_set(const CommandText& text, Invocation& invocation);
int run_prices_withdraw(const CommandText& text, Invocation& invocation);
int run_prices_instances(const CommandText& text, Invocation& invocation);
int run_usage_correct(const CommandText& text, Invocation& invocation);
int run_queue(const CommandText& text, Invocation& invocation);
int run_nodes(const CommandText& text, Invocation& invocation);
int run_status(const CommandText& text, Invocation& invocation);
int run_monitor(const CommandText& text, Invocation& invocation);
int run_monitor_diff(const CommandText& text, Invocation& invocation);
int run_watch(const CommandText& text, Invocation& invocation);
int run_health(const CommandText& text, Invocation& invocation);
int run_health_evidence(const CommandText& text, Invocation& invocation);
int run_health_report(const CommandText& text, Invocation& invocation);
int run_health_check(const CommandText& text, Invocation& invocation);
int run_health_replay(const CommandText& text, Invocation& invocation);
int run_health_rules(const CommandText& text, Invocation& invocation);
int run_history(const CommandText& text, Invocation& invocation);
int run_report_kpi(const CommandText& text, Invocation& invocation);
int run_report_monthly(const CommandText& text, Invocation& invocation);
int run_report_balance(const CommandText& text, Invocation& invocation);
int run_report_savings(const CommandText& text, Invocation& invocation);
int run_report_forecast(const CommandText& text, Invocation& invocation);
int run_report_advice(const CommandText& text, Invocation& invocation);
int run_usage(const CommandText& text, Invocation& invocation);
int run_usage_export(const CommandText& text, Invocation& invocation);
int run_topology(const CommandText& text, Invocation& invocation);
int run_shares(const CommandText& text, Invocation& invocation);
int run_estimate(const CommandText& text, Invocation& invocation);
int run_reservations_create(const CommandText& text, Invocation& invocation);
int run_reservations_update(const CommandText& text, Invocation& invocation);
int run_reservations_list(const CommandText& text, Invocation& invocation);
int run_reservations_describe(const CommandText& text, Invocation& invocation);
int run_reservations_cancel(const CommandText& text, Invocation& invocation);
int run_budget_list(const CommandText& text, Invocation& invocation);
int run_budget_show(const CommandText& text, Invocation& invocation);
int run_budget_set(const CommandText& text, Invocation& invocation);
int run_budget_override(const CommandText& text, Invocation& invocation);
int run_budget_remove(const CommandText& text, Invocation& invocation);
int run_token_create(const CommandText& text, Invocation& invocation);
int run_token_list(const CommandText& text, Invocation& invocation);
int run_token_revoke(const CommandText& text, Invocation& invocation);
int run_team_list(const CommandText& text, Invocation& invocation);
int run_team_show(const CommandText& text, Invocation& invocation);
int run_team_create(const CommandText& text, Invocation& invocation);
int run_team_set(const CommandText& text, Invocation& invocation);
int run_team_delete(const CommandText& text, Invocation& invocation);
int run_team_add_member(const CommandText& text, Invocation& invocation);
int run_team_accept(const CommandText& text, Invocation& invocation);
int run_team_decline(const CommandText& text, Invocation& invocation);
int run_team_remove_member(const CommandText& text, Invocation& invocation);
int run_quota_show(const CommandText& text, Invocation& invocation);
int run_quota_set(const CommandText& text, Invocation& invocation);
int run_alerts_list(const CommandText& text, Invocation& invocation);
int run_alerts_show(const CommandText& text, Invocation& invocation);
int run_alerts_ack(const CommandText& text, Invocation& invocation);
int run_alerts_silence(const CommandText& text, Invocation& invocation);
int run_alerts_silences(const CommandText& text, Invocation& invocation);
int run_alerts_end_silence(const CommandText& text, Invocation& invocation);
int run_alerts_rules(const CommandText& text, Invocation& invocation);
int run_alerts_channels(const CommandText& text, Invocation& invocation);
int run_alerts_test(const CommandText& text, Invocation& invocation);
int run_audit_list(const CommandText& text, Invocation& invocation);
int run_reset(const CommandText& text, Invocation& invocation);
int run_drain(const CommandText& text, Invocation& invocation);
int run_offline(const CommandText& text, Invocation& invocation);
int run_online(const CommandText& text, Invocation& invocation);
int run_whoami(const CommandText& text, Invocation& invocation);
int run_login(const CommandText& text, Invocation& invocation);
int run_logout(const CommandText& text, Invocation& invocation);
int run_profile_list(const CommandText& text, Invocation& invocation);
int run_profile_use(const CommandText& text, Invocation& invocation);
int run_profile_show(const CommandText& text, Invocation& invocation);
int run_profile_remove(const CommandText& text, Invocation& invocation);
int run_version(const CommandText& text, Invocation& invocation);
int run_api(const CommandText& text, Invocation& invocation);
int run_completion(const CommandText& text, Invocation& invocation);
int run_config_check(const CommandText& text, Invocation& invocation);
int run_config_show(const CommandText& text, Invocation& invocation);
int run_config_reference(const CommandText& text, Invocation& invocation);

// All of them, those of a group beside each other.
std::span<const Command> all_commands();

// --server and what belongs to it.
void add_server_options(Arguments& arguments, client::ServerChoice& choice);
// The client of that choice, or the exit code after a mistake, which has been reported.
std::expected<Client, int> client_for(const client::ServerChoice& choice, Console& console);

// Reads the words and --server; then the client, or the exit code when there is nothing more to do.
std::expected<Client, int> open_client(Arguments& arguments, Invocation& invocation);

}  // namespace gpu_platform::cli
