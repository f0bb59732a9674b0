#!/usr/bin/env bash
# A SLURM of one node on this machine, for as long as this script runs. Two experiments of the smoke
# tier are submitted to it; the first is killed and submitted again, warned of its time limit and put
# off by SLURM, split in two shares, and run in two processes that srun starts. All digests are those
# of run. It needs root and Debian's packages, takes five minutes, and is no part of the tests. Its
# daemons end with it; the packages stay.
#   bash scripts/slurm_here.sh [NAME NAME]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
names=("${1:-one_layer_optimum}" "${2:-sparse_risk}")
python=${PYTHON:-.venv/bin/python}
here=$(mktemp -d)
export SLURM_CONF=$here/slurm.conf LSA_LAB_CACHE=$here/cache

for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || missing=yes
done
if [ -n "${missing:-}" ]; then
    apt-get update -qq
    apt-get install --yes -qq --no-install-recommends munge slurmctld slurmd slurm-client >"$here/apt.log"
fi

pids=()
end() {
    scancel --me --full --signal=KILL 2>/dev/null || true
    scancel --me 2>/dev/null || true
    for _ in $(seq 50); do squeue --me -h 2>/dev/null | grep -q . && sleep 0.2 || break; done
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait "${pids[@]}" 2>/dev/null || true
    rm -rf "$here"
}
trap end EXIT

name=$(hostname -s)
mkdir "$here/state" "$here/spool"
cat >"$SLURM_CONF" <<CONF
ClusterName=here
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge.socket
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MailProg=/bin/true
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
head -c 1024 /dev/urandom >"$here/munge.key"
chmod 700 "$here" && chmod 600 "$here/munge.key"
munged --foreground --force --key-file="$here/munge.key" --socket="$here/munge.socket" \
    --pid-file="$here/munge.pid" --seed-file="$here/munge.seed" >"$here/munged.log" 2>&1 &
pids+=($!)
for _ in $(seq 50); do [ -S "$here/munge.socket" ] && break || sleep 0.1; done
slurmctld -D >"$here/slurmctld.log" 2>&1 &
pids+=($!)
slurmd -D -N "$name" >"$here/slurmd.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do sinfo -h -o %T 2>/dev/null | grep -q idle && break || sleep 0.2; done
sinfo -h -o %T | grep -q idle || { tail -n 20 "$here"/*.log; exit 1; }
echo "$(slurmd -V) is up on $name, $(nproc) cores"

lab() { "$python" -m experiments "$@" --tier smoke --out "$here/$out"; }
status() { "$python" -m experiments submit --status; }
# The ids of the tasks of an experiment, by default the first, as SLURM has them.
ids() {
    grep -oh '"[0-9]*": "[0-9_]*' "$LSA_LAB_CACHE"/submitted/${1:-${names[0]}}-*/job.json |
        grep -o '[0-9_]*$' | paste -sd :
}
# Until the only task that computes has left its first checkpoint.
begun() {
    for _ in $(seq 600); do
        [ -n "$(find "$LSA_LAB_CACHE"/checkpoints/*/ -type f 2>/dev/null)" ] && return || sleep 0.1
    done
}
over() {
    srun --quiet --dependency="afterany:$(ids "$@")" true
    status
}

out=run; lab run "${names[@]}"
echo "-- two jobs"
out=array; lab submit "${names[@]}" --slurm cpus-per-task=1; over "*"
echo "-- a task that is killed, and submitted again"
out=killed; lab submit "${names[0]}" --slurm cpus-per-task=2
begun  # and the process that holds the task's lock dies
kill -KILL "$(grep -oh 'process [0-9]*' "$LSA_LAB_CACHE"/checkpoints/.*.lock | grep -o '[0-9]*')"; over
"$python" -m experiments submit --again; over
echo "-- a task that SLURM warns of its time limit"
out=limit; lab submit "${names[0]}" --slurm cpus-per-task=2
begun; scancel --signal=INT "$(ids)"; over
echo "-- an experiment in two shares"
out=shares; lab submit "${names[0]}" --shares 2; over
echo "-- an experiment in two processes that srun starts together"
srun -n 2 "$python" -m experiments run "${names[0]}" --tier smoke --out "$here/together"

"$python" - "$here" <<'CODE'
import sys
from pathlib import Path
from lsa_lab.store import results
here = Path(sys.argv[1])
digests = {p: results.load(p).attrs["contents_sha256"] for p in here.glob("*/*/result.nc")}
for path, digest in sorted(digests.items()):
    same = digest == digests[here / "run" / path.parent.name / "result.nc"]
    print(path.parent.relative_to(here), digest[:16], "the same" if same else "ANOTHER")
    assert same
assert len(digests) == 8, digests
CODE
