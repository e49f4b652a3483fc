"""Kills runs at random moments, resumes them, and compares everything that they leave with a run that was never stopped.

python tests/resume/kill_demo.py --binary target/release/refactor-vla --kills 20
python tests/resume/kill_demo.py --binary target/release/refactor-vla --kills 20 --runs 4 --jobs 2
python tests/resume/kill_demo.py --binary target/debug/refactor-vla --kills 6 --runs 1 -- demo --set cycle.iterations=1

The kills are spread over `--runs` runs, one for each unless that is said. A run gets SIGKILL at random shares of the time
that an unbroken one takes, is resumed after each, and at last goes to its end. Then the library, all figures, the data of the
report and the bytes of all weights are compared. A run that ends before its moment misses kills; they are made up for in more
runs. With `--jobs` several go on at once, and as many unbroken ones before them, so that the time is measured under the same
load. Nothing but the Python standard library is needed. Exit code 1 if anything differs or fails, or if there were fewer kills
than asked for; what differs is kept then.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# What is measured by a clock, and so differs.
CLOCKS = ("per_second", "seconds")
SKIPPED = ("time.json", "report.html")

# Kills come before these shares of the unbroken time: in the runs asked for, and in those that make up for missing ones.
LATEST, LATEST_AGAIN = 0.9, 0.5

# The most runs that make up for missing kills.
MOST_AGAIN = 10


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kills", type=int, default=20, help="of all runs together (default: 20)")
    parser.add_argument("--runs", type=int, help="that the kills are spread over (default: one for each kill)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--json", type=Path, help="write what was found")
    parser.add_argument("arguments", nargs="*", help="of the command, after --; without any it is `demo`")
    options = parser.parse_args()
    if options.kills < 1:
        parser.error(f"--kills is {options.kills}, wanted 1 or more")
    if options.runs is None:
        options.runs = options.kills
    if not 1 <= options.runs <= options.kills:
        parser.error(f"--runs is {options.runs}, wanted 1 to {options.kills}: each run is killed at least once")
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}, wanted 1 or more")
    if not Path(options.binary).is_file():
        parser.error(f"there is no program `{options.binary}`; `cargo build --release` makes it")
    return options


class Failed(Exception):
    """A run that ended with an error."""


class Runs:
    """Starts runs of one command in directories of one folder."""

    def __init__(self, options, folder):
        self.binary, self.arguments, self.folder = options.binary, options.arguments or ["demo"], folder

    def command(self, out):
        resume = ["--resume"] if out.exists() else []
        return [self.binary, *self.arguments, "--out", str(out), *resume]

    def whole(self, out):
        """Goes to the end, from wherever it is. The seconds that took."""
        start = time.monotonic()
        done = subprocess.run(self.command(out), capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(failure(out, done.returncode, done.stderr))
        return time.monotonic() - start

    def killed(self, out, seconds):
        """Whether it was still running when it was killed. One that ends by itself must end well."""
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(self.command(out), stdout=subprocess.DEVNULL, stderr=errors)
            sent = False
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                sent = True
            if process.returncode == 0:
                return False
            if sent and process.returncode == -signal.SIGKILL:
                return True
            errors.seek(0)
            raise Failed(failure(out, process.returncode, errors.read().decode(errors="replace")))

    def trial(self, number, moments, took, wanted):
        """A run that is killed at each of the moments, shares of `took`, and compared when it is done."""
        out, before = self.folder / f"run-{number}", 0.0
        found = {"moments": [round(moment, 3) for moment in moments], "kills": 0}
        try:
            for moment in moments:
                if not self.killed(out, (moment - before) * took):
                    break
                found["kills"] += 1
                before = moment
            self.whole(out)
        except Failed as failed:
            return {**found, "differences": [], "failure": str(failed)}
        found["differences"] = differences(wanted, contents(out))
        if not found["differences"]:
            shutil.rmtree(out)
        return found


def failure(out, code, errors):
    return f"`{out.name}` failed with {code}:\n{errors[-4000:]}"


def without_clocks(value):
    """JSON without what clocks say, anywhere in it."""
    if isinstance(value, dict):
        return {key: without_clocks(inner) for key, inner in value.items() if key not in CLOCKS}
    return [without_clocks(inner) for inner in value] if isinstance(value, list) else value


def content(path, out):
    """What is compared of a file."""
    if path.name == "metrics.jsonl":
        return json.dumps([without_clocks(json.loads(line)) for line in path.read_text().splitlines()]).encode()
    if path == out / "report.json":
        # Its command names the directory.
        return json.dumps(without_clocks(json.loads(path.read_text()))).replace(str(out), "RUN").encode()
    return path.read_bytes()


def contents(out):
    """Hashes of all files of a run that must be the same, by name."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if not path.is_file() or name in SKIPPED or "checkpoint" in name or "tfevents" in name:
            continue
        if path.suffix == ".lock" or path.name.startswith("."):
            continue
        found[name] = hashlib.sha256(content(path, out)).hexdigest()
    return found


