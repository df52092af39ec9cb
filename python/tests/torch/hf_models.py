"""Small random models of transformers: pairs of a class and a task, as data."""

from __future__ import annotations

from typing import Any

_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    **_IDS,
}
_BART = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    **_IDS,
}
_DISTILBERT = {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37}
_T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
_VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 5,
}
_STAGES = {"depths": [1, 1], "hidden_sizes": [16, 32], "num_labels": 5}
_RESNET = {**_STAGES, "embedding_size": 16, "layer_type": "basic"}
_SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 4,
    "num_labels": 5,
}
_SEGFORMER = {
    "num_encoder_blocks": 2,
    "depths": [1, 1],
    "sr_ratios": [2, 1],
    "hidden_sizes": [16, 32],
    "patch_sizes": [7, 3],
    "strides": [4, 2],
    "num_attention_heads": [1, 2],
    "mlp_ratios": [2, 2],
    "decoder_hidden_size": 16,
    "image_size": 64,
    "num_labels": 5,
}
_WAV2VEC2 = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 4, 4],
    "conv_kernel": [10, 8, 4],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 32,
    "xvector_output_dim": 16,
    "tdnn_dim": [16, 16, 16],
    "tdnn_kernel": [5, 3, 1],
    "tdnn_dilation": [1, 2, 1],
    "num_labels": 5,
}
_CLIP = {
    "text_config": {**_TEXT, "projection_dim": 16},
    "vision_config": {**_VIT, "projection_dim": 16},
    "projection_dim": 16,
}
_SIGLIP = {"text_config": {**_TEXT, "projection_size": 32}, "vision_config": _VIT}
_PATCHES = {
    "context_length": 32,
    "prediction_length": 8,
    "num_input_channels": 2,
    "patch_length": 8,
    "patch_stride": 8,
    "d_model": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "ffn_dim": 32,
    "num_targets": 3,
}
_LAYOUTLM = {**_TEXT, "max_2d_position_embeddings": 1000}

