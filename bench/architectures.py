"""Small random architectures of transformers that generate tokens, as data.

Each has a name, a configuration, a class, and the fields of the configuration; ``None`` leaves a
common one out.
"""

VOCABULARY = 320

#: The fields of all.
_TOKENS = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

#: The fields of most decoders.
DECODER = {"hidden_size": 64,
 "intermediate_size": 96,
 "num_hidden_layers": 2,
 "num_attention_heads": 4,
 "num_key_value_heads": 2,
 "max_position_embeddings": 512}

#: The fields of BART's kind.
BART = {"d_model": 64,
 "encoder_layers": 2,
 "decoder_layers": 2,
 "encoder_attention_heads": 4,
 "decoder_attention_heads": 4,
 "encoder_ffn_dim": 96,
 "decoder_ffn_dim": 96,
 "max_position_embeddings": 512}

#: The fields of GPT-2's kind.
GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512}

#: By name: the configuration, the class, the common fields, and further ones.
ARCHITECTURES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", DECODER, {}),
    "llama31_rope": ("LlamaConfig", "LlamaForCausalLM", DECODER, {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, "rope_theta": 10000.0}),
    "smollm2_tied": ("LlamaConfig", "LlamaForCausalLM", DECODER, {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", DECODER, {}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", DECODER, {"head_dim": 16}),
    "qwen3_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", DECODER, {"head_dim": 16, "moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 1}),
    "qwen3_next": ("Qwen3NextConfig", "Qwen3NextForCausalLM", DECODER, {"num_hidden_layers": 4, "head_dim": 16, "moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2, "shared_expert_intermediate_size": 64, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16}),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", DECODER, {"head_dim": 16}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", DECODER, {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}),
    "gemma3_text": ("Gemma3TextConfig", "Gemma3ForCausalLM", DECODER, {"num_hidden_layers": 6, "head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}),
    "phi": ("PhiConfig", "PhiForCausalLM", DECODER, {}),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", DECODER, {"original_max_position_embeddings": 512}),
    "phi4mini_longrope": ("Phi3Config", "Phi3ForCausalLM", DECODER, {"original_max_position_embeddings": 64, "partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "longrope", "type": "longrope", "short_factor": [1.0, 1.0, 1.0, 1.0], "long_factor": [2.0, 2.0, 2.0, 2.0]}}),
    "phimoe": ("PhimoeConfig", "PhimoeForCausalLM", DECODER, {"num_local_experts": 4}),
    "mistral_window": ("MistralConfig", "MistralForCausalLM", DECODER, {"sliding_window": 8}),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", DECODER, {"num_local_experts": 4}),
    "gpt_oss": ("GptOssConfig", "GptOssForCausalLM", DECODER, {"head_dim": 16, "num_local_experts": 4, "sliding_window": 8, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 128}}),
    "deepseek_v2": ("DeepseekV2Config", "DeepseekV2ForCausalLM", DECODER, {"num_key_value_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 1}),
    "mamba": ("MambaConfig", "MambaForCausalLM", {}, {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8}),
    "mamba2": ("Mamba2Config", "Mamba2ForCausalLM", {}, {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 2, "chunk_size": 16}),
    "granite": ("GraniteConfig", "GraniteForCausalLM", DECODER, {}),
    "granitemoe": ("GraniteMoeConfig", "GraniteMoeForCausalLM", DECODER, {"num_local_experts": 4}),
    "bamba": ("BambaConfig", "BambaForCausalLM", DECODER, {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 16, "mamba_chunk_size": 16, "attn_layer_indices": [1]}),
    "jamba": ("JambaConfig", "JambaForCausalLM", DECODER, {"num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False, "mamba_d_state": 8, "mamba_dt_rank": 8}),
    "lfm2": ("Lfm2Config", "Lfm2ForCausalLM", DECODER, {"layer_types": ["conv", "full_attention"]}),
    "recurrent_gemma": ("RecurrentGemmaConfig", "RecurrentGemmaForCausalLM", DECODER, {"num_hidden_layers": 3, "lru_width": 64, "attention_window_size": 32}),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", GPT, {}),
    "gpt_neo": ("GPTNeoConfig", "GPTNeoForCausalLM", {}, {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 8, "max_position_embeddings": 512}),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", DECODER, {"num_key_value_heads": None}),
    "opt": ("OPTConfig", "OPTForCausalLM", {}, {"hidden_size": 64, "word_embed_proj_dim": 64, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 512}),
    "bloom_alibi": ("BloomConfig", "BloomForCausalLM", {}, {"hidden_size": 64, "n_layer": 2, "n_head": 4}),
    "mpt": ("MptConfig", "MptForCausalLM", {}, {"d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 512}),
    "falcon": ("FalconConfig", "FalconForCausalLM", {}, {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "olmo": ("OlmoConfig", "OlmoForCausalLM", DECODER, {}),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", DECODER, {}),
    "olmoe": ("OlmoeConfig", "OlmoeForCausalLM", DECODER, {"num_experts": 4, "num_experts_per_tok": 2}),
    "cohere": ("CohereConfig", "CohereForCausalLM", DECODER, {}),
    "glm4": ("Glm4Config", "Glm4ForCausalLM", DECODER, {"head_dim": 16}),
    "nemotron": ("NemotronConfig", "NemotronForCausalLM", DECODER, {}),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", DECODER, {}),
    "minimax": ("MiniMaxConfig", "MiniMaxForCausalLM", DECODER, {"num_local_experts": 4, "layer_types": ["linear_attention", "full_attention"], "head_dim": 16}),
    "t5": ("T5Config", "T5ForConditionalGeneration", {}, {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}),
    "bart": ("BartConfig", "BartForConditionalGeneration", BART, {"decoder_start_token_id": 2, "forced_eos_token_id": None}),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", BART, {"decoder_start_token_id": 2, "forced_eos_token_id": None}),
    "marian": ("MarianConfig", "MarianMTModel", BART, {"decoder_start_token_id": 0, "forced_eos_token_id": None}),
    "whisper": ("WhisperConfig", "WhisperForConditionalGeneration", BART, {"num_mel_bins": 16, "max_source_positions": 50, "max_target_positions": 64, "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None, "max_position_embeddings": None}),
    "phi_h32": ("PhiConfig", "PhiForCausalLM", DECODER, {"hidden_size": 128}),
    "phi3_h32": ("Phi3Config", "Phi3ForCausalLM", DECODER, {"hidden_size": 128, "original_max_position_embeddings": 512}),
    "rwkv": ("RwkvConfig", "RwkvForCausalLM", {}, {"hidden_size": 64, "num_hidden_layers": 2, "context_length": 64}),
    "falcon_mamba": ("FalconMambaConfig", "FalconMambaForCausalLM", {}, {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8}),
    "falcon_alibi": ("FalconConfig", "FalconForCausalLM", {}, {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True, "new_decoder_architecture": False, "multi_query": True}),
    "zamba2": ("Zamba2Config", "Zamba2ForCausalLM", DECODER, {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "mamba_d_state": 8, "mamba_headdim": 16, "n_mamba_heads": 8, "mamba_ngroups": 1, "chunk_size": 16, "num_mem_blocks": 1, "adapter_rank": 8}),
    "falcon_h1": ("FalconH1Config", "FalconH1ForCausalLM", DECODER, {"head_dim": 16, "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 16}),
    "granitemoehybrid": ("GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM", DECODER, {"num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 64, "layer_types": ["mamba", "attention"], "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 16}),
    "nemotron_h": ("NemotronHConfig", "NemotronHForCausalLM", DECODER, {"num_hidden_layers": 4, "head_dim": 16, "hybrid_override_pattern": "M*-M", "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 1, "ssm_state_size": 8, "chunk_size": 16}),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", BART, {"decoder_start_token_id": 0}),
    "blenderbot": ("BlenderbotConfig", "BlenderbotForConditionalGeneration", BART, {"decoder_start_token_id": 1}),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", {}, {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}),
    "m2m100": ("M2M100Config", "M2M100ForConditionalGeneration", BART, {"decoder_start_token_id": 2}),
    "gptj": ("GPTJConfig", "GPTJForCausalLM", GPT, {"rotary_dim": 8}),
    "codegen": ("CodeGenConfig", "CodeGenForCausalLM", GPT, {"rotary_dim": 8}),
    "gpt_bigcode": ("GPTBigCodeConfig", "GPTBigCodeForCausalLM", GPT, {}),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", DECODER, {}),
    "deepseek_v3": ("DeepseekV3Config", "DeepseekV3ForCausalLM", DECODER, {"num_key_value_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 1}),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", DECODER, {}),
    "persimmon": ("PersimmonConfig", "PersimmonForCausalLM", DECODER, {"num_key_value_heads": None}),
    "xglm": ("XGLMConfig", "XGLMForCausalLM", {}, {"d_model": 64, "ffn_dim": 96, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 512}),
    "bert_dec": ("BertConfig", "BertLMHeadModel", DECODER, {"is_decoder": True}),
    "longt5": ("LongT5Config", "LongT5ForConditionalGeneration", {}, {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0, "local_radius": 7}),
    "hunyuan": ("HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", DECODER, {"head_dim": 16}),
    "ernie": ("Ernie4_5Config", "Ernie4_5ForCausalLM", DECODER, {"head_dim": 16}),
    "exaone4": ("Exaone4Config", "Exaone4ForCausalLM", DECODER, {"sliding_window": 8}),
    "arcee": ("ArceeConfig", "ArceeForCausalLM", DECODER, {}),
    "helium": ("HeliumConfig", "HeliumForCausalLM", DECODER, {"head_dim": 16}),
    "biogpt": ("BioGptConfig", "BioGptForCausalLM", DECODER, {"num_key_value_heads": None}),
}
