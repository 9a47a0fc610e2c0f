tune run --nproc_per_node 2 lora_finetune_distributed --config lora.yaml batch_size=4 tokenizer.max_seq_len=1024 compile=False
