"""Cuts by Python's `ruptures`, for `eval annotate --peer`, and golden change points for our own PELT.

usage: ruptures_peer.py REPORT.json DATASET… > results/annotate/ruptures.json (or ruptures_synthetic.json)
       ruptures_peer.py --golden DATASET > crates/experiments/fixtures/golden/pelt/ruptures.json

The signal is the actions of an episode, with mean 0 and deviation 1 over the training episodes (all but the last two of each
task, or all but the last one if some task has fewer than five). `Pelt(model="l2", min_size=2, jump=1)` is run on the held-out
episodes with the penalty that REPORT.json, a file of `eval annotate --output`, has for our own PELT, which was chosen on
training episodes: trying all penalties takes ruptures an hour. Differences from our own cuts are reported on stderr. The golden
file has the standardised signal of a few episodes with the change points for three penalties. Needs numpy, pandas, pyarrow and ruptures.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import ruptures

def signals_of(root):
    """Standardised actions by episode."""
    parts = sorted((root / "data").rglob("*.parquet"))
    rows = pd.concat([pd.read_parquet(part, columns=["action", "episode_index", "task_index"]) for part in parts])
    first = rows.groupby("episode_index").task_index.first()
    counts = first.value_counts()
    held = 2 if counts[counts > 1].min() >= 5 else 1
    train = [e for task in counts.index for e in sorted(first.index[first == task])[: max(1, counts[task] - held)]]
    actions = {int(e): np.stack(own.action.to_numpy()).astype("f8") for e, own in rows.groupby("episode_index")}
    seen = np.concatenate([actions[e] for e in train])
    deviation = seen.std(0)
    deviation[deviation <= 1e-9] = 1.0
    return {episode: (own - seen.mean(0)) / deviation for episode, own in actions.items()}


def cuts_of(signal, penalty):
    found = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(signal).predict(pen=penalty)
    return [int(cut) for cut in found[:-1]]


def main():
    if sys.argv[1] == "--golden":
        cases = []
        for episode, signal in list(signals_of(Path(sys.argv[2])).items())[:4]:
            signal = np.round(signal, 4)
            cases.append({
                "width": signal.shape[1],
                "values": signal.ravel().tolist(),
                "cuts": {str(penalty): cuts_of(signal, penalty) for penalty in (2, 9, 30)},
            })
        json.dump({"ruptures": ruptures.version.__version__ if hasattr(ruptures, "version") else "", "cases": cases}, sys.stdout)
    else:
        reports = {one["dataset"]: one for one in json.loads(Path(sys.argv[1]).read_text())}
        cuts = {}
        for root in map(Path, sys.argv[2:]):
            report, own = reports[root.name], cuts.setdefault(root.name, {})
            names = [one["name"] for one in report["recorded"]]
            ours = names.index("PELT on actions")
            penalty = float(report["recorded"][ours]["setting"].split()[-1])
            signals, equal, seconds = signals_of(root), 0, 0.0
            for episode in report["episodes"]:
                start = time.perf_counter()
                found = cuts_of(signals[episode["episode"]], penalty)
                seconds += time.perf_counter() - start
                own[str(episode["episode"])] = [found]
                equal += found == episode["cuts"][ours]
            rate = sum(one["rows"] for one in report["episodes"]) / seconds
            print(f"{root.name}: {equal} of {len(own)} episodes have the cuts of our own PELT; {rate:.0f} frames per second", file=sys.stderr)
        json.dump({"name": "PELT of ruptures", "settings": ["penalty of our PELT"], "cuts": cuts}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
