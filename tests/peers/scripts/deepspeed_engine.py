"""DeepSpeed's engine with ZeRO stage 1 on CPUs, over gloo. Nothing of it is compiled."""

import deepspeed
import meeting
import torch

# Would be compiled here for half a minute, and a rank that is killed meanwhile would leave a lock that all others wait for.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

torch.manual_seed(1)
deepspeed.init_distributed("gloo")
model = torch.nn.Linear(8, 3)
engine, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
    config={"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 1},
            "zero_allow_untested_optimizer": True})
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
inputs, labels = torch.randn(96, 8), torch.randint(0, 3, (96,))
for step in range(1, meeting.STEPS + 1):
    mine = slice(8 * (world * (step - 1) + rank), 8 * (world * (step - 1) + rank + 1))
    engine.backward(torch.nn.functional.cross_entropy(engine(inputs[mine]), labels[mine]))
    engine.step()
    meeting.after_step(step)
assert engine.global_steps == meeting.STEPS
meeting.tell("deepspeed", engine.global_steps, world, engine.module.parameters())
meeting.leave()
