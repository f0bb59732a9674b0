"""What every committed result is judged by, written down, and compared after a change of the code.

``python -m tools.same_claims write FILE`` in the tree before a change, and
``python -m tools.same_claims compare FILE`` after it: every row has to have the same source, words,
criterion, bounds, statistic and samples, these to the bit, and every result the same contents,
caption and pixels. A row with nothing to judge (samples None) and a row that is not there are the
same. Names of experiments after FILE restrict the comparison to them.

``python -m tools.same_claims migrate NAME...`` gives committed results the keys of today's Config:
keys that it no longer has are dropped, new ones are added, and a value that differs is refused. The
data and their provenance stay as they are.
"""

import hashlib
import io
import json
import sys
from pathlib import Path

import numpy as np

from lsa_lab.harness.draw import pictures as drawings
from lsa_lab.harness.draw import style
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.judging import claims
from lsa_lab.judging.statements import cells_of
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[1]
FIELDS = ("source", "says", "criterion", "bounds", "statistic", "revision", "redrawn", "overlap")


def rows_of(file: Path, experiment) -> dict[str, tuple[dict, list[np.ndarray]]]:
    """{id: (words and bounds, arrays)} of one result."""
    dataset = results.load(file)
    statements, samples = claims.evidence(experiment.door("claims"), dataset)
    whole = {"contents": dataset.attrs["contents_sha256"]}
    whole |= pictures(dataset, experiment.door("figure"))
    rows = {"": (whole, [])}
    for statement in cells_of(statements):
        sample = samples[statement.id]
        if sample is not None:
            words = {name: str(getattr(statement, name)) for name in FIELDS}
            rows[statement.id] = words, np.asarray(sample)
    return rows


def pictures(dataset, door) -> dict[str, str]:
    """The caption, and digests of what is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    digests = {"caption": " ".join(door.caption(dataset).split())}
    with style.context():
        for name, picture in drawings.of_door(door, dataset):
            canvas = FigureCanvasAgg(picture)
            canvas.draw()
            digests[name] = hashlib.sha256(canvas.buffer_rgba()).hexdigest()
    return digests


def everything(names: list[str]) -> dict[str, dict]:
    """{"experiment or experiment/paper": rows} of every committed result."""
    experiments = experiments_of("experiments")
    return {
        file.parent.relative_to(ROOT / "figures").as_posix(): rows_of(file, experiments[name])
        for file in sorted((ROOT / "figures").glob("**/result.nc"))
        if (name := file.relative_to(ROOT / "figures").parts[0]) in (names or experiments)
    }


def write(file: Path, results: dict[str, dict]) -> None:
    words = {place: {id: row[0] for id, row in rows.items()} for place, rows in results.items()}
    arrays = {
        f"{place}::{id}": row[1]
        for place, rows in results.items()
        for id, row in rows.items()
        if id
    }
    np.savez_compressed(file, words=np.array(json.dumps(words)), **arrays)


def compare(file: Path, results: dict[str, dict], whole: bool) -> list[str]:
    """The differences, a sentence each."""
    with np.load(file, allow_pickle=False) as stored:
        words = json.loads(str(stored["words"]))
        arrays = {name: stored[name] for name in stored.files if name != "words"}
    faults = [f"{place} is not there" for place in words if whole and place not in results]
    for place, rows in results.items():
        before = words.get(place, {})
        faults += [f"{place}: no row {id}" for id in before if id not in rows]
        for id, (now, sample) in rows.items():
            if id not in before:
                faults.append(f"{place}: a new row {id}")
                continue
            faults += [
                f"{place}.{id}: {name} was {before[id][name]!r}, is {now[name]!r}"
                for name in now
                if now[name] != before[id][name]
            ]
            old = arrays.get(f"{place}::{id}")
            if id and not (old.shape == sample.shape and np.array_equal(old, sample)):
                faults.append(f"{place}.{id}: other samples")
    return faults


def migrate(names: list[str]) -> list[str]:
    """What was refused, a sentence each."""
    experiments, faults = experiments_of("experiments"), []
    for name in names:
        for file in sorted((ROOT / "figures" / name).glob("**/result.nc")):
            record = file.with_name("config.json")
            facts = json.loads(record.read_text("utf-8"))
            dataset = results.load(file)
            old = json.loads(dataset.attrs["config"])
            new = results.plain(experiments[name].tiers[facts["tier"]])
            other = [key for key in old if key in new and old[key] != new[key]]
            if other:
                faults.append(f"{file.relative_to(ROOT)}: other values of {', '.join(other)}")
                continue
            if old != new:
                gone, more = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
                print(f"{file.relative_to(ROOT)}: without {gone}, with {more}")
                attrs = dataset.attrs | {"config": json.dumps(new)}
                results.write(file, content(dataset.assign_attrs(attrs)))
                again = results.load(file)
                assert again.attrs["contents_sha256"] == dataset.attrs["contents_sha256"]
                text = json.dumps(facts | {"config": new}, indent=2, ensure_ascii=False)
                results.write(record, f"{text}\n".encode())
    return faults


def content(dataset) -> bytes:
    buffer = io.BytesIO()
    dataset.to_netcdf(buffer, engine="h5netcdf")
    content = buffer.getvalue()
    return content + results._MARK + hashlib.sha256(content).hexdigest().encode()


def main(command: str, *words: str) -> int:
    if command == "migrate":
        faults = migrate(list(words))
        print("\n".join(faults))
        return bool(faults)
    file, *names = words
    results, faults = everything(names), []
    if command == "write":
        write(Path(file), results)
    else:
        faults = compare(Path(file), results, whole=not names)
    print("\n".join(faults))
    rows = sum(len(each) - 1 for each in results.values())
    print(f"{len(results)} results, {rows} rows, {len(faults)} differences")
    return bool(faults)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("write", "compare", "migrate"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
