deepspeed --num_gpus=8 finetune.py --deepspeed ds.json --model_name_or_path Qwen/Qwen2.5-7B --fp16 true --max_seq_length 1024 --per_device_train_batch_size 1 --optim adafactor
