"""What the benches share: measuring child processes, the peer, Stitch's cost, and results on disk.

CPU time is user + system time of the child. Peak memory is the high-water mark of its resident set at the moment it exits
(`VmHWM`, read while the exiting process is held by ptrace). `ru_maxrss` would be simpler and is wrong here: Linux carries
the resident set of the parent, which is a Python process, over into it when the child is started.
"""

import ctypes
import datetime
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
BINARY = ROOT / "target" / "release" / "refactor-vla"

# The peer does what its package is for and nothing else. Both sides read the same file and write their result as JSON.
PEER = """
import json, sys
import stitch_core
corpus, arity, rounds, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with open(corpus) as file:
    programs = json.load(file)
if rounds:
    result = stitch_core.compress(programs, iterations=rounds, max_arity=arity, threads=1)
    with open(out, "w") as file:
        json.dump({"original_cost": result.json["original_cost"], "final_cost": result.json["final_cost"],
                   "rewritten": result.rewritten, "abstractions": [
                       {"name": a.name, "arity": a.arity, "body": a.body} for a in result.abstractions]}, file)
"""


@dataclass
class Measured:
    """One child process."""

    cpu: float
    """User and system time, in seconds."""
    wall: float
    """Seconds from start to end."""
    peak: float
    """Peak resident memory in MB (1e6 bytes, as in Stitch's table)."""
    status: int
    """0, or the exit code or minus the signal."""
    stderr: str
    """What it complained about."""


def measure(command, limit=None):
    """Runs a command to its end, or kills it after `limit` seconds."""
    with tempfile.TemporaryFile() as stderr:
        start = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
        )
        killer = threading.Timer(limit, child.kill) if limit else None
        if killer:
            killer.start()
        high_water = _high_water_at_exit(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        if killer:
            killer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        return Measured(
            cpu=usage.ru_utime + usage.ru_stime,
            wall=wall,
            peak=(high_water or usage.ru_maxrss) * 1024 / 1e6,
            status=child.returncode,
            stderr=stderr.read().decode(errors="replace"),
        )


def measure_peer(corpus, arity, rounds, out, limit=None):
    """Runs Stitch in a Python process of its own; 0 rounds are the baseline: the same imports and the same reading."""
    return measure([sys.executable, "-c", PEER, corpus, arity, rounds, out], limit)


def measure_ours(binary, corpus, arity, rounds, out, threads=1, limit=None):
    """Runs our binary."""
    command = [binary, "library", "compress", corpus, "--cost", "stitch", "--max-arity", arity]
    return measure(command + ["--rounds", rounds, "--threads", threads, "--output", out], limit)


def best(runs):
    """The least of each measure over repetitions: the run that was disturbed least."""
    return Measured(
        cpu=min(run.cpu for run in runs),
        wall=min(run.wall for run in runs),
        peak=min(run.peak for run in runs),
        status=max((run.status for run in runs), key=abs),
        stderr=runs[-1].stderr,
    )


def peer_or_exit():
    """The version of the peer; says how to install it if it is missing."""
    if importlib.util.find_spec("stitch_core") is None:
        sys.exit(
            "error: the peer is not installed\n"
            "hint: python3 -m venv target/bench && target/bench/bin/pip install stitch_core, "
            "then run this script with target/bench/bin/python"
        )
    return importlib.metadata.version("stitch_core")


def binary_or_exit(binary):
    """Our binary; says how to build it if it is missing."""
    if not os.access(binary, os.X_OK):
        sys.exit(f"error: no program at {shown(binary)}\nhint: cargo build --release -p cli, or give --binary")
    return binary


def cost(text):
    """Stitch's cost of an s-expression: terminal 100, application and lambda 1."""
    total = 0
    parts = []  # For each open bracket the number of its parts, or None for a lambda.
    for word in re.findall(r"[()]|[^\s()]+", text):
        if word == "(":
            parts.append(0)
        elif word in ("lam", "lambda") and parts and parts[-1] == 0:
            parts[-1] = None
            total += 1
        else:
            if word == ")":
                parts.pop()
            else:
                total += 100
            if parts and parts[-1] is not None:
                total += 1 if parts[-1] else 0
                parts[-1] += 1
    return total


def inlined(text, library):
    """An s-expression with the abstractions replaced by their bodies, as nested lists. Not for texts with lambdas.

    The library maps names to arity and body.
    """

    def flat(term):  # ((f x) y) is (f x y)
        while isinstance(term, list) and isinstance(term[0], list):
            term = term[0] + term[1:]
        return term

    def substituted(body, arguments):
        if isinstance(body, list):
            return flat([substituted(part, arguments) for part in body])
        return arguments[int(body[1:])] if re.fullmatch(r"#\d+", body) else body

    def expanded(term):
        # The outermost call first: a call that lacks arguments gets them when the call around it is expanded.
        term = flat(term if isinstance(term, list) else [term])
        while term[0] in library and len(term) > library[term[0]][0]:
            arity, body = library[term[0]]
            term = flat([substituted(bodies[term[0]], term[1:1 + arity]), *term[1 + arity:]])
        arguments = [expanded(argument) for argument in term[1:]]
        return [term[0], *arguments] if arguments else term[0]

    bodies = {name: parsed(body) for name, (_, body) in library.items()}
    return expanded(parsed(text))


def parsed(text):
    """An s-expression as nested lists; brackets around one thing are that thing."""
    stack = [[]]
    for word in re.findall(r"[()]|[^\s()]+", text):
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done[0] if len(done) == 1 else done)
        else:
            stack[-1].append(word)
    return stack[0][0]


