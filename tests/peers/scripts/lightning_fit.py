"""Lightning's Trainer with its DDP strategy. It must take the launcher's ranks and start no process itself."""

import os

import lightning
import meeting
import torch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 3)

    def training_step(self, batch, _index):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.layer(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Steps(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        meeting.after_step(trainer.global_step)


lightning.seed_everything(1)
data = torch.utils.data.TensorDataset(torch.randn(96, 8), torch.randint(0, 3, (96,)))
model = Model()
trainer = lightning.Trainer(
    accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_steps=meeting.STEPS,
    callbacks=[Steps()], logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False)
trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=8))
assert trainer.global_rank == int(os.environ["RANK"])
meeting.tell("lightning", trainer.global_step, trainer.world_size, model.parameters())
meeting.leave()
