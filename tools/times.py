"""``python -m tools.times``: what ``make figures`` took here, into the committed records.

It is what ``lsa-lab list`` and a run say beforehand, and what decides who begins; the page of a
result keeps the time of the run that made it. For a machine that did nothing else.
"""

from lsa_lab.harness.run import folders, records

COSTS = ("wall_time", "start", "memory")


def main() -> None:
    for folder in sorted(folders.reproductions().glob("*")):
        kept = folders.FIGURES / folder.name
        ours, committed = map(records.last_run, (folder, kept))
        if not ours or not committed or ours["config"] != committed["config"]:
            continue
        if ours.get("wall_time") is not None:  # as of one that was resumed
            records.judge_again(kept, {name: ours[name] for name in COSTS})
            print(f"{folder.name}: {committed.get('wall_time')} -> {ours['wall_time']:.0f} s")


if __name__ == "__main__":
    main()
