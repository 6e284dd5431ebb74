"""The main job: a real training on real data that loses a rank and ends as if it had not."""
# ctest: computes, release-only

import pathlib
import re

import pytest

from workers import whole_of

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "fashion_mnist.py"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

pytestmark = pytest.mark.time_limit(500)


@pytest.fixture
def train(elastic_run, tmp_path, script):
    """train("name", options...): a run of the example on 4 ranks with a checkpoint of that name."""

    example = script("example.py", whole_of(EXAMPLE))

    def run(name, *options, ranks=4, restarts=3):
        return elastic_run("--standalone", f"--nproc-per-node={ranks}",
                           f"--max-restarts={restarts}", example, "--checkpoint", tmp_path / name,
                           *options, env=ONE_THREAD, timeout=240)

    return run


def accuracy(result):
    """Percent of the test images; every one of them must have been counted, and once."""
    assert result.returncode == 0, result
    lines = re.findall(r"^test accuracy: (.*) % of 10000 images$", result.stdout, re.MULTILINE)
    assert len(lines) == 1, result
    return float(lines[0])


def test_training_that_loses_a_rank_resumes_and_is_as_good_as_one_that_does_not(train):
    undisturbed = train("undisturbed.pt")
    assert accuracy(undisturbed) >= 85
    assert "resumed" not in undisturbed.stdout
    assert len(re.findall(r"^step 470/470 ", undisturbed.stdout, re.MULTILINE)) == 1, undisturbed

    crashed = train("crashed.pt", "--crash-at", "430")
    assert crashed.stderr.count("rank 1 kills itself at step 430") == 1, crashed
    # Rank 1 can't be at step 430 before rank 0 is past its checkpoint of step 400. So late, 70
    # steps at a low learning rate could not make good what the checkpoint had lost.
    assert re.findall(r"resumed from step (\d+)", crashed.stdout) == ["400"], crashed
    assert abs(accuracy(crashed) - accuracy(undisturbed)) <= 0.5


def test_every_test_image_is_counted_once_where_ranks_do_not_divide_them(train):
    accuracy(train("untrained.pt", "--epochs=0", ranks=3))


def test_data_that_is_mapped_is_unpacked_once_and_trains_the_same(train, tmp_path):
    mapped = tmp_path / "new" / "mapped"
    runs = [train("packed.pt", "--epochs=1"), train("mapped.pt", "--epochs=1", "--mapped", mapped)]
    losses = [[float(loss) for loss in re.findall(r"^step .*  loss ([\d.]+) ", run.stdout, re.MULTILINE)] for run in runs]
    assert len(losses[0]) == 5 and losses[1] == pytest.approx(losses[0], abs=0.01), runs
    made = {file.name: file.stat() for file in mapped.iterdir()}
    assert sorted(made) == ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
                            "train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    assert made["train-images-idx3-ubyte"].st_size == 16 + 60_000 * 28 * 28

    # What is there is used: of the packed data nothing is needed any more.
    accuracy(train("again.pt", "--epochs=0", "--mapped", mapped, "--data", tmp_path / "nowhere"))
    assert {file.name: file.stat().st_mtime_ns for file in mapped.iterdir()} == {
        name: facts.st_mtime_ns for name, facts in made.items()}


def test_missing_data_names_the_package_to_install(train, tmp_path):
    result = train("none.pt", "--data", tmp_path / "nowhere", ranks=1, restarts=0)
    assert result.returncode == 1
    missing = tmp_path / "nowhere" / "train-images-idx3-ubyte.gz"
    assert f"no {missing}: apt-get install dataset-fashion-mnist" in result.stderr, result
