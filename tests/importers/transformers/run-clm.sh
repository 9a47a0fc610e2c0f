python run_clm.py --model_name_or_path openai-community/gpt2 --dataset_name wikitext --block_size 1024 --do_train --per_device_train_batch_size 8 --optim ademamix --torch_compile
