"""Whole sessions through the commands that users type."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.journals import masked
from tests.process.drivers import (
    REPOSITORY,
    SCRIPTED,
    ZERO,
    agent,
    driver,
    environment,
    play,
    run,
    scripted,
    write_config,
)
from tests.rigs import folder_bytes

DEVELOPMENT = REPOSITORY / "configs/agent_protocol_development.json"
DIRECT = REPOSITORY / "configs/agent_protocol_development_direct.json"
STRESS = REPOSITORY / "configs/agent_protocol_stress.json"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A direct session, complete; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "session"
    assert (
        run("session", "--config", DIRECT, "--output", folder, "--agent", SCRIPTED).returncode == 0
    )
    return folder


def evaluator(folder: Path) -> Any:
    return json.loads((folder / "evaluator.json").read_bytes())


# -- both channels ---------------------------------------------------------------------


def test_a_started_client_and_our_own_streams_give_the_same_journal(tmp_path: Path) -> None:
    started = ("session", "--config", DEVELOPMENT, "--output", tmp_path / "a", "--agent", SCRIPTED)
    assert run(*started).returncode == 0
    with driver("session", "--config", DEVELOPMENT, "--output", tmp_path / "b") as speaker:
        # Not byte for byte what the client library would write, but its actions.
        final = play(speaker, scripted)
        assert speaker.finish()[0] == 0
    assert final["outcome"] == {"status": "submitted", "cause": "submitted"}
    with_spaces, without = masked(tmp_path / "b"), masked(tmp_path / "a")
    assert [parsed(record) for record in with_spaces] == [parsed(record) for record in without]


def parsed(record: bytes) -> Any:
    document = json.loads(record)
    for field in ("previous_sha256",):
        document.pop(field)
    if document.get("message"):
        document["message"].pop("previous_record_sha256")
    return document


def test_the_library_over_both_channels_gives_the_same_journal_bytewise(tmp_path: Path) -> None:
    started = ("session", "--config", DEVELOPMENT, "--output", tmp_path / "a", "--agent", SCRIPTED)
    assert run(*started).returncode == 0
    script = [sys.executable, str(REPOSITORY / "scripts/run_agent_protocol_control.py")]
    given = ["--config", str(DEVELOPMENT), "--output", str(tmp_path / "b")]
    subprocess.run([*script, *given], check=True, capture_output=True, timeout=120)
    assert masked(tmp_path / "a") == masked(tmp_path / "b")


def test_journals_of_other_actions_differ_after_masking(tmp_path: Path, finished: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "b") as speaker:
        play(speaker, lambda request: ("submit", ZERO))
        assert speaker.finish()[0] == 0
    assert masked(tmp_path / "b") != masked(finished)


def test_the_module_and_the_script_work_as_the_protocol_page_writes_them(tmp_path: Path) -> None:
    script = [sys.executable, "scripts/run_agent_protocol_control.py"]
    output = tmp_path / "control"
    given = ["--config", "configs/agent_protocol_development.json", "--output", str(output)]
    ran = subprocess.run([*script, *given], cwd=REPOSITORY, check=False, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    again = subprocess.run(
        [*script, *given, "--resume"], cwd=REPOSITORY, check=False, capture_output=True
    )
    assert again.returncode == 0
    assert b"complete already" in again.stderr
    module = [sys.executable, "-m", "probebench.agent_session", "--verify", str(output)]
    verified = subprocess.run(module, check=False, capture_output=True)
    assert verified.returncode == 0
    assert b"verified" in verified.stdout


def test_nothing_but_the_protocol_reaches_standard_output(tmp_path: Path) -> None:
    """Whatever prints within the driver, by Python or beneath it, goes elsewhere."""
    program = (
        "import os, sys\n"
        "from probebench.environments.optical import camera\n"
        "genuine = camera.draw_frame\n"
        "def noisy(*given):\n"
        "    print('a stray line'); sys.stdout.flush(); os.write(1, b'beneath Python\\n')\n"
        "    return genuine(*given)\n"
        "from probebench.environments.optical import fixture\n"
        "fixture.draw_frame = noisy\n"
        "from probebench.cli import main\n"
        "sys.argv = ['probebench', *sys.argv[1:]]\n"
        "main()\n"
    )
    path = tmp_path / "noisy.py"
    path.write_text(program)
    ran = subprocess.run(
        [sys.executable, path, "session", "--config", DIRECT, "--output", tmp_path / "a"],
        input=b"not an action\n",
        capture_output=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["request", "request", "final"]
    assert b"a stray line" in ran.stderr
    assert b"beneath Python" in ran.stderr


# -- locks, mismatches, completed folders -------------------------------------------------


def test_a_second_driver_is_refused_at_once(tmp_path: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        request = speaker.receive()
        for words in (
            ("session", "--config", DIRECT, "--output", tmp_path / "a"),
            ("session", "--config", DIRECT, "--output", tmp_path / "a", "--resume"),
            ("resume", tmp_path / "a"),
            ("verify", tmp_path / "a"),
        ):
            second = run(*words)
            assert second.returncode == 6, second.stderr
            assert b"Traceback" not in second.stderr
        speaker.act(request, "submit", ZERO)
        assert speaker.receive()["kind"] == "final"
        assert speaker.finish()[0] == 0
    assert run("verify", tmp_path / "a").returncode == 0


def unfinished(folder: Path, config: Path = DIRECT) -> None:
    with driver("session", "--config", config, "--output", folder) as speaker:
        speaker.receive()
        speaker.process.kill()


def test_another_configuration_is_refused_naming_the_fields(tmp_path: Path) -> None:
    first = write_config(tmp_path / "first.json")
    unfinished(tmp_path / "a", first)
    other = write_config(tmp_path / "other.json", wavelength_nm=851.0, budget__exposures=7)
    words = (
        "session",
        "--config",
        other,
        "--output",
        tmp_path / "a",
        "--resume",
        "--agent",
        SCRIPTED,
    )
    refused = run(*words)
    assert refused.returncode == 4
    assert b"budget.exposures, wavelength_nm" in refused.stderr
    assert b"851" not in refused.stderr


def patched_driver(
    tmp_path: Path, patch: str, *words: str | Path
) -> subprocess.CompletedProcess[bytes]:
    """The driver with a line run before it starts."""
    program = f"{patch}\nfrom probebench.cli import main\nmain()\n"
    path = tmp_path / "patched.py"
    path.write_text(program)
    return subprocess.run(
        [sys.executable, path, *map(str, words)], input=b"", capture_output=True, check=False
    )


ANOTHER_NUMPY = (
    "from importlib import metadata\n"
    "genuine = metadata.version\n"
    "metadata.version = lambda name: '9.9.9' if name == 'numpy' else genuine(name)"
)
ANOTHER_SOURCE = (
    "from probebench.host import snapshot\n"
    "genuine = snapshot.capture\n"
    "def capture(root):\n"
    "    files = genuine(root)\n"
    "    files['kernel/turn.py'] += b'# changed'\n"
    "    return files\n"
    "snapshot.capture = capture"
)
ANOTHER_PILLOW = (
    "from probebench.host import runtime\n"
    "genuine = runtime.capture_display\n"
    "runtime.capture_display = lambda: {**genuine(), 'zlib': {'version': '0.1'}}"
)


@pytest.mark.parametrize(
    ("patch", "named"),
    [(ANOTHER_NUMPY, b"numpy"), (ANOTHER_SOURCE, b"kernel/turn.py"), (ANOTHER_PILLOW, b"zlib")],
    ids=["numpy", "source", "display"],
)
def test_another_machine_or_source_is_refused_naming_it(
    patch: str, named: bytes, tmp_path: Path
) -> None:
    unfinished(tmp_path / "a")
    before = folder_bytes(tmp_path / "a")
    refused = patched_driver(tmp_path, patch, "resume", tmp_path / "a", "--agent", SCRIPTED)
    assert refused.returncode == 4, refused.stderr
    assert named in refused.stderr
    assert b"Traceback" not in refused.stderr
    assert folder_bytes(tmp_path / "a") == before
    assert run("resume", tmp_path / "a", "--agent", SCRIPTED).returncode == 0


def test_a_finished_session_verifies_under_another_numpy_and_says_so(
    tmp_path: Path, finished: Path
) -> None:
    verified = patched_driver(tmp_path, ANOTHER_NUMPY, "verify", finished)
    assert verified.returncode == 0, verified.stdout
    assert b"another runtime" in verified.stdout
    assert b"numpy" in verified.stdout


def test_a_completed_folder_is_never_written_again(finished: Path) -> None:
    before = folder_bytes(finished)
    stamps = {path: path.stat().st_mtime_ns for path in [finished, *finished.rglob("*")]}
    for words in (
        ("session", "--config", DIRECT, "--output", finished, "--resume", "--agent", SCRIPTED),
        ("session", "--config", DIRECT, "--output", finished, "--resume"),
        ("resume", finished, "--agent", SCRIPTED),
        ("resume", finished),
    ):
        again = run(*words)
        assert again.returncode == 0
        assert b"complete already" in again.stderr
    assert run("session", "--config", DIRECT, "--output", finished).returncode == 2
    assert run("session", "--config", DEVELOPMENT, "--output", finished, "--resume").returncode == 4
    assert folder_bytes(finished) == before
    assert {path: path.stat().st_mtime_ns for path in [finished, *finished.rglob("*")]} == stamps


def test_an_unfinished_folder_is_said_to_be_unfinished(tmp_path: Path) -> None:
    unfinished(tmp_path / "a")
    verified = run("verify", tmp_path / "a")
    assert verified.returncode == 3
    assert b"UNFINISHED" in verified.stdout
    assert b"unfinished" in run("show", tmp_path / "a").stdout


# -- ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("with_agent", [False, True], ids=["own streams", "agent"])
def test_a_signal_leaves_a_folder_that_resumes(
    number: signal.Signals, code: int, tmp_path: Path, *, with_agent: bool
) -> None:
    words: list[str | Path] = ["session", "--config", DIRECT, "--output", tmp_path / "a"]
    if with_agent:
        words += ["--agent", agent(tmp_path, "import time; time.sleep(100)")]
    with driver(*words) as speaker:
        wait_for(tmp_path / "a" / "session.json")
        if not with_agent:
            speaker.receive()
        time.sleep(0.2)
        speaker.process.send_signal(number)
        assert speaker.process.wait(timeout=20) == code
    assert not (tmp_path / "a" / "manifest.json").exists()
    assert run("resume", tmp_path / "a", "--agent", SCRIPTED).returncode == 0
    assert run("verify", tmp_path / "a").returncode == 0


def wait_for(path: Path, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.01)


def test_a_lost_standard_output_leaves_a_folder_that_resumes(tmp_path: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        request = speaker.receive()
        assert speaker.process.stdout is not None
        speaker.process.stdout.close()
        speaker.act(request, "expose", ZERO)
        assert speaker.process.wait(timeout=20) == 5
    assert run("resume", tmp_path / "a", "--agent", SCRIPTED).returncode == 0
    assert evaluator(tmp_path / "a")["resources"]["spent"]["exposures"] == 3


DYING = """
from probebench.clients import connect
agent = connect()
agent.expose([10, 20, 0, 0, 0, 0])
raise SystemExit(7)
"""


def test_the_death_of_a_client_is_a_failed_episode_at_its_last_measured_command(
    tmp_path: Path,
) -> None:
    words = (
        "session",
        "--config",
        DIRECT,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, DYING),
    )
    ran = run(*words, "--json")
    assert ran.returncode == 1
    printed = json.loads(ran.stdout)
    assert (printed["status"], printed["cause"]) == ("failed", "eof")
    judged = evaluator(tmp_path / "a")
    assert judged["outcome"] == {"status": "failed", "cause": "eof"}
    measured = judged["evaluation"]["measured_wfe_nm_rms"]
    assert judged["evaluation"]["residual_wfe_nm_rms"] == measured[-1] != measured[0]
    assert run("verify", tmp_path / "a").returncode == 0


def test_a_client_that_cannot_be_found_is_the_operators_mistake(tmp_path: Path) -> None:
    ran = run(
        "session", "--config", DIRECT, "--output", tmp_path / "a", "--agent", "no-such-program-here"
    )
    assert ran.returncode == 2
    assert b"no-such-program-here" in ran.stderr
    assert not (tmp_path / "a").exists()


# -- clients that stall ---------------------------------------------------------------------

DRIPPING = """
import os, time
os.read(0, 1)
while True:
    os.write(1, b" ")
    time.sleep(0.05)
