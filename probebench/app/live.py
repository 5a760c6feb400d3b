"""The live end of a journal: clients that answer, computations that run."""

from __future__ import annotations

from collections.abc import Callable

from probebench.app.rig import Clients, Stop
from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment
from probebench.kernel.episode import Ask, Fault, FaultKind, Task
from probebench.kernel.turn import Answer

RunHosted = Callable[[Task], Json]


class Live:
    """The source of answers and values beyond the journal."""

    def __init__(
        self, environment: Environment, clients: Clients, run_hosted: RunHosted, stop: Stop
    ) -> None:
        self._environment = environment
        self._clients = clients
        self._run_hosted = run_hosted
        self._stop = stop

    def answer(self, ask: Ask, message: bytes, *, sent_before: bool) -> tuple[Answer, Json]:
        """Have a client answer, unless asking again would cost twice."""
        self._stop.check()
        if sent_before and not ask.reissue:
            timing = {"input_wait_s": 0.0, "deadline_s": ask.deadline_s}
            return Answer(b"", Fault(FaultKind.SUPERSEDED)), timing
        return self._clients.exchange(ask, message)

    def value(self, task: Task) -> Json:
        """Run a computation here, or in a session of its own."""
        self._stop.check()
        return self._run_hosted(task) if task.hosted else self._environment.run(task)
