"""Jobs of a cluster by submitit: an experiment is a job, its runs are spread over the processes."""

import sys
from typing import Any

from lsa_lab.files import cache_folder, import_extra
from lsa_lab.lab import arguments
from lsa_lab.lab.catalogue import Experiment, UsageError, choose, find


def submit(command: arguments.Submit) -> int:
    """Submit a job for each experiment; with the local executor, wait for them."""
    if command.cluster not in ("slurm", "local"):
        raise UsageError(f"--cluster {command.cluster}: choose slurm or local")
    try:
        submitit = import_extra("submitit", "cluster")
        folder = cache_folder().resolve() / "jobs"
        executor = submitit.AutoExecutor(folder=folder, cluster=command.cluster)
    except ImportError as error:
        raise UsageError(str(error)) from None
    except RuntimeError as error:  # no srun on this machine
        raise UsageError(f"{error}: --cluster local runs on this machine") from None
    executor.update_parameters(
        nodes=command.nodes,
        tasks_per_node=command.tasks_per_node,
        timeout_min=int(60 * command.hours),
        name="lsa-lab",
        **({"slurm_partition": command.partition} if command.partition else {}),
    )
    experiments = choose(command.names, find(command.package))
    jobs = [executor.submit(run_task, experiment, command) for experiment in experiments]
    for experiment, job in zip(experiments, jobs, strict=True):
        print(f"{experiment.name}: job {job.job_id}, log in {job.paths.stdout}")
    return wait(jobs) if command.cluster == "local" else 0


def run_task(experiment: Experiment, command: arguments.Submit) -> str:
    """Run one process of a job; the first one writes the result."""
    from lsa_lab.lab import batch, settings

    settings.configure(command.tier)
    if command.nodes * command.tasks_per_node > 1:
        from lsa_lab.training.cluster import join_job

        join_job()
    names, package = (experiment.name,), command.package
    run = arguments.Run(names=names, package=package, tier=command.tier, publish=command.publish)
    record = batch.run_one(experiment, command=run, config=[], out=batch.choose_root(run))
    return record if isinstance(record, str) else record["caption"]


def wait(jobs: list[Any]) -> int:
    """Wait for jobs; print what each found, or why it failed; return 1 if one failed."""
    failed = 0
    for job in jobs:
        job.wait()
        try:
            print(f"job {job.job_id}: {job.results()[0]}")
        except Exception as error:  # submitit's, with the trace of the process
            failed = 1
            last = str(error).strip().splitlines()[-1]
            print(f"job {job.job_id} failed: {last}; the same command resumes", file=sys.stderr)
    return failed
