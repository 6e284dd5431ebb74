"""A training loop with accelerate: model, optimiser and data prepared by it."""

import accelerate
import meeting
import torch

accelerate.utils.set_seed(1)
accelerator = accelerate.Accelerator(cpu=True)
data = torch.utils.data.TensorDataset(torch.randn(96, 8), torch.randint(0, 3, (96,)))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=False)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

steps = 0
for inputs, labels in loader:
    optimizer.zero_grad()
    accelerator.backward(torch.nn.functional.cross_entropy(model(inputs), labels))
    optimizer.step()
    steps += 1
    meeting.after_step(steps)
assert int(accelerator.reduce(torch.tensor(steps))) == steps * accelerator.num_processes
meeting.tell("accelerate", steps, accelerator.num_processes, model.parameters())
accelerator.end_training()
meeting.leave()
