"""A policy in the same process: `pip install .`, then `python examples/policy.py [RUN]` after `refactor-vla demo`."""

import sys

import numpy as np
import refactor_vla

run = sys.argv[1] if len(sys.argv) > 1 else "demo-run"
for entry in refactor_vla.Library.load(run).entries:
    print(f"{entry.name} : {entry.type}   {entry.uses} uses\n  {entry.body}")

policy = refactor_vla.Policy.load(run, device="cpu")
observation = {camera: np.zeros((128, 128, 3), np.uint8) for camera in policy.metadata["cameras"]}
observation["observation.state"] = np.zeros(policy.metadata["state_dim"], np.float32)
reply = policy.infer({**observation, "prompt": "put the bowl on the plate"})
print("actions", reply["actions"].shape)
print("program", reply["program"])
print("skill  ", reply["skill"])
# A program instead of a prompt; a type error is an exception that points at its place.
try:
    policy.infer({**observation, "program": "seq[pick left]"})
except refactor_vla.RefactorVLAError as error:
    print(error)
