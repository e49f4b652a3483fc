"""Prints the tables of results/loop and results/motor_library from their JSON files. Nothing but the standard library.

python3 results/tables.py loop
python3 results/tables.py motor_library
"""

import json
import statistics
import sys
from pathlib import Path

SUITES, SEEDS = ("object", "spatial", "goal", "10"), (0, 1, 2)


def read(folder, suite):
    return [json.loads((folder / f"libero_{suite}-{seed}.json").read_text()) for seed in SEEDS]


def spread(values, digits=3):
    """Mean ± standard deviation over the seeds."""
    values = list(values)
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def each(values):
    return " / ".join(str(value) for value in values)


def table(columns, rows):
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def refusals(candidates):
    """How many the gates refused: by soundness, by return."""
    judgements = [candidate["judgement"] for candidate in candidates if not candidate["judgement"]["admitted"]]
    failed = lambda gate: sum(1 for one in judgements if figure(one, gate)["verdict"] == "failed")
    return failed("soundness"), failed("returns")


def figure(judgement, gate):
    """What a gate measured about a candidate."""
    return next(one for one in judgement["figures"] if one["gate"] == gate)


def is_motion(name, bodies):
    body = bodies[name]
    called = [other for other in bodies if other in body.replace("(", " ").split()]
    return "skill_" in body or any(is_motion(other, bodies) for other in called)


def loop(folder):
    rows, wake, kinds = [], [], []
    for suite in SUITES:
        runs = read(folder, suite)
        judged = [[one for step in run["refactor"] for one in step["candidates"]] for run in runs]
        entries = [run["refactor"][-1]["library"]["abstractions"] for run in runs]
        motions = []
        for library in entries:
            bodies = {entry["name"]: entry["body"] for entry in library}
            motions.append(sum(is_motion(name, bodies) for name in bodies))
        before = [sum(run["refactor"][0]["before"].values()) for run in runs]
        after = [sum(run["refactor"][-1]["after"].values()) for run in runs]
        rows.append([
            suite,
            *(spread(run["skill_phases"][key] for run in runs) for key in ("purity", "nmi")),
            f"{runs[0]['skill_phases']['boundary_f1']:.3f}",
            each(map(len, judged)),
            *(each(refusals(one)[at] for one in judged) for at in (0, 1)),
            each(map(len, entries)),
            each(motions),
            each(f"−{100 * (1 - a / b):.0f} %" for a, b in zip(after, before)),
        ])
        for key, name in (("with_library", "with"), ("without_library", "without")):
            scores = [run[key]["scores"] for run in runs]
            value = lambda field: spread(one[field] for one in scores)
            wake.append([
                suite, name, value("velocity"), value("chunk"), value("own_chunk"),
                each(f"{run[key]['rewriting']['rewritten']} of {run[key]['rewriting']['demonstrations']}" for run in runs),
                each(f"{run[key]['rewriting']['entries_used']} of {run[key]['rewriting']['entries']}" for run in runs),
            ])
            kinds.append([suite, name, *map(value, (
                "task_accuracy", "motion_accuracy", "structure_accuracy", "number_accuracy", "token_accuracy", "unknown", "exact", "task_exact",
            ))])
    print("## Skills and library\n")
    table(["suite", "purity", "NMI", "boundary F1", "judged", "refused: soundness", "refused: return", "entries",
           "of motion", "nats"], rows)
    print("## Decoder and policy\n")
    table(["suite", "library", "velocity error", "chunk error", "chunk error, own programs", "rewritten", "entries used"], wake)
    print("## Emitter\n")
    table(["suite", "library", "tasks", "motions", "names and syntax", "numbers", "all tokens", "unknown", "exact", "task exact"], kinds)
    print("## Change of the velocity error by the library\n")
    changes = []
    for suite in SUITES:
        scores = [(run["with_library"]["scores"], run["without_library"]["scores"]) for run in read(folder, suite)]
        found = [one["velocity"] - other["velocity"] for one, other in scores]
        # Student's 0.95 quantile with two degrees of freedom.
        reach = 2.92 * statistics.stdev(found) / len(found) ** 0.5
        mean = statistics.mean(found)
        changes.append([suite, each(f"{change:+.3f}" for change in found), f"{mean:+.3f}",
                        f"{mean - reach:+.3f} to {mean + reach:+.3f}"])
    table(["suite", "by seed", "mean", "90 % interval"], changes)


def motor_library(folder):
    strict, skills = [], []
    for suite in SUITES:
        runs = [report[0] for report in read(folder, suite)]
        for run in runs[0]["strict"]["runs"]:
            cells = run["cells"]
            count = lambda key: each(cell[key] for cell in cells)
            strict.append([suite, "yes" if run["aligned"] else "no", count("per_emitted_token"), count("per_call_token"),
                           count("total"), count("total_with_symbols")])
        for at, name in enumerate(("D_φ", "actions")):
            libraries = [run["skills"][at] for run in runs]
            refactored = [library["refactored"] for library in libraries]
            nats = [1 - sum(one["after"].values()) / sum(one["before"].values()) for one in refactored]
            skills.append([
                suite, name,
                each(len(one["candidates"]) for one in refactored),
                *(each(refusals(one["candidates"])[gate] for one in refactored) for gate in (0, 1)),
                each(len(library["entries"]) for library in libraries),
                each(library["of_several_motions"] for library in libraries),
                each(f"−{100 * share:.0f} %" for share in nats),
                each(f"{library['rewritten'][1]} of {run['demonstrations'][1]}" for library, run in zip(libraries, runs)),
                *(spread(library["phases"][key] for library in libraries) for key in ("purity", "nmi")),
                spread((library["replay"]["action_error"] for library in libraries)),
            ])
    print("## Strict tokens\n")
    table(["suite", "DTW", "per emitted token", "per call token", "in all", "of those, with a motor symbol"], strict)
    print("## Skills\n")
    table(["suite", "classes by", "judged", "refused: soundness", "refused: return", "entries", "of several motions", "nats",
           "held-out motions that call it", "purity", "NMI", "action error"], skills)
    print("## Entries of several motions, seed 0, classes by D_φ\n")
    rows = []
    for suite in SUITES:
        for entry in read(folder, suite)[0][0]["skills"][0]["entries"]:
            judgement = entry["judgement"]
            if entry["motions"] > 1 and judgement:
                soundness, returns = figure(judgement, "soundness"), figure(judgement, "returns")
                rows.append([
                    suite, f"`{entry['entry']['name']}`", str(entry["motions"]), str(entry["entry"]["uses"]),
                    f"{entry['entry']['gain']:.1f}",
                    f"{soundness['value']:.2f} ({soundness['limit']:.2f})",
                    f"{returns['value']:.3f} to {returns['high']:.3f} ({returns['limit']:.3f})",
                    f"{returns['details']['control']:.3f}",
                    f"`{entry['entry']['body']}`",
                ])
    table(["suite", "entry", "motions", "uses", "nats", "mean D_φ (ε_t)", "change of return (ε)", "standing still", "body"], rows)


def main():
    what = {"loop": loop, "motor_library": motor_library}
    if len(sys.argv) != 2 or sys.argv[1] not in what:
        sys.exit(__doc__)
    what[sys.argv[1]](Path(__file__).parent / sys.argv[1])


main()
