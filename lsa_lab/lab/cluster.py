"""Jobs of a cluster by submitit: an experiment is a job, its runs are spread over the processes."""

import sys
from dataclasses import dataclass

from lsa_lab.files import cache_folder, import_extra
from lsa_lab.lab.arguments import Flag, OnExperiments
from lsa_lab.lab.catalogue import Experiment, UsageError
from lsa_lab.lab.commands import Run


@dataclass(frozen=True, kw_only=True)
class Submit(OnExperiments):
    """Run the full tier of experiments as jobs of a cluster, by submitit."""

    tier: str = "full"  # smoke, quick or full
    nodes: int = 1  # machines that share the runs of one experiment
    tasks_per_node: int = 1  # processes on each machine
    hours: float = 12.0  # limit of a job
    cluster: str = "slurm"  # or local: processes of this machine, which are waited for
    partition: str = ""  # of SLURM
    publish: Flag = False  # write to figures/NAME

    def carry_out(self) -> int:
        if self.cluster not in ("slurm", "local"):
            raise UsageError(f"--cluster {self.cluster}: choose slurm or local")
        try:
            submitit = import_extra("submitit", "cluster")
            folder = cache_folder().resolve() / "jobs"
            executor = submitit.AutoExecutor(folder=folder, cluster=self.cluster)
        except ImportError as error:
            raise UsageError(str(error)) from None
        except RuntimeError as error:  # no srun on this machine
            raise UsageError(f"{error}: --cluster local runs on this machine") from None
        executor.update_parameters(
            nodes=self.nodes,
            tasks_per_node=self.tasks_per_node,
            timeout_min=int(60 * self.hours),
            name="lsa-lab",
            **({"slurm_partition": self.partition} if self.partition else {}),
        )
        experiments, failed = self.experiments, 0
        jobs = [executor.submit(run_task, experiment, self) for experiment in experiments]
        for experiment, job in zip(experiments, jobs, strict=True):
            print(f"{experiment.name}: job {job.job_id}, log in {job.paths.stdout}")
        for job in jobs if self.cluster == "local" else ():
            job.wait()
            try:
                print(f"job {job.job_id}: {job.results()[0]}")
            except Exception as error:  # submitit's, with the trace of the process
                failed = 1
                last = str(error).strip().splitlines()[-1]
                print(f"job {job.job_id} failed: {last}; the same command resumes", file=sys.stderr)
        return failed


def run_task(experiment: Experiment, command: Submit) -> str:
    """Run one process of a job; the first one writes the result."""
    from lsa_lab.lab import batch, settings

    settings.configure(command.tier)
    if command.nodes * command.tasks_per_node > 1:
        from lsa_lab.training.cluster import join_job

        join_job()
    return batch.run_one(experiment, Run(tier=command.tier, publish=command.publish))["caption"]
