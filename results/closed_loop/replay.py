"""Serves demonstrations without a model: what a policy without vision and without learning reaches in the simulator.

    replay.py DATASET --port 8100        needs numpy, pyarrow, pandas, openpi-client and websockets

At the start of an episode the demonstration of the task whose start is nearest to the robot's is chosen, whatever the images
show. Each reply is the next 8 recorded actions; a share of the distance between the robot and the demonstration's position at that
step is added to them, so that the robot stays on the recorded path.
"""

import argparse
import glob

import numpy as np
import pandas as pd
from openpi_client import msgpack_numpy
from websockets.sync.server import serve

CHUNK = 8
METRES_PER_UNIT = 0.05  # what an action of 1 asks for
GAIN = 1.2
JUMP = 0.12  # metres: a robot that is so far from where it was is in another episode


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--port", type=int, default=8100)
    options = options.parse_args()
    episodes = demonstrations(options.dataset)

    def handle(connection):
        connection.send(msgpack_numpy.packb({"policy": "replay"}))
        prompt, last, states, actions, step = None, None, None, None, 0
        for message in connection:
            request = msgpack_numpy.unpackb(message)
            position = np.array(request["observation/state"][:3])
            if request["prompt"] != prompt or np.abs(position - last).max() > JUMP:
                prompt, step = request["prompt"], 0
                states, actions = min(episodes[prompt], key=lambda one: np.abs(one[0][0, :3] - position).sum())
            rows = np.arange(step, step + CHUNK)
            reply = actions[np.minimum(rows, len(actions) - 1)].copy()
            reply[rows >= len(actions), :6] = 0
            off = states[min(step, len(states) - 1), :3] - position
            reply[:, :3] += GAIN * off / METRES_PER_UNIT / CHUNK
            last, step = position, step + CHUNK
            connection.send(msgpack_numpy.packb({"actions": np.clip(reply, -1, 1).astype(np.float32)}))

    with serve(handle, "127.0.0.1", options.port, compression=None, max_size=None) as server:
        print(f"listening on port {options.port}", flush=True)
        server.serve_forever()


def demonstrations(dataset):
    """For each instruction a list of (states, actions)."""
    files = sorted(glob.glob(f"{dataset}/data/**/*.parquet", recursive=True))
    table = pd.concat([pd.read_parquet(file) for file in files])
    tasks = pd.read_parquet(f"{dataset}/meta/tasks.parquet")
    names = {int(row["task_index"]): name for name, row in tasks.iterrows()}
    found = {}
    for _, rows in table.groupby("episode_index"):
        name = names[int(rows["task_index"].iloc[0])]
        pair = (np.stack(rows["observation.state"]), np.stack(rows["action"]))
        found.setdefault(name, []).append(pair)
    return found


if __name__ == "__main__":
    main()
