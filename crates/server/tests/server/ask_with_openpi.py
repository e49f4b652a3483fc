"""What clients of openpi do, with its real client: ask_with_openpi.py PORT KEY."""

import sys

import numpy as np
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.websocket_client_policy import WebsocketClientPolicy

port, key = int(sys.argv[1]), sys.argv[2]


def request(**changes):
    return {
        "observation/image": np.zeros((224, 224, 3), np.uint8),
        "observation/wrist_image": np.zeros((64, 48, 3), np.uint8),
        "observation/state": np.zeros(8, np.float64),
        "prompt": "put the bowl on the plate",
        **changes,
    }


policy = WebsocketClientPolicy("127.0.0.1", port, api_key=key)
metadata = policy.get_server_metadata()
assert metadata["action_horizon"] == 4 and metadata["action_dim"] == 7, metadata
for count in range(1, 4):
    reply = policy.infer(request())
    assert reply["actions"].shape == (4, 7) and reply["actions"].dtype == np.float32, reply["actions"]
    assert reply["actions"][0, 0] == count
    assert reply["server_timing"]["infer_ms"] >= 0
    assert ("prev_total_ms" in reply["server_timing"]) == (count > 1)
    assert reply["program"].startswith("seq[") and reply["skill"]["readable"]
# NumPy's own texts and scalars, arrays that are not contiguous, and other names.
reply = policy.infer(request(prompt=np.str_("open the drawer"), reset=np.bool_(True)))
assert reply["actions"][0, 0] == 1
flipped = np.zeros((224, 224, 3), np.uint8)[::-1, ::-1]
policy.infer(request(**{"observation/image": flipped, "observation/state": np.zeros(8, np.float32)}))
broker = ActionChunkBroker(policy, action_horizon=4)
assert broker.infer(request())["actions"].shape == (7,)
try:
    policy.infer(request(**{"observation/state": np.zeros(3, np.float32)}))
    raise SystemExit("a wrong shape was accepted")
except RuntimeError as error:
    assert "float32 [3]; expected 8 finite numbers" in str(error), error
try:
    WebsocketClientPolicy("127.0.0.1", port, api_key="wrong")
    raise SystemExit("a wrong key was accepted")
except Exception as error:
    assert "401" in str(error), error
print("served")
