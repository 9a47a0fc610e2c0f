trl sft --model_name_or_path mistralai/Mistral-7B-v0.1 --dataset_name x --use_peft --dtype bfloat16 --per_device_train_batch_size 1 --max_length 2048 --lora_modules_to_save lm_head
