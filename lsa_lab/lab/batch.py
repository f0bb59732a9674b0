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
from lsa_lab.lab.listing import describe_difference, expect_seconds, find_rows
from lsa_lab.lab.pages import count_verdicts, format_value, group_by_claim
from lsa_lab.lab.progress import format_seconds

Answer = dict[str, Any] | str  # a record with its folder, or why there is none


def run_all(experiments: Sequence[Experiment], command: arguments.Run, config: list[str]) -> int:
    """Run experiments and print what they found; return 1 if one failed."""
    settings.set_environment(command.tier)
    out = choose_root(command)
    times = {x.name: expect_seconds(x, command.tier, out / x.name) for x in experiments}
    order = sorted(experiments, key=lambda x: -(times[x.name] or 0))
    work = functools.partial(run_one, command=command, config=config, out=out)
    start, records = time.monotonic(), dict[str, Any]()
    for experiment, answer in _map(work, order, command.jobs):
        times.pop(experiment.name)
        if isinstance(answer, str):
            print(f"{experiment.name}: {answer}", file=sys.stderr, flush=True)
            continue
        records[experiment.name] = answer
        print(describe(experiment, answer, command.publish), flush=True)
        if times:  # of the experiments that remain
            left = sum(seconds or math.nan for seconds in times.values()) / command.jobs
            time_left = f", about {format_seconds(left)} left" if left > 0 else ""
            print(f"  {len(records)} of {len(order)} done{time_left}\n", flush=True)
    if len(order) > 1:
        print(summarise(order, records, time.monotonic() - start))
        if command.publish:
            print("next: lsa-lab report")
        elif any((out / experiment.name).exists() for experiment in order):
            pages.write_report(out)
            print(relative((out / "index.html").resolve()))
    return 0 if len(records) == len(order) else 1


def choose_root(command: arguments.Run) -> Path:
    """Return the folder of results: --out, or .cache/figures with a folder for smoke and full."""
    usual = cache_folder() / "figures" / ("" if command.tier == "quick" else command.tier)
    return command.out or usual


def _map(work: Any, order: Sequence[Experiment], jobs: int) -> Iterator[tuple[Experiment, Answer]]:
    """Yield experiments with their answers as the runs end."""
    if jobs == 1 or len(order) == 1:
        for experiment in order:
            yield experiment, work(experiment)
            settings.free_mappings()
        return
    # A process for each experiment: memory and compiled programs go with it.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        futures = {pool.submit(work, experiment): experiment for experiment in order}
        try:
            for future in concurrent.futures.as_completed(futures):
                error = future.exception()
                yield futures[future], f"its process ended: {error}" if error else future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_one(
    experiment: Experiment, *, command: arguments.Run, config: list[str], out: Path
) -> Answer:
    """Run one experiment."""
    settings.configure(command.tier)
    from lsa_lab.lab import run

    module = experiment.load()
    if command.tier not in module.TIERS:
        return f"no tier {command.tier!r}: it has {', '.join(module.TIERS)}"
    values = arguments.parse_config(module, command.tier, config, experiment.name)
    job = run.Job(experiment, command.tier, values, out)
    seconds = expect_seconds(experiment, command.tier, job.folder)
    took = f"; it took {format_seconds(seconds)} last time" if seconds else ""
    options = "".join(f" {word}" for word in config)
    print(f"{experiment.name}, {command.tier} tier{options}{took}", flush=True)
    try:
        return run.run(job, publish=command.publish)
    except UsageError:
        raise
    except Exception as error:
        if command.jobs == 1 and len(command.names) == 1 and command.names != ("all",):
            raise
        traceback.print_exc()
        return f"failed: {error}"


def describe(experiment: Experiment, record: dict[str, Any], publish: bool) -> str:
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


def summarise(experiments: Sequence[Experiment], records: dict[str, Any], seconds: float) -> str:
    """Return a table: seconds and verdicts of each experiment, compared with the committed ones."""
    lines = ["", f"{'experiment':26}{'seconds':>8}  agree  verdicts"]
    for experiment in experiments:
        if experiment.name not in records:
            lines.append(f"{experiment.name:26}{'-':>8}  failed")
            continue
        record = records[experiment.name]
        committed = {row["id"]: row["verdict"] for row in find_rows(experiment.figures)}
        shared = [row for row in record["claims"] if row["id"] in committed]
        agree = sum(row["verdict"] == committed[row["id"]] for row in shared)
        lines.append(
            f"{experiment.name:26}{record['seconds']:8.0f}  {f'{agree}/{len(shared)}':5}  "
            f"{count_verdicts(record['claims'])}"
        )
    return "\n".join([*lines, f"{len(records)} experiments in {format_seconds(seconds)}"])
