"""Toy: one shared client reads a hidden temperature; a saved computation averages it."""

from hashlib import sha256

from probebench.kernel import episode as ep
from probebench.kernel.budget import FREE, Budget, Ledger
from probebench.kernel.environment import Environment
from probebench.kernel.errors import ActionRejectedError, ConfigError
from probebench.kernel.strictjson import parse_object, require_fields
from probebench.kernel.turn import request_id


class ThermometerEpisode:
    opening_charge = FREE

    def __init__(self, seed, budget, nonce):
        self.seed, self.ledger, self.nonce = seed, Ledger(budget), nonce
        self.readings, self.acted, self.result, self.averaging, self.end = [], 0, "", False, None

    def pending(self):
        readings, step = list(self.readings), self.ledger.spent.get("steps", 0)
        public = {"readings": readings, "result": self.result, "step": step}
        if self.end is not None:
            return ep.Final(*self.end[:2], {"answer": self.end[2]}, public, "agent", "witness")
        if self.averaging:
            return ep.Task(f"average-{self.acted}", "average", {"readings": readings})
        body = {**public, "id": request_id(self.nonce, self.acted)}
        return ep.Ask(f"ask-{step}", "agent", ep.Launch.SHARED, body, 20.0, "witness")

    def parse(self, ask, line):
        require_fields(message := parse_object(line), {"id", "do", "value"})
        action = ep.Action(str(message["do"]), {"value": message["value"]})
        possible = {"read": len(self.readings) < 4, "average": self.readings, "answer": True}
        if not possible.get(action.name) or message["id"] != ask.body["id"]:
            raise ActionRejectedError("refused", "copy the id, and do what is possible")
        return action

    def cost(self, cause):
        return {"steps": 1, "reads": int(getattr(cause, "name", "") == "read")}

    def apply(self, cause):
        self.ledger.spend(self.cost(cause))
        match cause:
            case ep.Fault(kind=kind):
                self.end = (False, kind.value, None)
            case ep.Value(value=value):
                self.averaging, self.result = False, f"average {value}"
            case ep.Action(name=name, fields=fields):
                self.acted, self.averaging = self.acted + 1, name == "average"
                if name == "answer":
                    self.end = (True, "answered", fields["value"])
                elif name == "read":
                    noise = sha256(f"{self.seed}{self.acted}".encode()).digest()[0] % 7
                    self.readings.append(int(self.seed[:4], 16) + noise)

    def state_digest(self):
        return sha256(repr(vars(self)).encode()).digest()


class Thermometer(Environment):
    id = "thermometer"

    def configure(self, config):
        if len(str(config.get("seed"))) != 32:
            raise ConfigError("seed must have 32 hexadecimal digits")

    def budget(self, study):
        return Budget({"reads": 4})

    def open(self, study, nonce):
        return ThermometerEpisode(study.config["seed"], self.budget(study), nonce)

    def run(self, task):
        return sum(task.spec["readings"]) / len(task.spec["readings"])

    def evaluate(self, study, final):
        return {"truth": int(study.config["seed"][:4], 16), **final.evidence}

    def secrets(self, study, evaluation):
        return [study.config["seed"]]