"""
STUFFED = """
import json, os, sys
def line():
    data = b""
    while not data.endswith(b"\\n"):
        data += os.read(0, 65536)
    return json.loads(data)
# 70,000 bytes of rejected lines before anything is read; each costs a request.
os.write(1, (b"x" * 9999 + b"\\n") * 7)
message = line()
while message["kind"] != "final":
    if message["resources"]["spent"]["requests"] < 7:
        message = line()
        continue
    action = {"protocol": message["protocol"], "request_id": message["request_id"],
              "action": "submit", "command_opd_nm": [0] * 6}
    os.write(1, json.dumps(action).encode() + b"\\n")
    message = line()
"""
LOUD = """
import sys
from probebench.clients import connect
from probebench.clients.scripted import play
for _ in range(10_000):
    sys.stderr.write("x" * 999 + "\\n")
agent = connect()
sys.stderr.write("y" * 1_000_000)
play(agent)
sys.stderr.write("z" * 1_000_000)
"""


def test_a_dripping_client_times_out_at_its_deadline_and_not_later(tmp_path: Path) -> None:
    config = write_config(tmp_path / "config.json", input_deadline_s=1.0)
    words = (
        "session",
        "--config",
        config,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, DRIPPING),
    )
    assert run(*words).returncode == 1
    fault = json.loads((tmp_path / "a/turns/turn_0001_fault.json").read_bytes())
    assert fault["fault"]["kind"] == "timeout"
    assert fault["timing"]["deadline_s"] == 1.0
    # Recorded, not asserted against a clock of the test: later would be a re-armed timer,
    # which a client that never stops dripping would hold open for ever.
    assert 1.0 <= fault["timing"]["input_wait_s"] < 5.0


def test_a_client_that_writes_70000_bytes_before_it_reads_200000_does_not_deadlock(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(STRESS.read_bytes())
    words = (
        "session",
        "--config",
        config,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, STUFFED),
    )
    ran = run(*words)
    assert ran.returncode == 0, ran.stderr
    message = json.loads((tmp_path / "a/session.json").read_bytes())["message"]
    assert len(json.dumps(message)) > 80_000
    assert evaluator(tmp_path / "a")["resources"]["spent"]["requests"] == 8


def test_a_client_that_writes_ten_megabytes_of_errors_does_not_stall(tmp_path: Path) -> None:
    for number, extra in enumerate(((), ("--agent-stderr", tmp_path / "errors.txt"))):
        words = ("session", "--config", DIRECT, "--output", tmp_path / str(number))
        assert run(*words, "--agent", agent(tmp_path, LOUD), *extra).returncode == 0
    assert (tmp_path / "errors.txt").stat().st_size > 10_000_000


# -- configurations ----------------------------------------------------------------------------

BAD_FIELDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "missing field": ({"wavelength_nm": ...}, ["wavelength_nm"]),
    "missing nested field": ({"fixture__detector_seed": ...}, ["fixture.detector_seed"]),
    "unknown field": ({"colour": 1}, ["colour"]),
    "unknown nested field": ({"detector__gain": 1}, ["detector.gain"]),
    "wrong type": ({"budget__exposures": "6"}, ["budget.exposures"]),
    "boolean for a number": ({"wavelength_nm": True}, ["wavelength_nm"]),
    "null": ({"pupil": None}, ["pupil"]),
    "out of range": ({"pupil__obscuration": 0.99}, ["pupil.obscuration"]),
    "negative": ({"detector__read_noise_e": -1.0}, ["detector.read_noise_e"]),
    "not labelled development": ({"purpose": "reserved"}, ["purpose", "development"]),
    "not labelled": ({"purpose": ...}, ["purpose"]),
    "unknown environment": ({"environment": "sonar"}, ["environment"]),
    "no environment": ({"environment": ...}, ["environment"]),
    "short seed": ({"fixture__wavefront_seed": "00"}, ["fixture.wavefront_seed"]),
    "two at once": ({"track": "free", "budget__requests": 0}, ["track", "budget.requests"]),
}
BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{wavelength: 850}",
    "a list": b"[]",
    "a number": b"850",
    "not UTF-8": b'{"name": "\xff"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a duplicate key": b'{"name": "a", "name": "b"}',
    "NaN": b'{"wavelength_nm": NaN}',
    "deep": b"[" * 10_000,
    "cut": b'{"name": "a"',
}


def require_one_sentence(ran: subprocess.CompletedProcess[bytes]) -> str:
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == b""
    text = ran.stderr.decode()
    assert text.count("\n") == 1, text
    assert text.startswith("probebench: ")
    return text


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_a_bad_configuration_is_refused_naming_the_field(case: str, tmp_path: Path) -> None:
    changes, named = BAD_FIELDS[case]
    config = write_config(tmp_path / "secret-name-of-the-file.json", name="secret name", **changes)
    text = require_one_sentence(run("session", "--config", config, "--output", tmp_path / "a"))
    assert all(path in text for path in named), text
    # The client may read standard error where it is at the other end of the streams.
    assert "secret" not in text
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_configuration_is_refused(case: str, tmp_path: Path) -> None:
    config = tmp_path / "secret-name.json"
    config.write_bytes(BAD_FILES[case])
    text = require_one_sentence(run("session", "--config", config, "--output", tmp_path / "a"))
    assert "secret" not in text


def test_a_folder_a_missing_and_an_unreadable_file_are_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    fifo.touch()
    for config in (tmp_path, tmp_path / "missing.json", tmp_path / ("x" * 300)):
        text = require_one_sentence(run("session", "--config", config, "--output", tmp_path / "a"))
        assert "--config" in text
    locked = write_config(tmp_path / "locked.json")
    locked.chmod(0)
    if os.access(locked, os.R_OK):  # root reads it all the same
        return
    require_one_sentence(run("session", "--config", locked, "--output", tmp_path / "a"))


def test_over_our_own_streams_standard_error_tells_nothing_hidden(tmp_path: Path) -> None:
    config = write_config(tmp_path / "secret-file.json", name="secret name")
    with driver("session", "--config", config, "--output", tmp_path / "a") as speaker:
        play(speaker, scripted)
        _, _, errors = speaker.finish()
    text = errors.decode()
    assert "secret" not in text
    assert "WFE" not in text
    judged = evaluator(tmp_path / "a")["evaluation"]
    for figure in ("residual_wfe_nm_rms", "zero_command_wfe_nm_rms", "strehl"):
        assert f"{judged[figure]:.2f}" not in text
    assert judged["realised_photons"]
    assert json.loads((tmp_path / "a/manifest.json").read_bytes())["head_sha256"] in text


def test_fresh_configurations_differ_and_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made = run(
            "config", "new", "--track", "direct_action", "--output", tmp_path / f"{name}.json"
        )
        assert made.returncode == 0
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in "ab")
    assert first["fixture"]["wavefront_seed"] != second["fixture"]["wavefront_seed"]
    assert first["fixture"]["detector_seed"] != second["fixture"]["detector_seed"]
    assert run("config", "new", "--output", tmp_path / "a.json").returncode == 2
    assert (
        run("control", "--config", tmp_path / "a.json", "--output", tmp_path / "c").returncode == 0
    )
    assert json.loads(run("config", "new").stdout)["track"] == "tool_assisted"
    assert run("config", "new", "--track", "sideways").returncode == 2


def test_json_is_one_document_for_every_command(tmp_path: Path, finished: Path) -> None:
    control = ("control", "--config", DIRECT, "--output", tmp_path / "c", "--json")
    printed = json.loads(run(*control).stdout)
    assert printed["verification"]["verified"] is True
    assert json.loads(run("verify", finished, "--json").stdout)["verified"] is True
    assert json.loads(run("show", finished, "--json").stdout)["rows"]
    refused = run("verify", tmp_path / "nothing", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["exit_code"] == 2
    assert run("session", "--config", DIRECT, "--output", tmp_path / "d", "--json").returncode == 2


def test_the_client_sees_neither_our_environment_nor_our_folder(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\n"
        "sys.stderr.write(json.dumps([dict(os.environ), os.getcwd(), sorted(os.listdir('/proc/self/fd'))]))\n"
    )
    words = (
        "session",
        "--config",
        DIRECT,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, program),
    )
    extra = ("--agent-stderr", tmp_path / "seen.json", "--agent-env", "WANTED")
    ran = run(*words, *extra, env=environment(SECRET_KEY="hidden", WANTED="given"))
    assert ran.returncode == 1
    seen, folder, descriptors = json.loads((tmp_path / "seen.json").read_text())
    assert "SECRET_KEY" not in seen
    assert seen["WANTED"] == "given"
    assert Path(folder) != Path.cwd()
    assert not Path(folder).exists()
    assert descriptors == ["0", "1", "2", "3"]  # 3 lists the folder
