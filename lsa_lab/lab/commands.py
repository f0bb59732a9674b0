"""The commands on experiments; what is heavy is imported when a command runs."""

import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Suppress

from lsa_lab.files import write_file
from lsa_lab.lab.arguments import Flag, InPackage, Names, OnExperiments, parse_dataclass
from lsa_lab.lab.catalogue import UsageError, find, find_root, relative


@dataclass(frozen=True, kw_only=True)
class List(InPackage):
    """List the experiments, their questions, and the verdicts of the committed results."""

    def carry_out(self) -> None:
        from lsa_lab.lab import pages
        from lsa_lab.lab.listing import list_experiments

        try:
            root = find_root(self.package)
        except UsageError as error:  # as in an empty folder, after pip install
            if self.package != InPackage.package:
                raise
            print(textwrap.fill(f"{pages.ABOUT} There is {error}.", 100))
            return
        print(list_experiments(find(self.package), pages.load_papers(self.package, root)))


@dataclass(frozen=True, kw_only=True)
class Run(OnExperiments):
    """Compute, judge and draw experiments; the same command resumes after an interruption.

    Results go to .cache/figures. --config.FIELD VALUE changes a field of the configuration;
    lsa-lab run NAME -h lists the fields.
    """

    tier: str = "quick"  # smoke (seconds), quick (half a minute) or full
    sweep: str = ""  # one field and its values, as n=8,16,32
    claim: str = ""  # id of the claim that a sweep plots; else the first
    jobs: int = 1  # experiments at a time, each in a process of its own
    out: Path | None = None  # folder of results, in place of .cache/figures
    publish: Flag = False  # write the full tier to figures/NAME, to be committed
    config: Suppress[tuple[str, ...]] = ()  # the words that begin with --config., and their values

    def carry_out(self) -> int:
        experiments, is_changed = self.experiments, bool(self.config or self.sweep)
        if len(experiments) > 1 and is_changed:
            raise UsageError("--config and --sweep change one experiment: name one")
        if self.publish and (self.tier != "full" or is_changed):
            raise UsageError("--publish takes --tier full without changes: leave it out here")
        if self.jobs < 1:
            raise UsageError(f"--jobs {self.jobs}: choose 1 or more")
        from lsa_lab.lab import batch, sweep

        if self.sweep:
            return sweep.run_sweep(experiments[0], self)
        return batch.run_all(experiments, self)

    def show_fields(self) -> None:
        """Print the fields of the configuration of an experiment, with the values of quick."""
        experiment, *_ = self.experiments
        module, call = experiment.load(), f"lsa-lab run {experiment.name}"
        print(textwrap.fill(f"{experiment.name}: {experiment.question}", 100))
        print(f"\n{call} --config.FIELD VALUE, with these fields and values of quick:")
        parse_dataclass(module.Config, ["-h"], call, module.TIERS["quick"])


@dataclass(frozen=True, kw_only=True)
class Draw(OnExperiments):
    """Judge and draw results again from their result.nc, without computing."""

    panel: str = ""  # letter of one panel, written as panel_LETTER.pdf and .png
    out: Path | None = None  # folder of results, in place of the committed ones

    def carry_out(self) -> None:
        from lsa_lab.lab import results, run, settings

        settings.configure()
        for experiment in self.experiments:
            folder = self.out / experiment.name if self.out else experiment.figures
            module, result = experiment.load(), results.load(folder)
            if self.panel:
                for kind, content in run.draw(module, result, self.panel)[0].items():
                    write_file(folder / f"panel_{self.panel}.{kind}", content)
            else:
                content = (folder / "result.nc").read_bytes()
                print(run.write_result(experiment, module, content, folder)["caption"])
            print(relative(folder))


@dataclass(frozen=True, kw_only=True)
class Compare(InPackage):
    """Print the claims of two results side by side."""

    names: Names = ()  # two experiments or folders of results; of one, cached and committed

    def carry_out(self) -> None:
        from lsa_lab.lab.listing import compare_records, find_record

        if len(self.names) not in (1, 2):
            raise UsageError("compare takes two results: lsa-lab compare A B, or one experiment")
        experiments = find(self.package)
        left = find_record(self.names[0], experiments, cached=len(self.names) == 1)
        print(compare_records(left, find_record(self.names[-1], experiments, cached=False)))


@dataclass(frozen=True, kw_only=True)
class Report(InPackage):
    """Write CLAIMS.md, claims.csv and index.html from the committed results."""

    def carry_out(self) -> None:
        from lsa_lab.lab import pages

        root = find_root(self.package)
        papers = pages.load_papers(self.package, root)
        print(*map(relative, pages.write_report(root / "figures", papers)), sep="\n")


@dataclass(frozen=True, kw_only=True)
class Register(OnExperiments):
    """Write down the claims and the full configuration of experiments before their full run."""

    def carry_out(self) -> None:
        from lsa_lab.lab import registration, settings

        settings.set_environment()
        for experiment in self.experiments:
            new = registration.register(experiment)
            seeds = ", ".join(f"{k} = {v}" for k, v in registration.find_seeds(new["config"]))
            print(f"{experiment.name}: {len(new['claims'])} claims, {seeds or 'no seed'}")
        names = " ".join(self.names)
        print(f"commit this, then: lsa-lab run {names} --tier full --publish")


@dataclass(frozen=True, kw_only=True)
class New:
    """Write a small experiment that works, to be changed."""

    names: Names = ()  # PACKAGE/NAME or PACKAGE/THEME/NAME, such as my_lab/question

    def carry_out(self) -> None:
        if len(self.names) != 1:
            raise UsageError("name one experiment: lsa-lab new my_lab/question")
        path = Path(self.names[0].removesuffix(".py"))
        words = path.parts
        if not 2 <= len(words) <= 3 or not all(map(str.isidentifier, words)):
            raise UsageError(f"{self.names[0]!r}: write PACKAGE/NAME, as my_lab/question")
        script = path.with_suffix(".py")
        if script.exists():
            raise UsageError(f"{script} exists: choose another name")
        script.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(__file__).parent / "templates" / "experiment.py", script)
        package = "" if words[0] == "experiments" else f" --package {words[0]}"
        print(f"{script}; run it: lsa-lab run {script.stem}{package}")
