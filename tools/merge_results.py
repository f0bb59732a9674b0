"""Results of experiments that became parts of another one, joined without a number moving.

``python -m tools.merge_results NEW part=OLD ...`` takes, for each committed tier of either, the
result of NEW as it was before and that of each OLD, and writes the whole, judged and drawn, into
figures/NEW; a tier that one of them lacks takes its laptop result. Refused unless the whole's
Config of today has the values that each part was computed with, and unless every part of the whole
has the contents that it had. Folders of OLD are removed. Keys that a Config no longer has do not
count, nor do new ones.
"""

import json
import shutil
import sys
from pathlib import Path

from lsa_lab.harness.run import records, runner
from lsa_lab.harness.run.folders import folder_of
from lsa_lab.harness.run.laboratory import Experiment, experiments_of
from lsa_lab.store import parts, provenance, results
from tools.same_claims import content

FIGURES = Path(__file__).resolve().parents[1] / "figures"
OWN = ("git_commit", "git_dirty", "date", "wall_time", "versions", "device", "contents_sha256")


def read(name: str, tier: str):
    """The Dataset and the record of a tier, or of the laptop tier."""
    folder = FIGURES / name / ("paper" if tier == "paper" else "")
    folder = folder if (folder / "result.nc").exists() else FIGURES / name
    return results.load(folder / "result.nc"), json.loads((folder / "config.json").read_text())


def fit(old: dict, new: dict, what: str) -> None:
    """Refuse a part that was computed with other values."""
    other = [key for key in old if key in new and old[key] != new[key]]
    if other:
        sys.exit(f"{what}: {', '.join(f'{k}: {old[k]} there, {new[k]} here' for k in other)[:600]}")


def merge(experiment: Experiment, tier: str, olds: dict[str, str]) -> None:
    config = results.plain(experiment.tiers[tier])
    sources = {part: read(name, tier) for part, name in {"": experiment.name, **olds}.items()}
    for part, (dataset, _) in sources.items():
        own = config[part] if part else config
        fit(json.loads(dataset.attrs["config"]), own, f"{experiment.name} {tier} {part}")
    bare = {
        part: dataset.assign_attrs({}).drop_attrs(deep=False)
        for part, (dataset, _) in sources.items()
    }
    whole = parts.join(bare.pop(""), **bare)
    facts = [dataset.attrs for dataset, _ in sources.values()]
    attrs = {key: value for key, value in facts[0].items() if key in provenance.NAMES}
    own = {
        part: {key: attrs[key] for key in OWN if key in attrs}
        for part, attrs in zip(sources, facts, strict=True)
        if part
    }
    earlier = json.loads(attrs.get("parts", "{}"))
    times = [each.get("wall_time") for each in facts]
    if all(time is not None for time in times):
        attrs["wall_time"] = float(sum(times))
    attrs |= {
        "config": json.dumps(config),
        "parts": json.dumps({**earlier, **own}, default=_plain),
        "contents_sha256": results.contents_sha256(whole),
    }
    folder = folder_of(experiment, tier, FIGURES)
    results.write(folder / "result.nc", content(whole.assign_attrs(attrs)))
    again = results.load(folder / "result.nc")
    for part, (dataset, _) in sources.items():
        sha = results.contents_sha256(parts.part(again, part))
        assert sha == dataset.attrs["contents_sha256"], f"{part}: other contents"
    runner.draw(experiment, folder)
    record = dict(sources[""][1])
    spent = [each[1].get("wall_time") for each in sources.values()]
    memory = [each[1].get("memory") or 0 for each in sources.values()]
    record |= {"experiment": experiment.name, "tier": tier, "config": config, "start": None}
    record |= {"wall_time": None if None in spent else sum(spent), "memory": max(memory) or None}
    record |= records.judgement(experiment, config, runner.judged(experiment, again))
    records.write(folder, record)
    before = {}
    for _, facts in sources.values():
        before |= {id.partition(".")[2]: each for id, each in facts["verdicts"].items()}
    now = {id.partition(".")[2]: each for id, each in record["verdicts"].items()}
    moved = [
        f"{id} {before[id]} -> {now[id]}" for id in before.keys() & now if before[id] != now[id]
    ]
    words = f"gone: {sorted(before.keys() - now)}; new: {sorted(now.keys() - before)}; {moved=}"
    print(f"{folder.relative_to(FIGURES)}: {len(now)} verdicts; {words}")


def _plain(value):
    return value.item()


def main(new: str, *words: str) -> None:
    experiment = experiments_of("experiments")[new]
    olds = dict(word.split("=") for word in words)
    papers = [(FIGURES / name / "paper" / "result.nc").exists() for name in (new, *olds.values())]
    for tier in ("paper", "laptop") if any(papers) else ("laptop",):
        merge(experiment, tier, olds)
    for old in olds.values():
        shutil.rmtree(FIGURES / old)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
