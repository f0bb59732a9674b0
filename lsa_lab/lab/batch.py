"""Several experiments in one call: one after the other, or in a pool of processes."""

import concurrent.futures
import functools
import math
import multiprocessing
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lsa_lab.files import cache_folder
from lsa_lab.lab import arguments, pages, settings
from lsa_lab.lab.catalogue import Experiment, UsageError, relative
from lsa_lab.lab.commands import Run
from lsa_lab.lab.listing import describe_difference, expect_seconds, find_rows
from lsa_lab.lab.pages import count_verdicts, format_value, group_by_claim
from lsa_lab.lab.progress import format_seconds

Record = dict[str, Any]
Answer = Record | str  # a record with its folder, or why there is none
NOT_RUN = "not run"  # such an answer begins so if a file or an option is missing


def run_all(experiments: Sequence[Experiment], command: Run) -> int:
    """Run experiments and print what they found; return 1 if one failed."""
    settings.set_environment(command.tier)
    out = choose_root(command)
    times = {x.name: expect_seconds(x, command.tier, out / x.name) for x in experiments}
    order = sorted(experiments, key=lambda x: -(times[x.name] or 0))
    quickest = min(order, key=lambda x: times[x.name] or math.inf)
    order.sort(key=lambda x: x is not quickest)  # it shows soon what a picture looks like
    start, records, failed = time.monotonic(), dict[str, Record](), list[str]()
    for experiment, answer in _map(order, command):
        times.pop(experiment.name)
        if isinstance(answer, str):
            print(f"{experiment.name}: {answer}", file=sys.stderr, flush=True)
            failed += [] if answer.startswith(NOT_RUN) else [experiment.name]
            continue
        records[experiment.name] = answer
        print(describe(experiment, answer, command.publish), flush=True)
        if times:  # of the experiments that remain
            known = [seconds for seconds in times.values() if seconds]
            left = sum(known) / max(len(known), 1) * len(times) / command.jobs
            time_left = f", about {format_seconds(left)} left" if known else ""
            print(f"  {len(records)} of {len(order)} done{time_left}\n", flush=True)
    if len(order) > 1:
        took, failures = format_seconds(time.monotonic() - start), ", ".join(failed)
        print(f"\n{len(records)} of {len(order)} in {took}{failures and f'; failed: {failures}'}")
        if command.publish:
            print("next: lsa-lab report")
        elif any((out / experiment.name).exists() for experiment in order):
            pages.write_report(out)
            print(relative((out / "index.html").resolve()))
    return int(bool(failed))


def choose_root(command: Run) -> Path:
    """Return the folder of results: --out, or .cache/figures with a folder for smoke and full."""
    usual = cache_folder() / "figures" / ("" if command.tier == "quick" else command.tier)
    return command.out or usual


def _map(order: Sequence[Experiment], command: Run) -> Iterator[tuple[Experiment, Answer]]:
    """Yield experiments with their answers as the runs end."""
    work = functools.partial(run_one if len(order) == 1 else _try, command=command)
    if command.jobs == 1 or len(order) == 1:
        for experiment in order:
            yield experiment, work(experiment)
            settings.free_mappings()
        return
    # A process for each experiment: memory and compiled programs go with it.
    context = multiprocessing.get_context("spawn")
    jobs = command.jobs
    with concurrent.futures.ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        futures = {pool.submit(work, experiment): experiment for experiment in order}
        try:
            for future in concurrent.futures.as_completed(futures):
                error = future.exception()
                yield futures[future], f"its process ended: {error}" if error else future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _try(experiment: Experiment, command: Run) -> Answer:
    """Run one of several experiments: where it fails, the others go on."""
    try:
        return run_one(experiment, command)
    except UsageError as error:
        return f"{NOT_RUN}: {error}"
    except Exception as error:
        traceback.print_exc()
        return f"failed: {error}"


def run_one(experiment: Experiment, command: Run) -> Record:
    """Run one experiment with the configuration of a command."""
    settings.configure(command.tier)
    from lsa_lab.lab import run

    module, tier = experiment.load(), command.tier
    if tier not in module.TIERS:
        raise UsageError(f"no tier {tier!r}: {experiment.name} has {', '.join(module.TIERS)}")
    values = arguments.parse_config(module, tier, command.config, experiment.name)
    job = run.Job(experiment, tier, values, choose_root(command))
    seconds = expect_seconds(experiment, tier, job.folder)
    took = f"; it took {format_seconds(seconds)} last time" if seconds else ""
    print(f"{' '.join((f'{experiment.name}, {tier} tier', *command.config))}{took}", flush=True)
    return run.run(job, publish=command.publish)


def describe(experiment: Experiment, record: Record, publish: bool) -> str:
    """Return the answer of a run: caption, claims with the committed ones, and the figure."""
    rows, lines = record["claims"], [f"  {record['caption']}"]
    committed = [] if publish else find_rows(experiment.figures)
    others = dict(group_by_claim(committed))
    for claim, cells in group_by_claim(rows):
        other = f"; committed full tier {_format_cells(others[claim])}" if claim in others else ""
        lines.append(f"  {claim}: {_format_cells(cells)}{other}")
    if committed and record["tier"] == "full" and not record["changes"]:
        lines.append(f"  {describe_difference(rows, committed, 'from the committed ones ')}")
    figure = relative(Path(record["folder"]).resolve() / "figure.pdf")
    return "\n".join([*lines, f"  {format_seconds(record['seconds'])}; {figure}"])


def _format_cells(rows: Sequence[Any]) -> str:
    """Return the value and verdict of a claim, or of one with several cells the counts."""
    if len(rows) == 1:
        return f"{format_value(rows[0])} {rows[0]['verdict']}"
    return f"{len(rows)} cells, {count_verdicts(rows)}"
