"""Prints the tables of the pages in results/ from their JSON files, for whatever seeds are there.

usage: python3 results/tables.py loop|kernel|returns|motor_library|robots|annotate

With several seeds, measured values are means ± standard deviations and counts are listed by seed. With one seed, both are
the values of that seed. Searches end at the limit of candidates that an iteration may judge, when nothing gains 4 nats, or
after 8 entries. Times are those of the first seed.
Only the standard library is used.
"""

import json
import statistics
import sys
from pathlib import Path

SUITES = ("object", "spatial", "goal", "10")
ROBOTS = ("so101", "aloha", "humanoid", "mobile", "state-only")
FORMS = {"mc": "Monte Carlo", "separable_vpk": "separable", "amortized": "amortized (k_χ)"}
REPLACEMENTS = {"stillness": "standing still", "failed_episode": "failed episode", "successful_episode": "successful episode"}
CLASSES = {"behaviour": "D_φ", "actions": "actions"}
ENDS = {"judged": "limit", "nothing_gains": "no gain", "admitted": "8 entries"}


# Reading and printing


def runs_of(folder, suite):
    """The JSON of all seeds of a suite, in the order of the seeds."""
    paths = folder.glob(f"libero_{suite}-*.json")
    return [json.loads(path.read_text()) for path in sorted(paths, key=lambda path: int(path.stem.rsplit("-", 1)[1]))]


def suites_of(folder):
    """All suites that have results, with their runs. Says how many seeds there are."""
    found = {suite: runs for suite in SUITES if (runs := runs_of(folder, suite))}
    for suite in SUITES:
        print(f"libero_{suite}: n = {len(found.get(suite, []))}")
    print()
    return found


def spread(values, digits=3):
    """Mean ± standard deviation over seeds, or the value of the only seed; a dash where nothing was measured."""
    values = list(values)
    if not values or None in values:
        return "–"
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def each(values):
    return " / ".join(str(value) for value in values)


