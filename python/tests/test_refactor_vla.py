"""The package as a user of Python sees it."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest
import refactor_vla
from refactor_vla.lerobot import RefactorVLAPolicy

DATASET = "embedded:libero_goal_mini"
EXAMPLES = Path(__file__).parents[2] / "examples"


def observation(policy: refactor_vla.Policy, value: int = 50) -> dict[str, np.ndarray]:
    """An observation by the names of the dataset."""
    about = policy.metadata
    images = {camera: np.full((48, 64, 3), value, np.uint8) for camera in about["cameras"]}
    return {**images, about["state_key"]: np.linspace(-0.1, 0.1, about["state_dim"])}


@pytest.fixture(scope="session")
def policy(run: str) -> refactor_vla.Policy:
    """The policy of the run."""
    return refactor_vla.Policy.load(run, device="cpu")


def test_the_console_command_is_the_program() -> None:
    command = Path(sysconfig.get_path("scripts")) / "refactor-vla"
    if not command.exists():
        pytest.skip("the package is not installed, only on the path")
    for words in ([str(command)], [sys.executable, "-m", "refactor_vla"]):
        done = subprocess.run([*words, "program", "check", 'pick "milk"'], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "Motion\n"), done.stderr
        done = subprocess.run([*words, "library", "show", "nowhere"], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith("error: cannot read `nowhere`")
        done = subprocess.run([*words, "--version"], capture_output=True, text=True)
        assert done.stdout == f"refactor-vla {refactor_vla.__version__}\n"


def test_annotate_writes_a_dataset_and_returns_figures(tmp_path: Path) -> None:
    out = tmp_path / "annotated"
    annotation = refactor_vla.annotate(DATASET, out, segments=tmp_path / "segments.csv")
    assert annotation.episodes == 36 and annotation.dataset == str(out)
    assert sum(annotation.names.values()) == annotation.subtasks
    assert "grasp the bowl" in annotation.names
    assert (out / "meta" / "subtasks.parquet").is_file() and (tmp_path / "segments.csv").is_file()
    with pytest.raises(refactor_vla.RefactorVLAError) as caught:
        refactor_vla.annotate(out, out)
    assert "is in the dataset" in caught.value.message and "expected" in caught.value.facts
    assert caught.value.hint and caught.value.hint in str(caught.value)


def test_errors_have_the_words_of_the_command_line(tmp_path: Path) -> None:
    for fails in (refactor_vla.Library.load, refactor_vla.Policy.load):
        with pytest.raises(refactor_vla.RefactorVLAError) as caught:
            fails(tmp_path)
        assert str(caught.value).startswith("error: ") and caught.value.facts["expected"]
    with pytest.raises(refactor_vla.RefactorVLAError, match="`auto`, `cpu` or `cuda:N`"):
        (tmp_path / "skills.json").write_text("{}")
        refactor_vla.Policy.load(tmp_path, device="tpu")
    with pytest.raises(refactor_vla.RefactorVLAError, match="--format"):
        refactor_vla.annotate(DATASET, tmp_path / "out", format="columns")  # type: ignore[arg-type]


def test_a_library_is_data(run: str, tmp_path: Path) -> None:
    library = refactor_vla.Library.load(run)
    assert library.finished is True and library.cost == "nats"
    entry = {"name": "fn_0", "arity": 1, "body": r'\x0. seq[pick x0, place x0 (in "basket")]', "uses": 3, "gain": 1.5}
    entry["type"] = "Lang -> Motion"
    file = tmp_path / "library.json"
    file.write_text(json.dumps({"cost": "nats", "abstractions": [entry]}))
    library = refactor_vla.Library.load(file)
    assert list(library) == ["fn_0"] and len(library) == 1 and library.finished is None
    found = library["fn_0"]
    assert (found.type, found.body, found.uses, found.gain) == ("Lang -> Motion", entry["body"], 3, 1.5)
    assert "fn_0 : Lang -> Motion" in repr(library)


def test_a_policy_answers(policy: refactor_vla.Policy) -> None:
    about = policy.metadata
    policy.reset()
    first = policy.infer({**observation(policy), "prompt": "turn on the stove"})
    assert first["actions"].shape == (about["action_horizon"], about["action_dim"])
    assert first["actions"].dtype == np.float32 and first["actions"].flags.writeable
    assert np.isfinite(first["actions"]).all() and first["rewritten"]
    assert {"program", "skill", "task", "progress", "library"} <= first.keys()
    # The same under the names of openpi, with nested maps and lists; the prompt is remembered.
    mine = observation(policy)
    nested = {"observation": {"state": mine[about["state_key"]].tolist()}}
    for name, camera in zip(("image", "wrist_image"), about["cameras"], strict=False):
        nested["observation"][name] = mine[camera][:, ::1]
    policy.reset()
    second = policy.infer({**nested, "prompt": "turn on the stove"})
    np.testing.assert_array_equal(first["actions"], second["actions"])
    assert policy.infer({"reset": True}) == {"reset": True}
    third = policy.infer(nested)
    np.testing.assert_array_equal(first["actions"], third["actions"])


def test_strides_do_not_matter(policy: refactor_vla.Policy) -> None:
    whole = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)
    state = {policy.metadata["state_key"]: np.zeros(policy.metadata["state_dim"])}

    def actions(image: np.ndarray) -> np.ndarray:
        policy.reset()
        images = dict.fromkeys(policy.metadata["cameras"], image)
        return policy.infer({**images, **state, "prompt": "turn on the stove"})["actions"]

    flipped = whole[::-1, ::-1]
    np.testing.assert_array_equal(actions(flipped), actions(np.ascontiguousarray(flipped)))
    assert (actions(flipped) != actions(whole)).any()


def test_what_is_wrong_with_an_observation(policy: refactor_vla.Policy) -> None:
    good, state = observation(policy), policy.metadata["state_key"]
    policy.reset()
    for change, message in [
        ({}, "the first request needs a `prompt` or a `program`"),
        ({state: np.zeros(3, np.float32), "prompt": "a"}, r"is float32 \[3\]; expected 8 finite numbers"),
        ({state: np.zeros(8, np.float16), "prompt": "a"}, "the dtype `<f2` is not supported"),
        ({"prompt": "a", "program": "b"}, "both a prompt and a program"),
        ({"prompt": object()}, "`prompt` is a `object`; expected NumPy arrays"),
        ({"program": "seq[pick left]"}, "this is Pose"),
        ({"prompt": "a", state: np.full(8, np.nan)}, "NaN at place 0"),
    ]:
        with pytest.raises(refactor_vla.RefactorVLAError, match=message):
            policy.infer({**good, **change})
    if policy.metadata["cameras"]:
        with pytest.raises(refactor_vla.RefactorVLAError, match="channels first"):
            camera = policy.metadata["cameras"][0]
            policy.infer({**good, "prompt": "a", camera: np.zeros((3, 48, 64), np.uint8)})


def test_the_policy_of_lerobots_conventions(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(sys.modules)
    policy = RefactorVLAPolicy.from_pretrained(run).eval()
    assert not {"torch", "lerobot"} & (set(sys.modules) - before)
    config, about = policy.config, policy.policy.metadata
    batch = {camera: np.full((2, 3, 48, 64), 50 / 255, np.float32) for camera in config.cameras}
    batch["observation.state"] = np.tile(observation(policy.policy)[about["state_key"]], (2, 1)).astype(np.float32)
    batch["task"] = ["turn on the stove", "open the middle drawer of the cabinet"]
    chunk = policy.predict_action_chunk(batch)
    assert chunk.shape == (2, config.chunk_size, config.action_dim)
    assert [{"program", "skill"} <= reply.keys() for reply in policy.replies] == [True, True]
    policy.reset()
    taken = np.stack([policy.select_action(batch) for _ in range(config.n_action_steps)], axis=1)
    np.testing.assert_array_equal(taken, chunk[:, : config.n_action_steps])
    # A row is what the policy alone answers.
    alone = {**observation(policy.policy), "prompt": "turn on the stove"}
    policy.reset()
    np.testing.assert_allclose(policy.policy.infer(alone)["actions"], chunk[0], atol=1e-5)
    with pytest.raises(refactor_vla.RefactorVLAError, match="the batch has no"):
        policy.predict_action_chunk({"task": ["a"]})
    with pytest.raises(NotImplementedError, match="refactor-vla run"):
        policy.forward(batch)
    # Without the Hub's package, a name that is not a directory is an error with a hint.
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(refactor_vla.RefactorVLAError, match="there is no directory `nobody/nothing`"):
        RefactorVLAPolicy.from_pretrained("nobody/nothing")


def test_the_example_runs(run: str) -> None:
    words = [sys.executable, "-W", "ignore", str(EXAMPLES / "policy.py"), run]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "actions (" in done.stdout and "this is Pose" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("command", [True, False])
def test_ctrl_c_ends_the_program_and_leaves_nothing(command: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if command:
        # The demo listens for Ctrl-C itself, and then ends with our message.
        words = ["-m", "refactor_vla", "demo", "--out", str(out), "--device", "cpu"]
    else:
        loop = f"while True:\n    refactor_vla.annotate({DATASET!r}, {str(out)!r})\n    shutil.rmtree({str(out)!r})"
        code = f"import shutil, refactor_vla\n{loop}"
        words = ["-c", code]
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    if command:
        assert "interrupted; finished work and checkpoints are kept" in said, said
    else:
        assert "KeyboardInterrupt" in said, said
        assert not [path for path in tmp_path.iterdir() if path != out]
