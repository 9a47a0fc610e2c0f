CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 --master_port 29500 train.py \
  --model_name_or_path meta-llama/Llama-2-7b-hf \
  --bf16 True --model_max_length 2048 --per_device_train_batch_size=4 \
  --gradient_checkpointing True --fsdp "full_shard auto_wrap" \
  --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer \
  --data_path alpaca.json