def differences(one, other):
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def drawn(generator, kills, latest):
    """Moments of one run, shares of the unbroken time."""
    return sorted(generator.uniform(0, latest) for _ in range(kills))


def shares(kills, runs):
    """How often each run is killed: as evenly as can be, `kills` in all."""
    return [kills // runs + (run < kills % runs) for run in range(runs)]


def unbroken(runs, pool, jobs):
    """What runs leave that are never stopped, and the seconds that the slowest of `jobs` at once takes."""
    outs = [runs.folder / f"unbroken-{job}" for job in range(jobs)]
    took = max(pool.map(runs.whole, outs))
    wanted = contents(outs[0])
    for out in outs[1:]:
        if differences(wanted, contents(out)):
            raise Failed(f"two unbroken runs differ: {', '.join(differences(wanted, contents(out)))}")
        shutil.rmtree(out)
    return wanted, took


def told(number, trial):
    moments = ", ".join(f"{moment:.0%}" for moment in trial["moments"])
    result = "failed" if "failure" in trial else ", ".join(trial["differences"]) or "the same"
    kills = f"{trial['kills']} of {len(trial['moments'])} times"
    print(f"{number + 1:2}: killed {kills} (at {moments}): {result}", flush=True)
    if "failure" in trial:
        print(trial["failure"], flush=True)


def wrong(trials):
    return [trial for trial in trials if trial["differences"] or "failure" in trial]


def happened(trials):
    return sum(trial["kills"] for trial in trials)


def main():
    options = arguments()
    runs = Runs(options, Path(tempfile.mkdtemp(prefix="kill-demo-")))
    # All at once, so that the moments do not depend on which run ends first.
    generator = random.Random(options.seed)
    moments = [drawn(generator, kills, LATEST) for kills in shares(options.kills, options.runs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            wanted, took = unbroken(runs, pool, min(options.jobs, options.runs))
        except Failed as failure:
            sys.exit(f"{failure}\nkept: {runs.folder}")
        weights = sum(name.endswith(".safetensors") for name in wanted)
        print(f"unbroken: {took:.0f} s, {len(wanted)} files, {weights} of them weights", flush=True)
        numbers = range(options.runs)
        trials = []
        for trial in pool.map(lambda number: runs.trial(number, moments[number], took, wanted), numbers):
            told(len(trials), trial)
            trials.append(trial)
    while len(trials) < options.runs + MOST_AGAIN and not wrong(trials) and happened(trials) < options.kills:
        again = drawn(generator, options.kills - happened(trials), LATEST_AGAIN)
        trial = runs.trial(len(trials), again, took, wanted)
        told(len(trials), trial)
        trials.append(trial)
    bad, kills = wrong(trials), happened(trials)
    if options.json:
        found = {"files": len(wanted), "weights": weights, "jobs": options.jobs, "kills": kills, "trials": trials}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(trials) - len(bad)} of {len(trials)} ended as the unbroken run, after {kills} kills")
    if bad:
        sys.exit(f"kept: {runs.folder}")
    shutil.rmtree(runs.folder)
    if kills < options.kills:
        sys.exit(f"only {kills} of {options.kills} kills happened, as runs ended before their moments; give more `--runs`")


if __name__ == "__main__":
    main()
