"""Fashion-MNIST on any number of ranks, with checkpoints: a template for jobs that may lose a rank.

    elastic-run --standalone --nproc-per-node=4 --max-restarts=3 examples/fashion_mnist.py

What makes it safe to restart: the model, the optimizer and the step come back from a checkpoint
that is always whole, and the images and the learning rate of a step depend on the options and the
step alone. So a run that lost a rank ends where it would have ended anyway, but for rounding, and
it may go on with another number of ranks.

What makes a restart quick: with --mapped the data is kept unpacked and mapped into memory. New
workers then have it at once, and the ranks of a node share it.
"""
import argparse
import contextlib
import functools
import gzip
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def parse_arguments():
    parser = argparse.ArgumentParser(description="Train a small network on Fashion-MNIST.")
    option = parser.add_argument
    option("--epochs", type=int, default=2)
    option("--batch-size", type=int, default=256, help="images per step, over all ranks")
    option("--lr", type=float, default=4e-3, help="at the start; falls to 0 at the last step")
    option("--seed", type=int, default=1)
    option("--data", default="/usr/share/datasets/fashion-mnist", metavar="DIR")
    option("--mapped", metavar="DIR", help="map the data into memory, from files unpacked in DIR")
    option("--checkpoint", default="fashion_mnist.pt", metavar="PATH",
           help="continued from where it exists; must be in reach of every node's rank 0")
    option("--checkpoint-every", type=int, default=50, metavar="STEPS")
    option("--log-every", type=int, default=50, metavar="STEPS", help="where stdout is no terminal")
    option("--crash-at", type=int, metavar="STEP", help="lose a rank once, at this step")
    option("--crash-rank", type=int, default=1, metavar="RANK")
    return parser.parse_args()


@contextlib.contextmanager
def replacing(path, suffix):
    """Replaces the file whole: whoever is killed when, the old or the new one is there to read."""
    with open(path + suffix, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + suffix, path)


def unpack(directory, name):
    try:
        with gzip.open(os.path.join(directory, f"{name}.gz")) as file:
            return bytearray(file.read())
    except FileNotFoundError as error:
        sys.exit(f"no {error.filename}: apt-get install dataset-fashion-mnist, or name its "
                 "directory by --data")


def map_unpacked(directory, name, mapped):
    """The bytes of a file in the directory `mapped`; a rank that finds none there makes it."""
    path = os.path.join(mapped, name)
    if not os.path.exists(path):
        data = unpack(directory, name)
        os.makedirs(mapped, exist_ok=True)
        with replacing(path, f".{os.environ['RANK']}") as file:
            file.write(data)
    return torch.from_file(path, size=os.path.getsize(path), dtype=torch.uint8)


def read_idx(args, name):
    """The array in an IDX file: two zero bytes, type, dimensions, big-endian sizes, data."""
    if args.mapped:
        raw = map_unpacked(args.data, name, args.mapped)
    else:
        raw = torch.frombuffer(unpack(args.data, name), dtype=torch.uint8)
    head = bytes(raw[:16].tolist())
    start = 4 + 4 * head[3]
    sizes = [int.from_bytes(head[at:at + 4], "big") for at in range(4, start, 4)]
    return raw[start:].view(sizes)


def read_images(args, part, device):
    images = read_idx(args, f"{part}-images-idx3-ubyte")
    labels = read_idx(args, f"{part}-labels-idx1-ubyte")
    return images.unsqueeze(1).to(device), labels.to(device)


def as_input(images):
    return (images.float() - 73) / 90  # mean and deviation of the training images


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


def save_checkpoint(path, state):
    with replacing(path, ".new") as file:
        torch.save(state, file)


def load_checkpoint(path):
    """Rank 0's checkpoint on every rank, or None: all must continue from the same step."""
    state = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        state = [torch.load(path, map_location="cpu", weights_only=True)]
    dist.broadcast_object_list(state)
    return state[0]


@functools.lru_cache(maxsize=1)
def epoch_order(epoch, images, seed):
    return torch.randperm(images, generator=torch.Generator().manual_seed(seed + epoch))


