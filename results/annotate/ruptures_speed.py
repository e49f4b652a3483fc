"""How fast `ruptures` cuts the episodes of a dataset, on one core.

usage: ruptures_speed.py DATASET MOST

Prints JSON: hours of demonstrations in the dataset, and seconds and hours per minute of `Pelt(model="l2", min_size=2,
jump=1)` with penalty 9 on the standardised actions of the first MOST episodes; it takes minutes for an hour of
demonstrations, so it need not see all. Needs numpy, pandas, pyarrow and ruptures.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import ruptures


def main():
    root, most = Path(sys.argv[1]), int(sys.argv[2])
    info = json.loads((root / "meta" / "info.json").read_text())
    rows = pd.read_parquet(sorted((root / "data").rglob("*.parquet"))[0], columns=["action", "episode_index"])
    signals = [np.stack(own.action.to_numpy()).astype("f8") for _, own in rows.groupby("episode_index")][:most]
    mean, deviation = np.concatenate(signals).mean(0), np.concatenate(signals).std(0) + 1e-9
    start = time.perf_counter()
    for signal in signals:
        ruptures.Pelt(model="l2", min_size=2, jump=1).fit((signal - mean) / deviation).predict(pen=9)
    seconds = time.perf_counter() - start
    hours = sum(map(len, signals)) / info["fps"] / 3600
    found = {"episodes": len(signals), "seconds": round(seconds, 2), "hours_per_minute": round(hours * 60 / seconds, 3)}
    print(json.dumps({"hours": round(info["total_frames"] / info["fps"] / 3600, 3), "ruptures": found}))


if __name__ == "__main__":
    main()
