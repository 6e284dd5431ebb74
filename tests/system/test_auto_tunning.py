"""--auto-tunning: docs/auto-tunning.md. The loaders' time is virtual, told by DLRover's runtime-metrics file, so that no
speed depends on that of this machine."""
# ctest: long

import json
import pathlib

import pytest

from harness import wait_until
from loaders import LOADER, WORKERS, Training


@pytest.fixture
def training(elastic_run, script):
    return Training(elastic_run, script)


@pytest.mark.time_limit(600)
def test_the_best_number_of_loaders_is_found_within_five_changes_and_never_less_than_at_the_start(training):
    training.start("--standalone")
    ended = training.wait_for("ended", timeout=500)
    wait_until(lambda: training.notes()[-1][2]["num_workers"] == 4, timeout=30, what=f"4 workers: {training.notes()}")
    result = training.end()
    tried = training.events("tried")
    assert 2 <= len(tried) <= 5, training.events()
    assert all(event["value"] == "num_workers" and event["to"] > 1 for event in tried)
    assert all(note[2]["num_workers"] >= 1 for note in training.notes())
    kept = training.events("kept")
    assert [(event["from"], event["to"]) for event in kept] == [(1, 2), (2, 4)]
    assert kept[0]["speed_before"] == pytest.approx(1.25) and kept[0]["speed_after"] == pytest.approx(2.5)
    for event in training.events("taken_back"):
        assert event["to"] == 4 and event["speed_after"] < event["speed_before"]
    assert (ended["speed_before"], ended["speed_after"]) == (pytest.approx(1.25), pytest.approx(5))
    assert "auto-tunning: num_workers 4 is kept: 5 steps/s, 2.5 with 2" in result.stderr


@pytest.mark.time_limit(600)
def test_a_batch_size_that_ends_a_rank_for_its_memory_is_taken_back_with_its_learning_rate(training):
    # Samples cost nothing until 32 of them are too many.
    training.start("--standalone", "--max-restarts=2", begin="{'batch_size': 8}", step="""if step == 0:
        content = read()
        content["optimizer"].update(learning_rate=0.01, weight_decay=0.5)
        with open(config, "w") as file:
            json.dump(content, file)
    if values["batch_size"] >= 32:
        note("dies")
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
    clock += 0.2""")
    back = training.wait_for("taken_back", timeout=500)
    assert (back["value"], back["from"], back["to"]) == ("batch_size", 32, 16)
    assert "a rank died of memory (cuda-out-of-memory)" in back["message"]
    training.wait_for("ended", timeout=500)
    training.end()
    notes = training.notes()
    assert [note[2]["batch_size"] for note in notes if note[1] == "dies"] == [32]
    raised = ["adopts", {"batch_size": 16}, pytest.approx(0.01 * 2 ** 0.5)]
    assert [0, *raised] in notes and notes[-1] == [1, *raised], notes
    assert training.events("kept")[0]["speed_after"] == pytest.approx(80)


def test_a_batch_size_is_not_raised_where_no_restart_is_left(training):
    training.start("--standalone", begin="{'batch_size': 8}", step="clock += 0.2")
    assert "no restart is left" in training.wait_for("ended")["message"]
    training.end()
    assert training.events("tried") == []


@pytest.mark.time_limit(600)
def test_nothing_is_measured_before_a_worker_has_read_the_change(training):
    may_read = training.notes_file.with_name("read")
    text = LOADER.replace("    content = read()", f"    content = read() if os.path.exists({str(may_read)!r}) else {{{{}}}}")
    training.start("--standalone", text=text, step=WORKERS + """
    if step % 500 == 0:
        note(step)""")
    training.wait_for("tried")
    last = training.notes()[-1][1]
    wait_until(lambda: training.notes()[-1][1] >= last + 2500, timeout=200, what="steps enough for many windows")
    assert training.events("kept", "taken_back") == []
    may_read.touch()
    assert training.wait_for("kept")["to"] == 2
    training.end()


def test_the_speed_is_measured_by_steps_that_a_script_says(training):
    text = LOADER.replace('os.replace(metrics + ".new", metrics)', "")  # nothing is there for DLRover's trainers
    training.start("--standalone", text=text, step="""if step == 0:
        says = open(os.environ["ELASTIC_RUN_PROGRESS"], "w", buffering=1)
    says.write(f"step={step}\\n")""")
    assert training.wait_for("tried")["speed_before"] > 0
    training.end()


def test_the_file_is_dlrovers_and_its_directory_is_ours_alone(elastic_run, script):
    result = elastic_run("--standalone", "--auto-tunning", script("show.py", """\
import os, stat
path = os.environ["DLROVER_PARAL_CONFIG_PATH"]
print(oct(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode)), os.environ["RUNTIME_METRICS_PATH"] != path)
print(path)
print(open(path).read())
"""))
    assert result.returncode == 0, result
    mode, path, text = result.stdout.split("\n", 2)
    assert mode == "0o700 True"
    assert not pathlib.Path(path).parent.exists()
    assert json.loads(text) == {
        "dataloader": {"batch_size": 0, "dataloader_name": "", "last_batch_size": 0, "num_workers": 0, "pin_memory": 0,
                       "version": 0},
        "optimizer": {"learning_rate": 0.0, "optimizer_name": "", "version": 0, "weight_decay": 0.0}, "restart": False}


def test_without_the_flag_no_worker_has_the_file(elastic_run):
    result = elastic_run("--standalone", "--no-python", "sh", "-c", 'echo "[$DLROVER_PARAL_CONFIG_PATH$RUNTIME_METRICS_PATH]"')
    assert result.stdout == "[]\n", result


def test_a_file_of_the_user_is_left_alone_and_that_is_said(elastic_run):
    result = elastic_run("--standalone", "--auto-tunning", "--no-python", "sh", "-c", 'echo "$DLROVER_PARAL_CONFIG_PATH"',
                         env={"DLROVER_PARAL_CONFIG_PATH": "/of/mine"})
    assert result.stdout == "/of/mine\n", result
    assert "--auto-tunning: nothing is changed, as DLROVER_PARAL_CONFIG_PATH is set already" in result.stderr


def test_garbage_in_the_file_is_made_good_and_harms_nobody(training):
    training.start("--standalone", step=WORKERS + """
    if version == 1 and not os.path.exists(config + ".seen"):
        open(config + ".seen", "w").close()
        with open(config, "w") as file:
            file.write("{" * 100_000)
        note("garbage")""")
    training.wait_for("tried")
    wait_until(lambda: [note[1] for note in training.notes()][-2:] == ["garbage", "adopts"], timeout=100,
               what=f"the file to be made good: {training.notes()}")
    training.end()


def test_a_change_is_not_in_the_next_round_after_one_that_could_not_be_written(training):
    may_fail = training.notes_file.with_name("fail")
    training.start("--standalone", "--max-restarts=1", step=WORKERS + f"""
    if version == 1 and attempt == 0:
        os.remove(config)
        os.mkdir(config)
        while not os.path.exists({str(may_fail)!r}):
            time.sleep(0.005)
        os.rmdir(config)
        sys.exit(1)""")
    assert training.wait_for("nothing_changed")["message"].endswith(": Is a directory")
    may_fail.touch()
    wait_until(lambda: training.notes()[-1][0] == 1, timeout=60, what=f"the second round: {training.notes()}")
    assert training.notes()[-1] == [1, 0, {"num_workers": 1}]  # the file is of version 0
    assert [(event["from"], event["to"]) for event in training.events("taken_back")] == [(2, 1)]
    training.end()
