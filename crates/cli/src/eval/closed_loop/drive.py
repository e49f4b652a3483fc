"""Runs the rollout.py of the LIBERO kit, which stays as it is. Three things are added:

- The processes end when standard input ends, and with it the program that started them.
- A worker that gives up raises an error. As `SystemExit` it would end the worker alone, and the others would wait.
- If REFACTOR_VLA_MARK is set, the first request of each episode has `reset` and a name of the episode. openpi's client
  keeps one connection for all episodes, so that a server could not see where one ends.
"""

import os
import signal
import sys
import threading

sys.path.insert(0, os.environ["REFACTOR_VLA_KIT"])
import rollout

_run_policy = rollout.run_policy


def run_policy(task, env, cameras, obs, seed, *rest, **named):
    if os.environ.get("REFACTOR_VLA_MARK"):
        if not isinstance(rollout._policy, Marking):
            rollout._policy = Marking(rollout._policy)
        rollout._policy.episode = f"{task.id}/{seed - 1000 * task.start}"  # by the seed of the start state
    try:
        return _run_policy(task, env, cameras, obs, seed, *rest, **named)
    except SystemExit as error:
        raise RuntimeError(str(error)) from error


rollout.run_policy = run_policy


class Marking:
    """A client that names episodes."""

    def __init__(self, client):
        self.client, self.episode = client, None

    def infer(self, request):
        if self.episode is not None:
            request = {**request, "reset": True, "episode": self.episode}
            self.episode = None
        return self.client.infer(request)


def end_with_input():
    while os.read(0, 4096):  # not sys.stdin, whose lock would be held at the end
        pass
    # Workers of the simulator are in the same process group, which holds nothing else.
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    if os.getpgrp() == os.getpid():
        threading.Thread(target=end_with_input, daemon=True).start()
    rollout.main()
