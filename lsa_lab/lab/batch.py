"""Several experiments in one call: one after the other, or in a pool of processes."""

import concurrent.futures
import functools
import multiprocessing
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsa_lab.files import cache_folder
from lsa_lab.lab import arguments, results, settings
from lsa_lab.lab.catalogue import Experiment, UsageError, relative
from lsa_lab.lab.pages import count_verdicts, format_value, group_by_claim
from lsa_lab.lab.progress import format_seconds


def run_all(experiments: Sequence[Experiment], command: arguments.Run, config: list[str]) -> int:
    """Run experiments and print what they found; return 1 if one failed."""
    settings.set_environment(command.tier)
    out = choose_root(command)
    order = sorted(experiments, key=lambda each: -(_expected(each, command.tier) or 0))
    work = functools.partial(run_one, command=command, config=config, out=out)
    start, records, failed = time.monotonic(), {}, []
    for experiment, answer in _map(work, order, command.jobs):
        if isinstance(answer, str):
            failed.append(experiment.name)
            print(f"{experiment.name}: {answer}", file=sys.stderr, flush=True)
            continue
        records[experiment.name] = answer
        print(describe(experiment, answer, command), flush=True)
        waiting = [_expected(each, command.tier) for each in order if each.name not in records]
        if waiting:
            left = None if None in waiting else sum(filter(None, waiting)) / command.jobs
            time_left = f", about {format_seconds(left)} left" if left else ""
            print(f"  {len(records)} of {len(order)} done{time_left}\n", flush=True)
    if len(order) > 1:
        print(summarise(order, records, time.monotonic() - start))
        print(_write_index(order, out, command))
    return 1 if failed else 0


def choose_root(command: arguments.Run) -> Path:
    """Return the folder of results: --out, or .cache/figures with a folder for smoke and full."""
    usual = cache_folder() / "figures" / ("" if command.tier == "quick" else command.tier)
    return command.out or usual


def _map(work: Any, order: Sequence[Experiment], jobs: int) -> Any:
    """Yield (experiment, record or message) as the runs end."""
    if jobs == 1 or len(order) == 1:
        for experiment in order:
            yield experiment, work(experiment)
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
) -> dict[str, Any] | str:
    """Run one experiment; return its record, or a message if it failed."""
    last = _expected(experiment, command.tier)
    took = f"; it took {format_seconds(last)} last time" if last and not config else ""
    said = "".join(f" {word}" for word in config)
    print(f"{experiment.name}, {command.tier} tier{said}{took}", flush=True)
    settings.configure(command.tier)
    from lsa_lab.lab import run

    module = experiment.load()
    if command.tier not in module.TIERS:
        return f"no tier {command.tier!r}: it has {', '.join(module.TIERS)}"
    values = arguments.parse_config(module, command.tier, config, experiment.name)
    changes = run.find_changes(module.TIERS[command.tier], values)
    folder = run.choose_folder(experiment, changes, out)
    try:
        job = run.Job(experiment, command.tier, values, folder)
        return run.run(job, publish=command.publish) | {
            "folder": str(experiment.figures if command.publish else folder)
        }
    except UsageError:
        raise
    except Exception as error:
        if command.jobs == 1 and len(command.names) == 1 and command.names != ("all",):
            raise
        traceback.print_exc()
        return f"failed: {error}"


def _expected(experiment: Experiment, tier: str) -> float | None:
    """Return the seconds of the last run of a tier: from the cache, or of the committed result."""
    for folder in (cache_folder() / "figures" / experiment.name, experiment.figures):
        try:
            record = results.load_record(folder)
        except UsageError:
            continue
        if record["tier"] == tier:
            return record["seconds"]
        if tier == "quick" and record["quick_seconds"]:
            return record["quick_seconds"]
    return None


def describe(experiment: Experiment, record: dict[str, Any], command: arguments.Run) -> str:
    """Return the answer of a run: caption, claims beside the committed ones, and the figure."""
    committed = [] if command.publish else _committed_rows(experiment)
    others, lines = dict(group_by_claim(committed)), [f"  {record['caption']}"]
    for claim, rows in group_by_claim(record["claims"]):
        beside = f"; committed {_shorten(others[claim])}" if claim in others else ""
        lines.append(f"  {claim}: {_shorten(rows)}{beside}")
    figure = relative(Path(record["folder"]).resolve() / "figure.pdf")
    lines.append(f"  {format_seconds(record['seconds'])}; {figure}")
    return "\n".join(lines)


def _shorten(rows: Sequence[Any]) -> str:
    """Return the value and verdict of a claim, or of one with several cells the counts."""
    if len(rows) == 1:
        return f"{format_value(rows[0])} {rows[0]['verdict']}"
    return f"{len(rows)} cells, {count_verdicts(rows)}"


def _committed_rows(experiment: Experiment) -> list[dict[str, Any]]:
    try:
        return results.load_record(experiment.figures)["claims"]
    except UsageError:
        return []


def summarise(experiments: Sequence[Experiment], records: dict[str, Any], seconds: float) -> str:
    """Return a table: seconds and verdicts of each experiment, beside the committed verdicts."""
    lines = ["", f"{'experiment':26}{'seconds':>8}  agree  verdicts"]
    for experiment in experiments:
        record = records.get(experiment.name)
        if record is None:
            lines.append(f"{experiment.name:26}{'-':>8}  failed")
            continue
        committed = {row["id"]: row for row in _committed_rows(experiment)}
        shared = [row for row in record["claims"] if row["id"] in committed]
        agree = sum(row["verdict"] == committed[row["id"]]["verdict"] for row in shared)
        lines.append(
            f"{experiment.name:26}{record['seconds']:8.0f}  {f'{agree}/{len(shared)}':5}  "
            f"{count_verdicts(record['claims'])}"
        )
    lines.append(f"{len(records)} experiments in {format_seconds(seconds)}")
    return "\n".join(lines)


def _write_index(experiments: Sequence[Experiment], out: Path, command: arguments.Run) -> str:
    """Write the pages of the results in a folder; return the path of the index."""
    from lsa_lab.lab import pages

    if command.publish:
        return "next: lsa-lab report"
    folders = [out / each.name for each in experiments if (out / each.name).exists()]
    if not folders:
        return ""
    pages.write_report(out)
    return relative((out / "index.html").resolve())