#: The class of the model, its configuration and fields, and the task; None is the class's own.
PAIRS: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("BertModel", "BertConfig", _TEXT, "feature-extraction"),
    ("BertForMaskedLM", "BertConfig", _TEXT, "fill-mask"),
    ("BertForSequenceClassification", "BertConfig", _TEXT, "text-classification"),
    ("BertForMultipleChoice", "BertConfig", _TEXT, "multiple-choice"),
    ("BertForNextSentencePrediction", "BertConfig", _TEXT, None),
    ("RobertaForTokenClassification", "RobertaConfig", _TEXT, "token-classification"),
    ("DistilBertForQuestionAnswering", "DistilBertConfig", _DISTILBERT, "question-answering"),
    ("ElectraForSequenceClassification", "ElectraConfig", _TEXT, None),
    ("AlbertForMaskedLM", "AlbertConfig", {**_TEXT, "embedding_size": 16}, None),
    ("DebertaV2ForSequenceClassification", "DebertaV2Config", _TEXT, None),
    ("MPNetModel", "MPNetConfig", _TEXT, None),
    ("LlamaForSequenceClassification", "LlamaConfig", _TEXT, None),
    ("T5EncoderModel", "T5Config", _T5, None),
    ("BartForSequenceClassification", "BartConfig", _BART, None),
    ("ViTForImageClassification", "ViTConfig", _VIT, "image-classification"),
    ("ViTModel", "ViTConfig", _VIT, "image-feature-extraction"),
    ("ViTForMaskedImageModeling", "ViTConfig", {**_VIT, "encoder_stride": 8}, "masked-im"),
    ("DeiTForImageClassification", "DeiTConfig", _VIT, None),
    ("Dinov2Model", "Dinov2Config", _VIT, None),
    ("ResNetForImageClassification", "ResNetConfig", _RESNET, None),
    ("ConvNextForImageClassification", "ConvNextConfig", {**_STAGES, "num_stages": 2}, None),
    ("SwinForImageClassification", "SwinConfig", _SWIN, None),
    ("SegformerForSemanticSegmentation", "SegformerConfig", _SEGFORMER, "semantic-segmentation"),
    ("YolosForObjectDetection", "YolosConfig", {**_VIT, "image_size": [32, 32]}, None),
    ("GLPNForDepthEstimation", "GLPNConfig", {**_SEGFORMER, "decoder_hidden_size": 16}, None),
    (
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        {**_SWIN, "patch_size": 1, "num_channels_out": 3, "upscale": 2, "image_size": 16},
        "image-to-image",
    ),
    ("Wav2Vec2ForCTC", "Wav2Vec2Config", _WAV2VEC2, "automatic-speech-recognition"),
    ("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", _WAV2VEC2, "audio-classification"),
    ("Wav2Vec2ForAudioFrameClassification", "Wav2Vec2Config", _WAV2VEC2, None),
    ("Wav2Vec2ForXVector", "Wav2Vec2Config", _WAV2VEC2, "audio-xvector"),
    ("HubertModel", "HubertConfig", _WAV2VEC2, None),
    (
        "ASTForAudioClassification",
        "ASTConfig",
        {**_VIT, "num_mel_bins": 16, "max_length": 32, "frequency_stride": 8, "time_stride": 8},
        None,
    ),
    ("CLIPModel", "CLIPConfig", _CLIP, "zero-shot-image-classification"),
    ("CLIPTextModelWithProjection", "CLIPTextConfig", {**_TEXT, "projection_dim": 16}, None),
    ("CLIPVisionModelWithProjection", "CLIPVisionConfig", {**_VIT, "projection_dim": 16}, None),
    ("SiglipModel", "SiglipConfig", _SIGLIP, None),
    ("LayoutLMForTokenClassification", "LayoutLMConfig", _LAYOUTLM, "token-classification"),
    ("LayoutLMForQuestionAnswering", "LayoutLMConfig", _LAYOUTLM, "document-question-answering"),
    ("PatchTSTForPrediction", "PatchTSTConfig", _PATCHES, "time-series-prediction"),
    ("PatchTSTForClassification", "PatchTSTConfig", _PATCHES, None),
    ("PatchTSMixerForPrediction", "PatchTSMixerConfig", _PATCHES, None),
]

_MAMBA = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, **_IDS}
_HYBRID = {
    **_TEXT,
    "num_key_value_heads": 2,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "mamba_d_state": 8,
    "attn_layer_indices": [1],
}

_GRIFFIN = {
    **_TEXT,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "lru_width": 32,
    "attention_window_size": 32,
}
_MPT = {"vocab_size": 99, "d_model": 32, "n_layers": 1, "n_heads": 4, "max_seq_len": 64}

#: Decoders with other states than caches of keys, or that are captured twice, and the names of some
#: states.
STATEFUL: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("MambaForCausalLM", "MambaConfig", _MAMBA, ["past_conv.0", "past_ssm.0"]),
    ("RwkvForCausalLM", "RwkvConfig", {**_MAMBA, "context_length": 64}, ["past_state.0"]),
    ("BambaForCausalLM", "BambaConfig", _HYBRID, ["past_conv.0", "past_ssm.0"]),
    (
        "Lfm2ForCausalLM",
        "Lfm2Config",
        {**_TEXT, "num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]},
        ["past_conv.0", "past_key_values.1.key"],
    ),
    (
        "RecurrentGemmaForCausalLM",
        "RecurrentGemmaConfig",
        _GRIFFIN,
        ["past_state.model.layers.0.temporal_block.conv1d_state", "past_key_values.2.key"],
    ),
    ("MptForCausalLM", "MptConfig", _MPT, ["past_key_values.0.key"]),
]

#: Models with an encoder and a decoder.
GENERATORS: list[tuple[str, str, dict[str, Any]]] = [
    ("T5ForConditionalGeneration", "T5Config", _T5),
    ("BartForConditionalGeneration", "BartConfig", {**_BART, "decoder_start_token_id": 2}),
    (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **_BART,
            "num_mel_bins": 16,
            "max_source_positions": 30,
            "max_target_positions": 64,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
    ),
]
