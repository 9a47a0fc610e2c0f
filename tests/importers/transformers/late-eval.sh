python -u examples/pytorch/language-modeling/run_clm.py \
  --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name wikitext --do_train --do_eval \
  --per_device_train_batch_size 2 --block_size 512 --fp16 --optim adamw_bnb_8bit --output_dir out "$@" 2>&1 | tee log
