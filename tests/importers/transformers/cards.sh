accelerate launch --multi_gpu --mixed_precision bf16 --dynamo_backend inductor run_clm.py \
  --model_name_or_path Qwen/Qwen2.5-1.5B --dataset_name our/pages --do_train \
  --block_size 2048 --per_device_train_batch_size 2 --gradient_checkpointing --output_dir out
