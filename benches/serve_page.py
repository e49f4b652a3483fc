"""Two robots that replay demonstrations to a running server, so that its live page has something to show.

    refactor-vla serve RUN --port 8000 &
    python benches/serve_page.py datasets/libero_goal_mini --port 8000 &
    SERVER_PAGE=http://127.0.0.1:8000/ SERVER_SCREENSHOTS=$PWD/results/serve cargo test -p server --test server pictures_of

One sends the instruction of its demonstration, one a program. Both stay connected until they are killed. Needs av, pyarrow,
numpy and openpi-client.
"""

import argparse
import itertools
import threading
import time
from pathlib import Path

import av
import numpy as np
import pyarrow.parquet as pq
from openpi_client.websocket_client_policy import WebsocketClientPolicy

CAMERAS = {"observation.images.image": "observation/image", "observation.images.wrist_image": "observation/wrist_image"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--episodes", type=int, nargs=2, default=[0, 9])
    parser.add_argument("--program", default='seq[open "drawer", put "bowl" (on "plate"), turn_on "stove"]')
    parser.add_argument("--replan", type=int, default=5, help="actions that a robot executes of each reply")
    options = parser.parse_args()
    demonstrations = [Demonstration(options.dataset, episode) for episode in options.episodes]
    robots = [
        threading.Thread(target=robot, args=(options, demonstration, asked), daemon=True)
        for demonstration, asked in zip(
            demonstrations, [{"prompt": demonstrations[0].instruction}, {"program": options.program}], strict=True
        )
    ]
    for one in robots:
        one.start()
    for one in robots:
        one.join()


class Demonstration:
    """One episode of a dataset with all its frames in one file of each kind."""

    def __init__(self, dataset, episode):
        columns = pq.read_table(next((dataset / "data").rglob("*.parquet"))).to_pydict()
        rows = [row for row, number in enumerate(columns["episode_index"]) if number == episode]
        self.states = np.array([columns["observation.state"][row] for row in rows], np.float32)
        tasks = pq.read_table(dataset / "meta/tasks.parquet").to_pydict()
        names = tasks.get("task") or tasks["__index_level_0__"]
        self.instruction = names[tasks["task_index"].index(columns["task_index"][rows[0]])]
        self.images = {}
        for camera, key in CAMERAS.items():
            video = av.open(str(next((dataset / "videos" / camera).rglob("*.mp4"))))
            frames = itertools.islice(video.decode(video=0), rows[0], rows[-1] + 1)
            self.images[key] = [frame.to_ndarray(format="rgb24") for frame in frames]


def robot(options, demonstration, asked):
    policy = WebsocketClientPolicy("127.0.0.1", options.port)
    for at in range(0, len(demonstration.states), options.replan):
        images = {key: frames[at] for key, frames in demonstration.images.items()}
        policy.infer({**images, "observation/state": demonstration.states[at], **asked, "reset": at == 0})
    print(f"{asked}: {len(demonstration.states)} frames", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
