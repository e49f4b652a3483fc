"""Kills a run at random moments, resumes it, and compares everything that it leaves with a run that was never stopped.

python tests/resume/kill_demo.py --binary target/release/refactor-vla --kills 20

Each of the kills is a trial of its own: a new run, SIGKILL after a random share of the time that the unbroken run took,
`--resume` to the end, and a comparison of the library, all figures and the bytes of all weights. With `--chain` one run is
killed again and again instead. Nothing but the Python standard library is needed. Exit code 1 if anything differs.
"""

import argparse
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--binary", required=True)
parser.add_argument("--kills", type=int, default=20)
parser.add_argument("--seed", type=int, default=0, help="of the moments")
parser.add_argument("--chain", action="store_true", help="one run that is killed again and again")
parser.add_argument("--json", type=Path, help="write what was found")
parser.add_argument("arguments", nargs="*", help="of the command, after --; without any it is `demo`")
options = parser.parse_args()

# What is measured by a clock, and so differs.
CLOCKS = ("per_second", "seconds")
SKIPPED = ("time.json", "report.json", "report.html")


def command(out, resume):
    arguments = options.arguments or ["demo"]
    return [options.binary, *arguments, "--out", str(out), *(["--resume"] if resume else [])]


def whole(out, resume=False):
    done = subprocess.run(command(out, resume), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"the run failed with {done.returncode}:\n{done.stderr[-4000:]}")


def killed(out, seconds, resume=False):
    """Whether it was still running when it was killed."""
    process = subprocess.Popen(command(out, resume), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def lines(path):
    """Lines of metrics without what clocks say."""
    read = (json.loads(line) for line in path.read_text().splitlines())
    return json.dumps([{key: value for key, value in line.items() if key not in CLOCKS} for line in read])


def contents(out):
    found = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if not path.is_file() or name in SKIPPED or "checkpoint" in name or "tfevents" in name:
            continue
        if path.suffix == ".lock" or path.name.startswith("."):
            continue
        data = lines(path).encode() if path.name == "metrics.jsonl" else path.read_bytes()
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def differences(one, other):
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


folder = Path(tempfile.mkdtemp(prefix="kill-demo-"))
start = time.monotonic()
whole(folder / "unbroken")
took = time.monotonic() - start
wanted = contents(folder / "unbroken")
weights = sum(name.endswith(".safetensors") for name in wanted)
print(f"unbroken: {took:.0f} s, {len(wanted)} files, {weights} of them weights", flush=True)

generator = random.Random(options.seed)
trials = []
if options.chain:
    run, kills = folder / "chain", 0
    while kills < options.kills and killed(run, generator.uniform(0.02, 0.3) * took, resume=run.exists()):
        kills += 1
    whole(run, resume=True)
    trials.append({"kills": kills, "differences": differences(wanted, contents(run))})
    print(f"killed {kills} times: {trials[-1]['differences'] or 'the same'}", flush=True)
else:
    for trial in range(options.kills):
        run, moment = folder / f"trial-{trial}", generator.uniform(0.0, 1.0)
        was_running = killed(run, moment * took)
        whole(run, resume=run.exists())
        found = differences(wanted, contents(run))
        trials.append({"moment": round(moment, 3), "was_running": was_running, "differences": found})
        print(f"{trial + 1:2}: killed at {moment:.0%}: {', '.join(found) or 'the same'}", flush=True)
        shutil.rmtree(run)

bad = [trial for trial in trials if trial["differences"]]
if options.json:
    options.json.write_text(json.dumps({"files": len(wanted), "weights": weights, "trials": trials}, indent=1) + "\n")
shutil.rmtree(folder)
print(f"{len(trials) - len(bad)} of {len(trials)} ended as the unbroken run")
sys.exit(1 if bad else 0)
