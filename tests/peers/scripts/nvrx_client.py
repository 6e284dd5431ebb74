"""A training loop that tells NVRx's client what it does, as under ft_launcher."""

import os
import sys
import time

import torch.distributed as dist
from nvidia_resiliency_ext.fault_tolerance import RankMonitorClient, WorkloadAction, WorkloadControlRequest


def say(line):
    # One write: both ranks have one pipe, and print() writes a line piece by piece where nothing is buffered.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


dist.init_process_group("gloo")
client = RankMonitorClient()
client.init_workload_monitoring()
client.start_section("setup")
time.sleep(0.01)
client.end_section("setup")
for step in range(6):
    client.start_section("step")
    dist.barrier()
    client.end_section("step")
    client.send_heartbeat()
client.start_section("checkpointing")
time.sleep(0.01)
client.end_all_sections()
client.calculate_and_set_hb_timeouts()
client.calculate_and_set_section_timeouts()
state = client.state_dict()
assert state["current_timeouts"]["heartbeat"]["were_calculated"], state
assert set(state["current_timeouts"]["section"]["section"]) == {"setup", "step", "checkpointing"}, state
try:
    client.send_workload_control_request(WorkloadControlRequest(WorkloadAction.ExcludeThisNode, "bad GPU"))
    sys.exit("the request is accepted")
except RuntimeError as error:
    assert "--drain" in str(error), error
client.shutdown_workload_monitoring()

# Limits that were saved are sent when the client begins again.
client = RankMonitorClient()
client.load_state_dict(state)
client.init_workload_monitoring()
try:
    client.start_section("upload")
    sys.exit("a section that nobody has named is opened")
except Exception as error:
    say(f"refused: {error}")
client.start_section("step")
say("trains")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
client.end_all_sections()
client.shutdown_workload_monitoring()
dist.destroy_process_group()