def table(title, columns, rows):
    print(f"## {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


# Gates


def figure(candidate, gate):
    """What a gate measured about a candidate."""
    return next(one for one in candidate["judgement"]["figures"] if one["gate"] == gate)


def rejections(candidates):
    """How many candidates were rejected: in all, by soundness, by returns, and by returns although the mean is within ε."""
    rejected = [one for one in candidates if not one["judgement"]["admitted"]]
    soundness = [one for one in rejected if figure(one, "soundness")["verdict"] == "failed"]
    returns = [figure(one, "returns") for one in rejected if figure(one, "returns")["verdict"] == "failed"]
    uncertain = [one for one in returns if one["value"] is not None and one["value"] <= one["limit"]]
    return len(rejected), len(soundness), len(returns), len(uncertain)


def kinds(step):
    names = ("several_motions", "partial_applications", "constants", "others")
    return " + ".join(str(step["kinds"][name]) for name in names)


def shortening(before, after):
    return f"{before:.0f} → {after:.0f} ({100 * (after / before - 1):+.0f} %)".replace("-", "−")


def lengths(step, first):
    """Description lengths in training, library included, and of held-out demonstrations without and with the library."""
    held_out = step["held_out"]
    return (
        shortening(sum(first["before"].values()), sum(step["after"].values())),
        shortening(held_out["without_library"], held_out["with_library"]),
    )


def not_proposed(steps):
    best = [step["not_proposed"]["best_gain"] for step in steps if step["not_proposed"]["best_gain"] is not None]
    count = sum(step["not_proposed"]["count"] for step in steps)
    return f"{count} ({max(best):.1f})" if best else str(count)


# Pages


def loop(folder):
    classes, kernels, replays, judged, libraries, policies, tokens = [], [], [], [], [], [], []
    for suite, runs in suites_of(folder).items():
        value = lambda *keys: spread(at(run, keys) for run in runs)
        classes.append([
            suite,
            *(value("classes", by, score) for score in ("nmi", "purity") for by in ("kernel", "actions")),
            each(run["skills"] for run in runs),
            *(value("skill_phases", score) for score in ("nmi", "purity", "boundary_f1")),
        ])
        kernels.append([
            suite, each(run["kernel"]["segments"] for run in runs), value("kernel", "spearman"),
            value("kernel", "phases", "nmi"), value("kernel", "reference_phases", "nmi"),
        ])
        replays.append([suite, value("replay", "action_error"), value("replay", "duration_error")])
        steps = [run["refactor"] for run in runs]
        candidates = [[one for step in run for one in step["candidates"]] for run in steps]
        counts = [rejections(one) for one in candidates]
        judged.append([
            suite, each(len(one) for one in candidates), each(len({c["body"] for c in one}) for one in candidates),
            *(each(count[which] for count in counts) for which in range(4)),
            each(not_proposed(run) for run in steps),
            each(", ".join(ENDS.get(step["end"], step["end"]) for step in run) for run in steps),
        ])
        libraries.append([
            suite, each(len(run[-1]["library"]["abstractions"]) for run in steps), each(kinds(run[-1]) for run in steps),
            each(rewriting(run) for run in runs),
            *(each(lengths(run[-1], run[0])[which] for run in steps) for which in range(2)),
        ])
        for arm in ("with library", "without library", "no programs"):
            measured = lambda name: spread(measure(run, arm, name) for run in runs)
            policies.append([suite, arm, *map(measured, (
                "chunk error", "velocity error", "chunk error, oracle programs", "velocity error, oracle programs",
            ))])
            if arm != "no programs":
                tokens.append([suite, arm, *map(measured, (
                    "token accuracy", "task tokens", "names and syntax", "numbers", "unknown tokens", "exact tasks",
                    "exact programs",
                ))])
    classes.append(mean_row(classes))
    table("Classes and skills", ["suite", "NMI, k_χ", "NMI, actions", "purity, k_χ", "purity, actions", "skills", "NMI, skills",
                                 "purity, skills", "boundary F1"], classes)
    table("Agreement of k_χ with Monte Carlo", ["suite", "segments", "Spearman", "NMI, k_χ", "NMI, Monte Carlo"], kernels)
    table("Replay", ["suite", "action error", "duration error"], replays)
    table("Candidates", ["suite", "judged", "distinct", "rejected", "by soundness", "by returns", "mean within ε",
                         "not proposed (best gain)", "iterations ended with"], judged)
    table("Library", ["suite", "entries", "several motions + partial applications + constants + others",
                      "demonstrations rewritten", "nats, training", "nats, held-out"], libraries)
    table("Policies", ["suite", "arm", "chunk error", "velocity error", "chunk error, oracle", "velocity error, oracle"],
          policies)
    table("Token accuracies", ["suite", "arm", "all tokens", "tasks", "names and syntax", "numbers", "unknown", "exact tasks",
                               "exact programs"], tokens)


def robots(folder):
    skills, programs = [], []
    for robot in ROBOTS:
        run = json.loads((folder / f"{robot}.json").read_text())
        phases, steps = run["skill_phases"], run["refactor"]
        skills.append([
            robot, f"{phases['segments'] / run['demonstrations'][1]:.1f}",
            *(f"{phases[key]:.3f}" for key in ("boundary_f1", "boundary_precision", "boundary_recall")),
            str(run["skills"]), f"{phases['nmi']:.3f}", *(f"{run['classes'][by]['nmi']:.3f}" for by in ("kernel", "actions")),
        ])
        candidates = [one for step in steps for one in step["candidates"]]
        programs.append([
            robot, f"{run['replay']['action_error']:.3f}", f"{run['replay']['duration_error']:.3f}", str(len(candidates)),
            *map(str, rejections(candidates)[:3]), str(len(steps[-1]["library"]["abstractions"])), *lengths(steps[-1], steps[0]),
        ])
    table("Segments and skills", ["robot", "found segments", "boundary F1", "precision", "recall", "skills", "NMI, skills",
                                  "NMI, k_χ", "NMI, actions"], skills)
    table("Programs and libraries", ["robot", "replay error", "duration error", "judged", "rejected", "by soundness", "by returns",
                                     "entries", "nats, training", "nats, held-out"], programs)


def at(value, keys):
    for key in keys:
        value = value[key]
    return value


def mean_row(rows):
    """The means of the columns that are measured values, over suites."""
    cells = []
    for column in zip(*rows):
        try:
            mean = statistics.mean(float(cell.split(" ± ")[0]) for cell in column)
            cells.append(f"{mean:.3f}" if "." in column[0] else "")
        except ValueError:
            cells.append("")
    return ["mean", *cells[1:]]


def arm_of(run, name):
    return next(arm for arm in run["arms"] if arm["name"] == name)


def measure(run, arm, name):
    return next((one["value"] for one in arm_of(run, arm)["measures"] if one["name"] == name), None)


def rewriting(run):
    found = arm_of(run, "with library")["rewriting"]
    return f"{found['rewritten']} of {found['demonstrations']}"


def kernel(folder):
    """Agreement and NMI over all seeds; times of the first seed, which had the GPU to itself."""
    rows = []
    for suite, reports in suites_of(folder).items():
        reference = reports[0]["forms"][0]["seconds_per_pair"]
        for which, form in enumerate(reports[0]["forms"]):
            found = [report["forms"][which] for report in reports]
            assert all(one["form"] == form["form"] for one in found)
            seconds = form["seconds_per_pair"]
            rows.append([
                suite, FORMS.get(form["form"], form["form"]),
                *(spread(one[key] for one in found) for key in ("spearman", "nmi_phase", "nmi_task")),
                f"{1e6 * seconds:.2f}", "1" if which == 0 else f"1/{reference / seconds:.0f}",
            ])
    table("Forms of D_φ", ["suite", "form", "Spearman", "phase NMI", "task NMI", "µs per pair", "of Monte Carlo's time"], rows)


def returns(folder):
    reports = json.loads((folder / "returns.json").read_text())
    found = [report["found"] for report in reports]
    row = lambda name, value, digits=2: [name, *(f"{value(one):.{digits}f}" for one in found)]
    rows = [
        row("AUC, windows", lambda one: one["auc_windows"]),
        row("AUC, episodes", lambda one: one["auc_episodes"]),
        row("p of AUC, episodes", p_value),
        row("AUC, first of the windows", lambda one: one["auc_by_place"][0]),
        row("AUC, last of the windows", lambda one: one["auc_by_place"][-1]),
        row("mean imagined return, successes", lambda one: one["successes"]["errors"]["imagined"]),
        row("mean true return, successes", lambda one: one["successes"]["errors"]["truth"]),
        row("mean absolute error, successes", lambda one: one["successes"]["errors"]["mean_absolute_error"]),
        row("mean imagined return, failures", lambda one: one["failures"]["errors"]["imagined"]),
        row("mean true return, failures", lambda one: one["failures"]["errors"]["truth"]),
        row("mean absolute error, failures", lambda one: one["failures"]["errors"]["mean_absolute_error"]),
        row("Pearson correlation", lambda one: one["calibration"]["pearson"]),
        row("Spearman correlation", lambda one: one["calibration"]["spearman"]),
        row("expected calibration error", lambda one: one["calibration"]["expected_calibration_error"]),
    ]
    columns = [f"trained on {report['trained_on']}" for report in reports]
    table("Imagined returns", ["", *columns], rows)
    rows = []
    for which, name in enumerate(REPLACEMENTS.values()):
        worth = [one["worth"][which] for one in found]
        assert all(REPLACEMENTS[one["replacement"]] == name for one in worth)
        rows.append([name, *(f"{one['rejected']} of {one['candidates']} ({one['change']:.3f})" for one in worth)])
    table("Rejected by the return gate (mean change of return)", ["replacement", *columns], rows)


def p_value(found):
    """The exact two-sided Mann–Whitney test of the AUC over episodes, against 0.5."""
    ways = {(0, 0): [1]}  # how many orders of (successes, failures) have each U

    def orders(successes, failures):
        if (successes, failures) not in ways:
            counts = [0] * (successes * failures + 1)
            if successes:
                for u, count in enumerate(orders(successes - 1, failures)):
                    counts[u + failures] += count
            if failures:
                for u, count in enumerate(orders(successes, failures - 1)):
                    counts[u] += count
            ways[successes, failures] = counts
        return ways[successes, failures]

    counts = orders(found["successes"]["episodes"], found["failures"]["episodes"])
    above = round(max(found["auc_episodes"], 1 - found["auc_episodes"]) * (len(counts) - 1))
    return min(1.0, 2 * sum(counts[above:]) / sum(counts))


def motor_library(folder):
    strict, skills, libraries, entries = [], [], [], []
    for suite, reports in suites_of(folder).items():
        runs = [report[0] for report in reports]
        for run in runs[0]["strict"]["runs"]:
            count = lambda key: each(cell[key] for cell in run["cells"])
            strict.append([suite, "yes" if run["aligned"] else "no", *map(count, (
                "per_emitted_token", "per_call_token", "total", "total_with_symbols",
            ))])
        for which, name in enumerate(CLASSES.values()):
            found = [run["skills"][which] for run in runs]
            assert all(CLASSES[one["tokens"]] == name for one in found)
            steps = [one["refactored"] for one in found]
            counts = [rejections(step["candidates"]) for step in steps]
            held_out = [run["demonstrations"][1] for run in runs]
            skills.append([
                suite, name, each(one["skills"] for one in found),
                *(spread(one["phases"][key] for one in found) for key in ("nmi", "purity")),
                *(spread(one["replay"][key] for one in found) for key in ("action_error", "duration_error")),
            ])
            libraries.append([
                suite, name, each(len(step["candidates"]) for step in steps),
                *(each(count[index] for count in counts) for index in (1, 2)),
                each(not_proposed([step]) for step in steps), each(ENDS.get(step["end"], step["end"]) for step in steps),
                each(len(one["entries"]) for one in found), each(kinds(step) for step in steps),
                *(each(lengths(step, step)[index] for step in steps) for index in range(2)),
                each(f"{one['rewritten'][1]} of {count}" for one, count in zip(found, held_out)),
            ])
        for one in runs[0]["skills"][0]["entries"]:
            if one["motions"] > 1 and one["judgement"]:
                soundness, change = figure(one, "soundness"), figure(one, "returns")
                entry = one["entry"]
                entries.append([
                    suite, f"`{entry['name']}`", str(one["motions"]), str(entry["uses"]), f"{entry['gain']:.1f}",
                    f"{soundness['value']:.2f} ({soundness['limit']:.2f})",
                    f"{change['value']:.3f} to {change['high']:.3f} ({change['limit']:.3f})",
                    f"{change['details']['control']:.3f}", f"`{entry['body']}`",
                ])
    table("Strict tokens", ["suite", "DTW", "per emitted token", "per call token", "in all", "of those, with a motor symbol"],
          strict)
    table("Skills", ["suite", "classes by", "skills", "NMI", "purity", "action error", "duration error"], skills)
    table("Libraries", ["suite", "classes by", "judged", "rejected by soundness", "by returns", "not proposed (best gain)",
                        "ended with", "entries", "several motions + partial applications + constants + others",
                        "nats, training", "nats, held-out", "held-out motions that call it"], libraries)
    table("Entries of several motions, first seed, classes by D_φ",
          ["suite", "entry", "motions", "uses", "nats", "worst step's D_φ (ε_t)", "change of return (ε)", "standing still", "body"],
          entries)


# Subtasks against true phases


def with_interval(figure):
    return f"{figure['mean']:.3f} ({figure['low']:.3f}–{figure['high']:.3f})"


def by_cutter(reports, of):
    """Rows of cutters, columns of datasets; a dash where a cutter was not run."""
    names = []
    for report in reports:
        names += [one["name"] for one in report["recorded"] if one["name"] not in names]
    for name in names:
        found = [next((one for one in report["recorded"] if one["name"] == name), None) for report in reports]
        yield [name, *("–" if one is None else of(one) for one in found)]


def failing(dataset, episodes, least_f1, least_labels):
    """A row of the episodes with a lower F1 of subtasks, or with fewer right labels; `*` if they are named after the motion."""
    below = [one for one in episodes if one["subtasks_f1"] < least_f1 or one["phase_object"] < least_labels]
    told = [f"{one['episode']}{'*' if one['by_motion'] else ''} ({one['subtasks_f1']:.2f} / {one['phase_object']:.2f})"
            for one in sorted(below, key=lambda one: one["episode"])]
    return [dataset, f"{len(below)} of {len(episodes)}", ", ".join(told) or "–"]


def best_labels(cutters):
    """Label accuracy of our subtasks, and the best of the baselines, which our namer names as well."""
    ours = next(one for one in cutters if one["name"] == "ours, subtasks")
    best = max((one for one in cutters if not one["name"].startswith("ours")), key=lambda one: one["phase_object"]["mean"])
    return f"{ours['phase_object']['mean']:.3f} / {best['phase_object']['mean']:.3f} {best['name']}"


def annotate(folder):
    groups = {"LIBERO": "libero.json", "Synthetic robots": "synthetic.json"}
    measures = (
        ("boundary F1, ±0.2 s", lambda one: with_interval(one["boundary_02"])),
        ("boundary F1, ±0.5 s", lambda one: with_interval(one["boundary_05"])),
        ("segment F1, IoU 0.5", lambda one: with_interval(one["segment_50"])),
        ("segment F1, IoU 0.75", lambda one: with_interval(one["segment_75"])),
        ("frames with the right phase", lambda one: with_interval(one["phase"])),
        ("frames with the right phase and object", lambda one: with_interval(one["phase_object"])),
        ("pooled boundary F1, ±0.2 s", lambda one: f"{one['boundary_02']['pooled']:.3f}"),
        ("segments per held-out episode", lambda one: f"{one['segments']:.1f}"),
        ("chosen settings", lambda one: one["setting"] or "–"),
    )
    for title, name in groups.items():
        if not (folder / name).exists():
            continue
        reports = json.loads((folder / name).read_text())
        datasets = [report["dataset"] for report in reports]
        counts = [[report["dataset"], str(report["training_episodes"]), str(report["held_out_episodes"]),
                   f"{report['true_segments']:.1f}"] for report in reports]
        table(f"{title}: episodes", ["dataset", "for choosing settings", "held out", "true segments"], counts)
        for measure, of in measures:
            table(f"{title}: {measure}", ["method", *datasets], by_cutter(reports, of))
        levels = ["recorded", *(one["level"] for one in reports[0]["disturbed"])]
        for report in reports:
            if not report["disturbed"]:
                continue
            own = [report["recorded"], *(one["cutters"] for one in report["disturbed"])]
            rows = []
            for cutter in own[-1]:
                figures = [next(one for one in level if one["name"] == cutter["name"]) for level in own]
                rows.append([cutter["name"], *(with_interval(one["boundary_02"]) for one in figures),
                             *(f"{one['phase_object']['mean']:.3f}" for one in figures)])
            table(f"{report['dataset']}: boundary F1 at ±0.2 s, and labels with objects, under noise",
                  ["method", *levels, *(f"labels, {level}" for level in levels)], rows)
        table(f"{title}: held-out episodes below the goals (F1 of subtasks / labels)", ["dataset", "below", "episodes"],
              [failing(report["dataset"], [one["scores"] for one in report["episodes"]], 0.90, 0.85) for report in reports])
        ordinary = [(report["dataset"], level["episodes"]) for report in reports for level in report["disturbed"]
                    if level["level"] == "ordinary"]
        table(f"{title}: held-out episodes with an F1 below 0.80 under ordinary noise (F1 of subtasks / labels)",
              ["dataset", "below", "episodes"], [failing(dataset, episodes, 0.80, 0.0) for dataset, episodes in ordinary])
        best = [[report["dataset"], *(best_labels(level) for level in (report["recorded"], *(one["cutters"] for one in report["disturbed"])))]
                for report in reports]
        table(f"{title}: labels with objects under noise, ours / best baseline", ["dataset", *levels], best)
    if (folder / "speed.json").exists():
        runs = json.loads((folder / "speed.json").read_text())
        table("Speed", ["episodes", "hours", "seconds", "hours per minute", "peak memory, MiB", "ruptures, hours per minute"],
              [[str(one["episodes"]), f"{one['hours']:.1f}", f"{one['seconds']:.1f}", f"{one['hours_per_minute']:.1f}",
                f"{one['peak_kilobytes'] / 1024:.0f}", f"{one['ruptures']['hours_per_minute']:.2f}"] for one in runs])


def main():
    pages = {page.__name__: page for page in (loop, kernel, returns, motor_library, robots, annotate)}
    if len(sys.argv) != 2 or sys.argv[1] not in pages:
        sys.exit(__doc__)
    pages[sys.argv[1]](Path(__file__).parent / sys.argv[1])


if __name__ == "__main__":
    main()
