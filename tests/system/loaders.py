"""A data loader that reads DLRover's file of parameters, and the job that trains with it. The loader's time is virtual,
told by DLRover's runtime-metrics file, so that no speed depends on that of this machine."""

import json

from harness import wait_until

# A loader that reads DLRover's file before each batch. A batch takes it 0.8 s, and as many as it has workers are loaded
# at once; more than four disturb each other. Its first argument is the file that ends it, the second one notes of what
# it did, by line.
LOADER = """
import json, os, sys, time

config, metrics = os.environ["DLROVER_PARAL_CONFIG_PATH"], os.environ["RUNTIME_METRICS_PATH"]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
clock, step, version = 1000.0 * (attempt + 1), 0, 0
values = {begin}
notes = open(sys.argv[2], "a", buffering=1)


def note(word, *more):
    notes.write(json.dumps([attempt, word, values, *more]) + "\\n")


def read():
    try:
        with open(config) as file:
            return json.load(file)
    except ValueError:  # it is being written
        return {{}}


content = read()
note(content["dataloader"]["version"])
content["dataloader"].update(values)
with open(config, "w") as file:
    json.dump(content, file)
while not os.path.exists(sys.argv[1]):
    content = read()
    said = content.get("dataloader", {{}})
    if said.get("version", 0) > version:
        version = said["version"]
        values.update((name, said[name]) for name in values)
        note("adopts", content["optimizer"]["learning_rate"])
    {step}
    step += 1
    with open(metrics + ".new", "w") as file:
        json.dump({{"step": step, "timestamp": clock}}, file)
    os.replace(metrics + ".new", metrics)
    time.sleep(0.005)
"""
WORKERS = """workers = values["num_workers"]
    clock += 0.8 / (min(workers, 4) * 0.8 ** max(workers - 4, 0))"""


class Training:
    def __init__(self, elastic_run, script, name=""):
        self.elastic_run, self.script = elastic_run, script
        directory = elastic_run.directory
        self.go = directory / "go"
        self.notes_file, self.events_file = directory / f"notes{name}", directory / f"events{name}"

    def start(self, *options, begin="{'num_workers': 1}", step=WORKERS, text=LOADER, program=None):
        worker = self.script("train.py", text.format(begin=begin, step=step))
        self.run = self.elastic_run.start("--auto-tunning", f"--events={self.events_file}", "--log-level=info", *options,
                                          worker, self.go, self.notes_file, program=program)
        return self.run

    def events(self, *whats):
        """The events of auto-tunning so far, or those of these kinds."""
        lines = self.events_file.read_text().splitlines() if self.events_file.exists() else []
        found = [event for event in map(json.loads, lines) if event["event"] == "auto_tunning"]
        return [event for event in found if not whats or event["what"] in whats]

    def wait_for(self, what, count=1, timeout=200):
        wait_until(lambda: len(self.events(what)) >= count, timeout=timeout,
                   what=f"{what}: {[event['message'] for event in self.events()]}")
        return self.events(what)[-1]

    def adopts(self, value, attempt=0):
        """Waits until the loader makes batches with so many workers."""
        wait_until(lambda: self.notes_file.exists() and self.notes()[-1][:3:2] == [attempt, {"num_workers": value}],
                   timeout=100, what=f"{value} workers in attempt {attempt}")

    def notes(self):
        return [json.loads(line) for line in self.notes_file.read_text().splitlines()]

    def end(self):
        self.go.touch()
        result = self.run.wait()
        assert result.returncode == 0, result
        return result
