# Slurm's commands of gpu-platform in the login shell of a job that came through them ("#!/bin/bash -l"): /etc/profile has set
# PATH anew. The job's first process tells their folder.
case ":$PATH:" in
  *":${GPU_PLATFORM_SLURM_COMMANDS:-}:"*) ;;
  *) [ -z "${GPU_PLATFORM_SLURM_COMMANDS:-}" ] || PATH="$GPU_PLATFORM_SLURM_COMMANDS:$PATH" ;;
esac