def geometric_mean(values):
    """The geometric mean of positive numbers; not a number of none."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def exponent(sizes, values):
    """The slope of the values over the sizes on logarithmic scales, by least squares: 1 is linear growth."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def machine():
    """What a reader needs to judge times: nothing that names the machine."""
    model = re.search(r"^model name\s*:\s*(.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.MULTILINE)
    return {
        "cpu": model.group(1) if model else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory.group(1)) * 1024 / 1e9) if memory else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def revision():
    """The revision of the working tree."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run(git + ["rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run(git + ["status", "--porcelain", "--", "crates"], capture_output=True, text=True)
    return head.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


def dated(name, suffix):
    """Where today's result of a script goes."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    return RESULTS / f"{name}-{datetime.date.today().isoformat()}.{suffix}"


def write(path, text):
    """Writes a file beside and renames it, so that it is never half written."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text)
    beside.replace(path)
    print(f"wrote {shown(path)}")


def write_json(path, value):
    """Writes a value as JSON."""
    write(path, json.dumps(value, indent=1) + "\n")


def shown(path):
    """A path as seen from the root of the repository, where it lies below it."""
    path = Path(path)
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def table(header, rows):
    """Rows as aligned text, the first column to the left."""
    rows = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _read(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _high_water_at_exit(pid):
    """Waits until a child is about to exit and returns the peak of its resident set in KiB, or None where that is
    unknown: not on Linux, tracing not allowed, or a child that was killed."""
    seize, cont, trace_exit, event_exit = 0x4206, 7, 0x40, 6
    try:
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    except (OSError, AttributeError):
        return None
    ptrace.restype = ctypes.c_long
    ptrace.argtypes = [ctypes.c_long] * 4
    if platform.system() != "Linux" or ptrace(seize, pid, 0, trace_exit) != 0:
        return None
    peak = None
    while True:
        # Stops are looked at without waiting for the end, which the caller wants with its resource usage.
        info = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if info is None or info.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED):
            return peak
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        deliver = 0
        if info.si_status == signal.SIGTRAP | event_exit << 8:
            found = re.search(r"^VmHWM:\s*(\d+)", _read(f"/proc/{pid}/status"), re.MULTILINE)
            peak = int(found.group(1)) if found else None
        elif info.si_status < 256:
            deliver = info.si_status
        ptrace(cont, pid, 0, deliver)
