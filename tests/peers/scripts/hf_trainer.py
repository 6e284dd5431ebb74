"""The Trainer of transformers, on a tiny Llama with random weights: no model is loaded from anywhere."""

import os

import meeting
import torch
import transformers


class Steps(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        meeting.after_step(state.global_step)


transformers.set_seed(1)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=2, max_position_embeddings=32))
texts = torch.randint(0, 64, (96, 12))
trainer = transformers.Trainer(
    model=model,
    args=transformers.TrainingArguments(
        output_dir=os.path.join(os.environ["TMPDIR"], "trained"), use_cpu=True, max_steps=meeting.STEPS,
        per_device_train_batch_size=8, save_strategy="no", report_to=[], disable_tqdm=True,
        dataloader_num_workers=0, seed=1),
    train_dataset=[{"input_ids": text, "labels": text} for text in texts],
    callbacks=[Steps()])
trainer.train()
assert trainer.args.process_index == int(os.environ["RANK"])
meeting.tell("transformers", trainer.state.global_step, trainer.args.world_size, model.parameters())
meeting.leave()
