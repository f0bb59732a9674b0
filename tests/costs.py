"""What every folder of tests costs: seconds and compiled programs, printed after a run of CI."""

import collections

import jax
import pytest

COMPILED = "/jax/core/compile/backend_compile_duration"


class Costs:
    """The plugin: a worker counts what it compiles and sends it with its reports."""

    def __init__(self) -> None:
        self.compiled = 0
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.programs: dict[str, int] = collections.defaultdict(int)
        jax.monitoring.register_event_duration_secs_listener(self.listen)

    def listen(self, event: str, *_: object, **__: object) -> None:
        self.compiled += event == COMPILED

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        report.compiled, self.compiled = self.compiled, 0
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = report.nodeid.rpartition("::")[0].rpartition("/")[0]
        self.seconds[folder] += report.duration
        self.programs[folder] += getattr(report, "compiled", 0)  # none of a worker that died

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds and compiled programs of each folder")
        for folder in sorted(self.seconds, key=self.seconds.get, reverse=True):
            terminalreporter.line(f"{self.seconds[folder]:6.0f} {self.programs[folder]:6} {folder}")
        terminalreporter.line(f"{sum(self.seconds.values()):6.0f} {sum(self.programs.values()):6}")
