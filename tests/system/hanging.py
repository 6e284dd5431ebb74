"""Workers of the standard library that train, and stop to: they wait for each other in functions that are called as
torch's, say their steps, and leave what a test wants to see."""

# Each rank goes through STEPS of them, and then does what its test says, in `hang(rank, ranks)`.
WORKER = '''
import os, socket, sys, threading, time
directory = sys.argv[1]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.path.join(directory, "meeting_" + os.environ["ELASTIC_RUN_FENCE"][-4:])  # of this round


def serve():
    """Rank 0 lets all go on as soon as all have come."""
    clients = [server.accept()[0] for _ in range(world)]
    while all(client.recv(1) for client in clients):
        for client in clients:
            client.sendall(b"x")


if rank == 0:
    server = socket.socket(socket.AF_UNIX)
    server.bind(place + ".new")
    server.listen(world)
    os.rename(place + ".new", place)
    threading.Thread(target=serve, daemon=True).start()
while not os.path.exists(place):
    time.sleep(0.01)
meeting = socket.socket(socket.AF_UNIX)
meeting.connect(place)


def all_reduce():
    meeting.sendall(b"x")
    if not meeting.recv(1):
        sys.exit(0)


def broadcast():
    meeting.sendall(b"x")
    if not meeting.recv(1):
        sys.exit(0)


def barrier():
    meeting.sendall(b"x")
    if not meeting.recv(1):
        sys.exit(0)


def step(number, phase="train"):
    with open(os.environ["ELASTIC_RUN_PROGRESS"], "w") as word:
        word.write(f"step={number} phase={phase}\\n")


def wait_for(name):
    while not os.path.exists(os.path.join(directory, name)):
        time.sleep(0.01)


def note(name, text=""):
    with open(os.path.join(directory, name + ".new"), "w") as file:
        file.write(text)
    os.rename(os.path.join(directory, name + ".new"), os.path.join(directory, name))


def steps(count, first=1):
    for number in range(first, first + count):
        all_reduce()
        step(number)


note(f"pid_{rank}", str(os.getpid()))
'''
