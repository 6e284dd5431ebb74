"""A loop with DLRover's ElasticDataLoader, unmodified. Its time is virtual, and told as DLRover's trainers tell it: a step
costs 0.5 s and 1 ms a sample, and each sample beyond 64 a second. Ends when the file of its argument is there."""

import json
import os
import sys
import time

from dlrover.trainer.torch.elastic.dataloader import ElasticDataLoader
from torch.utils.data import Dataset


class Samples(Dataset):
    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        return index


metrics = os.environ["RUNTIME_METRICS_PATH"]
clock = 0
loader = ElasticDataLoader(Samples(), batch_size=16)
print("begins with", loader.get_batch_size(), flush=True)
for step, batch in enumerate(loader):
    clock += 0.5 + 0.001 * len(batch) + max(len(batch) - 64, 0)
    with open(metrics + ".new", "w") as file:
        json.dump({"step": step, "timestamp": clock}, file)
    os.replace(metrics + ".new", metrics)
    before = loader.get_batch_size()
    loader.update_batch_size()
    if loader.get_batch_size() != before:
        print("takes", loader.get_batch_size(), flush=True)
    if os.path.exists(sys.argv[1]):
        break
    time.sleep(0.005)
