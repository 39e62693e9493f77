"""A runner with moods: a scripted one (testing/scripted.py) whose starts fail now and then, whose hosts lose tasks."""

from collections.abc import Callable, Mapping

from tasuki.runners.runner import StartFailed, StartLater
from tasuki.testing.clock import ManualClock
from tasuki.testing.scripted import Script, ScriptedRunner
from tasuki.testing.simulation.faults import Weather
from tasuki.values.attempts import Key, Launch

IMAGES: Mapping[str, Script] = {
    "quick": Script(),
    "minute": Script.lasting(minutes=1),
    "hour": Script.lasting(minutes=61),
    "broken": Script(duration_ms=5_000, exit_code=3),
    "greedy": Script(duration_ms=20_000, out_of_memory=True),
    "endless": Script(forever=True, drain_ms=5_000),
    "stubborn": Script(forever=True, drain_ms=10_000_000),
}
"""What tasks there are, by image: how long each takes and how it ends."""


class MoodyRunner(ScriptedRunner):
    """See the module. `on_launch` is told of everything that truly began."""

    def __init__(self, clock: ManualClock, weather: Weather, on_launch: Callable[[Launch], None]) -> None:
        super().__init__(clock, IMAGES)
        self._weather, self._on_launch = weather, on_launch

    def start(self, launch: Launch) -> None:
        """Start it, or say that it could not be, or could not be now."""
        rate = self._weather.rates.start_fails
        if self._weather.strikes("start failed", rate / 2):
            raise StartFailed("the runner is out of sorts (simulated)")
        if self._weather.strikes("start put off", rate):
            raise StartLater("the runner has no means just now (simulated)")
        before = len(self.started)
        super().start(launch)
        if len(self.started) > before:
            self._on_launch(launch)

    def alive(self) -> list[Key]:
        """Answer the attempts that run now, the oldest first."""
        return [key for key, play in self._plays.items() if play.ended is None and not play.lost]
