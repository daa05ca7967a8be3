"""Allowed reasons for skipping a test in CI. Any other reason fails, so no test is lost silently.

`pytest --only-known-skips`, which .ci/run gives where CI is set. They apply to Linux with the extra dev
installed. Runs on other systems skip missing parts and only report that.
"""

import re

import pytest

KNOWN = {
    r"no GPU here, or pytest was run without --gpu": "runners have none",
    r"the real corpora are not (here|on this machine.*)": "they may not be redistributed",
    r"no .*/SOURCE.md in the folder": "as the real corpora",
    r"the published schema is not here": "it lies beside the real corpora",
    r"no file system can be mounted here": "only root can, and not in every container",
    r"no machine can be made up here": "only root can, and not in every container",
    r"no other user can be made up here": "only root can, and not in every container",
    r"the program eflomal is not installed": "its licence keeps it out of the extra dev",
    r"could not import 'bitsandbytes'.*": "it needs a GPU",
    r"could not import 'sentence_transformers'.*": "too large for the extra dev",
    r"could not import 'systran_align'.*": "there are wheels for some systems only",
    r"no clone of .*": "clones of other projects are no part of this one",
    r"no compiler g\+\+ here": "only tests beside clones need one",
    r"could not import 'eflomal'.*": "its licence keeps it out of the extra dev",
    r"could not import 'statsmodels'.*": "only tests beside other projects need it",
    r"simalign is not installed": "it needs a torch of its own",
}
"""Patterns of reasons, each with why it is right."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-known-skips", action="store_true", help="fail where a test is skipped for another reason"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--only-known-skips") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OnlyKnown())


class OnlyKnown:
    """Collects the reasons of skipped tests. Unknown ones fail the session."""

    def __init__(self) -> None:
        self.unknown: dict[str, str] = {}
        """By reason, the first test or file that was skipped."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not any(re.fullmatch(pattern, reason) for pattern in KNOWN):
                self.unknown.setdefault(reason, report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unknown:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, test in self.unknown.items():
            terminalreporter.write_line(
                f"{test}: skipped ({reason}), which --only-known-skips forbids. Make it run here, or add the "
                "reason to tests/known_skips.py.",
                red=True,
            )
