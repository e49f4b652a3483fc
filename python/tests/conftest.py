"""A tiny run, which takes some seconds to train; `REFACTOR_VLA_TEST_RUN` names a finished one instead."""

import os
import subprocess
import sys

import pytest

DATASET = "embedded:libero_goal_mini"


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The directory of a finished run with a policy."""
    if given := os.environ.get("REFACTOR_VLA_TEST_RUN"):
        return given
    out = str(tmp_path_factory.mktemp("runs") / "tiny")
    sections = ["world_model", "amortizer", "wake.emitter", "wake.decoder"]
    sets = [f"{section}.{few}" for section in sections for few in ("train.steps=4", "train.warmup=1", "batch=8")]
    sets += [
        "wake.judged=4",
        "wake.emitted=1",
        "wake.beam.width=1",
        "cycle.refactor.max_judged=1",
        "cycle.iterations=1",
    ]
    # With an encoder that needs no weights, the policy sees.
    words = ["run", DATASET, "--preset", "tiny", "--encoder", "pixels:8", "--cache", f"{out}-cache", "--out", out]
    words += ["--device", "cpu", *(f"--set={one}" for one in sets)]
    done = subprocess.run([sys.executable, "-m", "refactor_vla", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out
