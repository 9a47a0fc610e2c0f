#!/usr/bin/env bash
set -euo pipefail
export WANDB_PROJECT=sft
accelerate launch --num_processes 4 --config_file acc.yaml \
    trl/scripts/sft.py \
    --model_name_or_path Qwen/Qwen2.5-7B \
    --use_peft --load_in_4bit --lora_r 64 \
    --per_device_train_batch_size 1 --max_length 8192 \
    --eval_strategy steps
