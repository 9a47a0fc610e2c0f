#!/bin/bash
#SBATCH --gres=gpu:4
set -e
export WANDB_MODE=offline
MODEL="HuggingFaceTB/SmolLM2-135M"
BATCH=8
SPEED_ARGS="--bf16 True --gradient_checkpointing True"

nohup torchrun --nproc_per_node $(nvidia-smi -L | wc -l) run_clm.py \
    --model_name_or_path $MODEL \
    --per_device_train_batch_size ${BATCH} \
    --block_size ${BLOCK:-1024} \
    --do_train $SPEED_ARGS \
    --output_dir ${OUT:-out} >train.log 2>&1 &
