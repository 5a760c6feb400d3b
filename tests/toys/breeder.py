"""Toy: computes alone, then asks a process a proposal with one repair, then hosts a session."""

from hashlib import sha256

from probebench.kernel import episode as ep
from probebench.kernel.budget import FREE, Budget, Ledger
from probebench.kernel.environment import Environment
from probebench.kernel.errors import ActionRejectedError, ConfigError
from probebench.kernel.strictjson import parse_object, require_fields


class BreederEpisode:
    opening_charge = FREE

    def __init__(self, config, budget):
        self.config, self.ledger = config, Ledger(budget)
        self.scores, self.proposals, self.attempts = [], 0, 0
        self.repair = self.candidate = self.inner = None

    def pending(self):
        if len(self.scores) < 3:  # nobody is asked in the first turns
            return ep.Task(f"seed-{len(self.scores)}", "score", {"x": len(self.scores)})
        if self.candidate is not None:
            return ep.Task(f"score-{self.attempts}", "score", {"x": self.candidate})
        if self.proposals < self.config["proposals"]:
            body = {"scores": list(self.scores), "attempt": self.attempts, "repair": self.repair}
            # An attempt costs, so one that may have been sent is superseded.
            key = f"attempt-{self.attempts}"
            return ep.Ask(key, "proposer", ep.Launch.PER_ASK, body, 20.0, reissue=False)
        if self.config["inner"] is not None and self.inner is None:
            return ep.Task("inner", "session", {"config": self.config["inner"]}, hosted=True)
        return ep.Final(True, "all proposals made", {"scores": list(self.scores)})

    def parse(self, ask, line):
        require_fields(message := parse_object(line), {"x"})
        if type(message["x"]) is not int or not 0 <= message["x"] <= 1000:
            raise ActionRejectedError("grammar", "x must be an integer from 0 to 1000.")
        return ep.Action("propose", {"x": message["x"]})

    def cost(self, cause):
        return {"computations": 1} if isinstance(cause, ep.Value) else {"attempts": 1}

    def apply(self, cause):
        self.ledger.spend(self.cost(cause))
        if isinstance(cause, ep.Value):
            if isinstance(cause.value, dict):
                self.inner = cause.value
            else:
                self.scores, self.candidate = [*self.scores, cause.value], None
            return
        self.attempts += 1
        repairable = isinstance(cause, ep.Rejection) and self.repair is None
        self.repair = cause.code if repairable else None
        self.proposals += not repairable
        self.candidate = getattr(cause, "fields", {}).get("x")

    def state_digest(self):
        return sha256(repr(vars(self)).encode()).digest()


class Breeder(Environment):
    id = "breeder"

    def configure(self, config):
        if type(config.get("proposals")) is not int or "inner" not in config:
            raise ConfigError("proposals must be an integer, and inner a configuration or null")

    def budget(self, study):
        return Budget({})

    def open(self, study, nonce):
        return BreederEpisode(study.config, self.budget(study))

    def run(self, task):
        return task.spec["x"] * 37 % 101

    def check(self, task, value):
        if value != self.run(task):
            raise ValueError("it is another score")

    def evaluate(self, study, final):
        return {"best": max(final.evidence["scores"])}
