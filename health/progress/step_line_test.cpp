#include "health/progress/step_line.h"

#include <doctest/doctest.h>

#include <string>

using namespace elastic::progress;

namespace {

// "megatron 10 train": what is read of a line.
std::string read(std::string_view line) {
  const auto found = read_step_line(line);
  if (!found) return "nothing";
  const std::string step = found->step ? std::to_string(*found->step) : "at " + std::to_string(found->position);
  return std::string(name_of(found->source)) + " " + step + " " + name_of(found->phase);
}

}  // namespace

TEST_CASE("Megatron's lines have an iteration") {
  CHECK(read(" [2026-03-01 11:22:33] iteration       10/     500 | consumed samples:         2560 | elapsed time per "
             "iteration (ms): 812.4 | learning rate: 1.0E-05 |") == "megatron 10 train");
  CHECK(read(" iteration  7/ 9 | consumed samples: 1 |") == "megatron 7 train");
  CHECK(read(" validation loss at iteration 100 on validation set | lm loss value: 2.1E+00 |") == "megatron 100 eval");
}

TEST_CASE("torchtitan's lines have a step and a loss, behind the logger's own prefix or not") {
  CHECK(read("[titan] 2026-03-01 11:22:33,456 - root - INFO - step: 10  loss:  7.1234  grad_norm:  1.1  memory: "
             "1.2GiB(3.1%)  tps: 12,345  tflops: 50.1  mfu: 16.1%") == "torchtitan 10 train");
  CHECK(read("step:  2  loss: 11.9") == "torchtitan 2 train");
  CHECK(read("validate step: 20  loss:  6.5  memory:  1.1GiB") == "torchtitan 20 eval");
  CHECK(read("step: 10 of the recipe") == "nothing");
}

TEST_CASE("DeepSpeed's lines have a step") {
  CHECK(read("[2026-03-01 11:22:33,456] [INFO] [logging.py:128:log_dist] [Rank 0] step=30, skipped=1, lr=[3e-05], "
             "mom=[(0.9, 0.999)]") == "deepspeed 30 train");
  CHECK(read("[INFO] [timer.py:258:stop] epoch=0/micro_step=80/global_step=40, RunningAvgSamplesPerSec=12.3, "
             "CurrSamplesPerSec=12.1, MemAllocated=1.1GB") == "deepspeed 40 train");
  CHECK(read("global_step=40") == "nothing");
}

TEST_CASE("NeMo's lines have a global step") {
  CHECK(read("Training epoch 0, iteration 9/99 | lr: 5.9e-06 | global_batch_size: 8 | global_step: 9 | "
             "reduced_train_loss: 11.03 | train_step_timing in s: 1.2") == "nemo 9 train");
  CHECK(read("Validation: iteration 3/8") == "nemo 3 eval");
}

TEST_CASE("the figures of transformers.Trainer have an epoch, quoted or not") {
  CHECK(read("{'loss': 2.3125, 'grad_norm': 1.5, 'learning_rate': 4.9e-05, 'epoch': 0.02}") ==
        "hf-trainer at 20000 train");
  CHECK(read("{'loss': '2.312', 'grad_norm': '1.5', 'epoch': '1.25'}") == "hf-trainer at 1250000 train");
  CHECK(read("{'eval_loss': 2.1, 'eval_runtime': 3.2, 'epoch': 1.0}") == "hf-trainer at 1000000 eval");
}

TEST_CASE("bars of tqdm count to their length, of unknown length, and with units") {
  CHECK(read("  6%|6         | 30/500 [00:12<03:14,  2.42it/s]") == "tqdm 30 unknown");
  CHECK(read("100%|##########| 500/500 [1:03:14<00:00,  7.60s/it]") == "tqdm 500 unknown");
  CHECK(read("21it [00:10,  2.05it/s]") == "tqdm 21 unknown");
  CHECK(read("21/? [00:10, 2.05it/s]") == "tqdm 21 unknown");
  CHECK(read("train:  25%|##5       | 1.25k/5.00k [00:02<00:06, 600it/s, loss=2.3]") == "tqdm 1250 unknown");
  CHECK(read("Loading checkpoint shards:  50%|#####     | 1/2 [00:01<00:01,  1.0s/it]") == "tqdm 1 setup");
  CHECK(read("Map:  10%|#         | 1000/10000 [00:01<00:09, 990.12 examples/s]") == "tqdm 1000 setup");
  CHECK(read("Evaluating:  50%|#####     | 5/10 [00:01<00:01,  4.9it/s]") == "tqdm 5 eval");
  CHECK(read("[12/500] loss 2.3 [00:01]") == "nothing");
}

TEST_CASE("Lightning's bars have an epoch, and count over all of them") {
  CHECK(read("Epoch 0:  42%|####2     | 21/50 [00:10<00:14,  2.05it/s, v_num=0]") == "lightning 21 train");
  CHECK(read("Epoch 3:  42%|####2     | 21/50 [00:10<00:14,  2.05it/s, v_num=0]") == "lightning 171 train");
  CHECK(read("Validation DataLoader 0:  40%|####      | 4/10 [00:00<00:00, 50.2it/s]") == "tqdm 4 eval");
  CHECK(read("Sanity Checking DataLoader 0: 100%|##########| 2/2 [00:00<00:00, 30.1it/s]") == "tqdm 2 eval");
}

TEST_CASE("two bars are different counters, and two states of one bar are not") {
  const auto counter = [](std::string_view line) { return read_step_line(line)->counter; };
  CHECK(counter("a:  1%|  | 1/100 [00:01<00:01, 1it/s]") == counter("a:  2%|  | 2/100 [00:02<00:01, 1it/s]"));
  CHECK(counter(" 9%|  | 9/100 [00:01<00:01, 1it/s]") == counter("10%|  | 10/100 [00:02<00:01, 1it/s]"));
  CHECK(counter("a:  1%|  | 1/100 [00:01<00:01, 1it/s]") != counter("b:  1%|  | 1/100 [00:01<00:01, 1it/s]"));
  CHECK(counter("a:  1%|  | 1/100 [00:01<00:01, 1it/s]") != counter("a:  1%|  | 1/200 [00:01<00:01, 1it/s]"));
}

TEST_CASE("other lines, and numbers that are too long, are no steps") {
  CHECK(read("") == "nothing");
  CHECK(read("iteration") == "nothing");
  CHECK(read("iteration 10") == "nothing");
  CHECK(read("iteration 9999999999999999999/ 500 |") == "nothing");
  CHECK(read("step=") == "nothing");
  CHECK(read(" [") == "nothing");
  CHECK(read("/ [0:1") == "nothing");
  CHECK(read("{'epoch': }") == "nothing");
  CHECK(read("99999999999G/99999999999G [00:01") != "");
}
