"""A robot in Python: `pip install openpi-client`, then `python examples/client.py [PORT]`, next to `refactor-vla serve demo-run`."""

import sys

import numpy as np
from openpi_client.websocket_client_policy import WebsocketClientPolicy

policy = WebsocketClientPolicy("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
metadata = policy.get_server_metadata()
observation = {
    "observation/image": np.zeros((128, 128, 3), np.uint8),
    "observation/wrist_image": np.zeros((128, 128, 3), np.uint8),
    "observation/state": np.zeros(metadata["state_dim"], np.float32),
}
reply = policy.infer({**observation, "prompt": "put the bowl on the plate"})
print(reply["actions"].shape, reply["program"], reply["skill"], reply["server_timing"])
# A program instead of a prompt; a type error would be told with its place.
reply = policy.infer({**observation, "program": 'put "bowl" (on "plate")'})
print(reply["task"], reply["step"], reply["progress"])