def batch_of_step(step, steps_per_epoch, images, args):
    """The numbers of all images of a step; each epoch has an order of its own."""
    epoch, position = divmod(step, steps_per_epoch)
    first = position * args.batch_size
    return epoch_order(epoch, images, args.seed)[first:first + args.batch_size]


@torch.inference_mode()
def count_correct(model, images, labels):
    """(correct, counted) over all ranks; each rank takes every world-size-th image."""
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    images, labels = images[mine], labels[mine]
    correct = sum((model(as_input(part)).argmax(1) == answers).sum().item()
                  for part, answers in zip(images.split(500), labels.split(500)))
    counts = torch.tensor([correct, len(images)], device=images.device)
    dist.all_reduce(counts)
    return counts.tolist()


class Progress:
    """One line that is written over on a terminal; elsewhere a line every few steps."""

    def __init__(self, first_step, steps, args):
        self.on_terminal = sys.stdout.isatty()
        self.every = 10 if self.on_terminal else args.log_every
        self.first_step, self.steps, self.batch_size = first_step, steps, args.batch_size
        self.started = time.monotonic()

    def show(self, step, loss):
        if step % self.every and step != self.steps:
            return
        rate = (step - self.first_step) * self.batch_size / (time.monotonic() - self.started)
        line = f"step {step}/{self.steps}  loss {loss.item():.3f}  {rate:,.0f} images/s"
        over = self.on_terminal and step != self.steps
        print("\r\x1b[K" * self.on_terminal + line, end="" if over else "\n", flush=True)


def train(model, optimizer, first_step, steps, steps_per_epoch, images, labels, args):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    may_crash = args.crash_at is not None and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
    progress = Progress(first_step, steps, args)
    for step in range(first_step, steps):
        if may_crash and (step, rank) == (args.crash_at, args.crash_rank):
            print(f"\nrank {rank} kills itself at step {step}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        batch = batch_of_step(step, steps_per_epoch, len(images), args)
        mine = batch[rank::world_size].to(images.device)
        # DDP averages over ranks: so weighted, unequal shares still add up to the batch's mean.
        loss = cross_entropy(model(as_input(images[mine])), labels[mine], reduction="sum")
        loss = loss * world_size / len(batch)
        for group in optimizer.param_groups:
            group["lr"] = args.lr * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done = step + 1
        if rank == 0:
            progress.show(done, loss)
            if done % args.checkpoint_every == 0 or done == steps:
                save_checkpoint(args.checkpoint, {
                    "model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
                    "step": done, "data_order": [args.seed, args.batch_size]})


@record  # hands a Python traceback to the launcher for its report
def main():
    args = parse_arguments()
    if "LOCAL_RANK" not in os.environ:
        sys.exit("this is one rank of a job: start it by elastic-run or torchrun")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    # NCCL wants a GPU for each rank.
    use_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if use_gpu else torch.device("cpu")
    if use_gpu:
        torch.cuda.set_device(device)
        torch.backends.cudnn.deterministic = True
    images, labels = read_images(args, "train", device)
    test_images, test_labels = read_images(args, "t10k", device)

    dist.init_process_group("nccl" if use_gpu else "gloo")
    if args.crash_at is not None and args.crash_rank >= dist.get_world_size():
        sys.exit(f"--crash-rank {args.crash_rank}: the ranks are 0 to {dist.get_world_size() - 1}")
    model = DistributedDataParallel(build_model().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    steps_per_epoch = -(-len(images) // args.batch_size)
    first_step, steps = 0, args.epochs * steps_per_epoch
    saved = load_checkpoint(args.checkpoint)
    if saved:
        if saved["data_order"] != [args.seed, args.batch_size]:
            seed, batch_size = saved["data_order"]
            sys.exit(f"{args.checkpoint} was made with --seed {seed} --batch-size {batch_size}: "
                     "use these, or another --checkpoint")
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first_step = saved["step"]
        if dist.get_rank() == 0:
            print(f"resumed from step {first_step} ({args.checkpoint})", flush=True)

    train(model, optimizer, first_step, steps, steps_per_epoch, images, labels, args)
    correct, counted = count_correct(model.module, test_images, test_labels)
    if dist.get_rank() == 0:
        print(f"test accuracy: {100 * correct / counted:.2f} % of {counted} images", flush=True)
    dist.barrier()  # nobody leaves while another still needs it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
