"""Small models of transformers with random weights: loss, backward, and generation by greedy, sampling and beam search."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

DEVICE = "cuda"
WORDS, BATCH, LENGTH, NEW = 99, 2, 11, 4
SMALL: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
PAIRS: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 2,
    "num_heads": 4, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip
SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 24, **GROUPED}

# architecture: what its configuration needs besides `SMALL`; its classes are named for it
DECODERS: dict[str, dict[str, Any]] = {
    "Llama": GROUPED,
    "Mistral": {"sliding_window": 4, **GROUPED},
    "Qwen2": GROUPED,
    "Qwen3": GROUPED,
    "Gemma2": {"sliding_window": 4, **GROUPED},
    "Gemma3Text": {"sliding_window": 4, **GROUPED},
    "Phi3": GROUPED,
    "GPT2": {},
    "GPTNeo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "num_heads": 4, "window_size": 4},
    "GPTNeoX": {},
    "GPTJ": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4},
    "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "Bloom": {"n_layer": 2, "n_head": 4},
    "Falcon": {"alibi": True},
    "Mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "expansion_ratio": 2},
    "CodeGen": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_ctx": 64, "rotary_dim": 4},
    "BioGpt": {},
    "XGLM": {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48},
    "Mixtral": {"num_local_experts": 4, "output_router_logits": True, **EXPERTS},
    "Qwen2Moe": {"num_experts": 4, "shared_expert_intermediate_size": 24, "output_router_logits": True, **EXPERTS},
    "Qwen3Moe": {"num_experts": 4, "output_router_logits": True, **EXPERTS},
    "Olmoe": {"num_experts": 4, "output_router_logits": True, **EXPERTS},
    "Phimoe": {"num_local_experts": 4, **EXPERTS},
    "Jamba": {
        "num_experts": 4,
        "use_mamba_kernels": False,
        "mamba_d_state": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        **EXPERTS,
    },
    "DeepseekV3": {
        "n_routed_experts": 8,
        "n_group": 2,
        "topk_group": 1,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "first_k_dense_replace": 1,
        **EXPERTS,
        "num_key_value_heads": 4,
    },
    "GptOss": {"num_local_experts": 4, "sliding_window": 4, **EXPERTS},
    "Mamba": {"state_size": 4},
    "Mamba2": {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8},
    "Bamba": {
        "mamba_d_state": 4,
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_n_groups": 2,
        "attn_layer_indices": [1],
        "num_key_value_heads": 4,
    },
    "RecurrentGemma": {"lru_width": 32, "attention_window_size": 4, "num_hidden_layers": 3, **GROUPED},
    "Rwkv": {"attention_hidden_size": 32, "context_length": 64},
    "Qwen3Next": {
        "num_experts": 4,
        "shared_expert_intermediate_size": 24,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "layer_types": ["linear_attention", "full_attention"],
        **EXPERTS,
    },
}
HEADS = {"GPT2": "GPT2LMHeadModel"}
GREEDY_ONLY = {"Rwkv"}
"""No beams: the cache cannot be put in another order."""
ENCODERS: dict[str, dict[str, Any]] = {
    "Bert": {},
    "Roberta": {},
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "Electra": {"embedding_size": 16},
    "Albert": {"embedding_size": 16},
    "DebertaV2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    "MobileBert": {"embedding_size": 32, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    "ModernBert": {"global_attn_every_n_layers": 2, "local_attention": 4, "cls_token_id": 1, "sep_token_id": 2},
    "ConvBert": {"embedding_size": 16, "head_ratio": 2, "num_groups": 1},
    "MPNet": {},
    "Longformer": {"attention_window": [4, 4]},
    "BigBird": {"block_size": 4, "num_random_blocks": 1, "attention_type": "block_sparse"},
    "Nystromformer": {"num_landmarks": LENGTH, "segment_means_seq_len": LENGTH},
    "FNet": {},
}
TRANSLATORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Bart": ("BartConfig", "BartForConditionalGeneration", {**PAIRS, "forced_eos_token_id": 2}),
    "MBart": ("MBartConfig", "MBartForConditionalGeneration", PAIRS),
    "Marian": ("MarianConfig", "MarianMTModel", PAIRS),
    "Pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", PAIRS),
    "M2M100": ("M2M100Config", "M2M100ForConditionalGeneration", PAIRS),
    "Led": (
        "LEDConfig",
        "LEDForConditionalGeneration",
        {**PAIRS, "attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64},
    ),
    "T5": ("T5Config", "T5ForConditionalGeneration", T5),
    "UMT5": ("UMT5Config", "UMT5ForConditionalGeneration", T5),
    "SwitchTransformers": (
        "SwitchTransformersConfig",
        "SwitchTransformersForConditionalGeneration",
        {**T5, "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    ),
    "ProphetNet": (
        "ProphetNetConfig",
        "ProphetNetForConditionalGeneration",
        {
            "vocab_size": WORDS,
            "hidden_size": 32,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "max_position_embeddings": 64,
        },
    ),
}
SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 4,
}
VISION: dict[str, dict[str, Any]] = {
    "ViT": {"image_size": 16, "patch_size": 4},
    "DeiT": {"image_size": 16, "patch_size": 4},
    "Beit": {"image_size": 16, "patch_size": 4, "use_relative_position_bias": True},
    "Dinov2": {"image_size": 16, "patch_size": 4},
    "Swin": SWIN,
    "Swinv2": SWIN,
    "ConvNext": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
    "MobileNetV2": {"image_size": 32, "depth_multiplier": 0.25},
}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 10, "top_p": 0.9, "temperature": 0.7, "repetition_penalty": 1.2},
    "beams": {"num_beams": 3, "no_repeat_ngram_size": 2, "length_penalty": 1.5, "early_stopping": True},
}
RARER: dict[str, dict[str, Any]] = {
    "sampled beams": {"num_beams": 3, "do_sample": True, "num_return_sequences": 2},
    "typical": {"do_sample": True, "typical_p": 0.8, "min_p": 0.01},
    "cut-offs": {"do_sample": True, "epsilon_cutoff": 3e-4, "eta_cutoff": 3e-4, "top_h": 0.5},
    "bad words": {"bad_words_ids": [[5], [6, 7]], "suppress_tokens": [8], "begin_suppress_tokens": [9]},
    "lengths": {"min_length": LENGTH + 2, "min_new_tokens": 2, "exponential_decay_length_penalty": (LENGTH + 1, 1.1)},
    "forced": {"forced_bos_token_id": 5, "forced_eos_token_id": 2, "remove_invalid_values": True},
    "biased": {"sequence_bias": [[[5], 1.5], [[6, 7], -1.5]], "renormalize_logits": True},
    "guidance": {"guidance_scale": 1.5},
    "scores": {"output_scores": True, "output_logits": True, "return_dict_in_generate": True},
    "static cache": {"cache_implementation": "static"},
    "offloaded cache": {"cache_implementation": "offloaded"},
    "prompt lookup": {"prompt_lookup_num_tokens": 3},
}


def words(batch: int = BATCH) -> torch.Tensor:
    return torch.randint(3, WORDS, (batch, LENGTH), device=DEVICE)


def padded(right: bool) -> torch.Tensor:
    mask = torch.ones(BATCH, LENGTH, dtype=torch.long, device=DEVICE)
    mask[0, -3:] = 0
    return mask if right else mask.flip(1)


def configured(name: str, wanted: dict[str, Any]) -> Any:
    """A configuration with what it knows of these values: some hold the same under another name and refuse this one."""
    made: Any = getattr(transformers, name)
    return made(**wanted)


def decoder(name: str) -> Any:
    torch.manual_seed(0)
    config = configured(f"{name}Config", {**SMALL, **DECODERS[name]})
    head = HEADS.get(name, f"{name.removesuffix('Text')}ForCausalLM")
    return getattr(transformers, head)(config).to(DEVICE)


def trained(model: Any, **given: Any) -> None:
    """One step: loss, backward, optimizer."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(**given).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    model.eval()


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_trains(name: str) -> None:
    ids = words()
    trained(decoder(name), input_ids=ids, attention_mask=padded(True), labels=ids)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_generates(name: str, way: str) -> None:
    if way == "beams" and name in GREEDY_ONLY:
        pytest.skip("its cache has no order to change")
    model = decoder(name).eval()
    model.config.output_router_logits = False  # its loss takes the mask to be as long as the new words
    out = model.generate(words(), attention_mask=padded(False), max_new_tokens=NEW, **WAYS[way])
    assert out.shape[0] == BATCH
    assert out.device.type == DEVICE


@pytest.mark.parametrize("way", RARER)
def test_llama_generates_in_rarer_ways(way: str) -> None:
    alone = 1 if way == "prompt lookup" else BATCH
    decoder("Llama").eval().generate(words(alone), max_new_tokens=NEW, **RARER[way])


def test_llama_generates_with_an_assistant() -> None:
    model = decoder("Llama").eval()
    model.generate(words(1), max_new_tokens=NEW, assistant_model=decoder("Llama").eval())


def test_llama_stops_at_a_criterion() -> None:
    criteria = transformers.StoppingCriteriaList(
        [transformers.MaxTimeCriteria(100.0), transformers.EosTokenCriteria(5)]
    )
    decoder("Llama").eval().generate(words(), max_new_tokens=NEW, stopping_criteria=criteria)


@pytest.mark.parametrize("way", ["eager", "sdpa", "flex_attention"])
def test_llama_attends(way: str) -> None:
    config = configured("LlamaConfig", {**SMALL, **GROUPED, "attn_implementation": way})
    transformers.LlamaForCausalLM(config).to(DEVICE)(words(), attention_mask=padded(False))


def test_llama_checkpoints() -> None:
    model, ids = decoder("Llama"), words()
    model.gradient_checkpointing_enable()
    trained(model, input_ids=ids, labels=ids)


@pytest.mark.parametrize("rope", ["linear", "dynamic", "yarn", "longrope", "llama3"])
def test_llama_rotates(rope: str) -> None:
    short = {"factor": 2.0, "original_max_position_embeddings": 8}
    given = {
        "linear": {"factor": 2.0}, "dynamic": {"factor": 2.0}, "yarn": short,
        "longrope": {**short, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4},
        "llama3": {**short, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    }[rope]  # fmt: skip
    config = configured(
        "LlamaConfig",
        {**SMALL, **GROUPED, "max_position_embeddings": 8, "rope_scaling": {"rope_type": rope, **given}},
    )
    transformers.LlamaForCausalLM(config).to(DEVICE)(words())


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_trains(name: str) -> None:
    config = configured(f"{name}Config", {**SMALL, **ENCODERS[name], "num_labels": 3})
    ids, given = words(), {"attention_mask": padded(True)} if name != "FNet" else {}
    trained(getattr(transformers, f"{name}ForMaskedLM")(config).to(DEVICE), input_ids=ids, labels=ids, **given)
    label = torch.tensor([0, 2], device=DEVICE)
    trained(
        getattr(transformers, f"{name}ForSequenceClassification")(config).to(DEVICE),
        input_ids=ids,
        labels=label,
        **given,
    )


@pytest.mark.parametrize(
    "head", ["ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice", "ForPreTraining"]
)
def test_bert_trains_with_other_heads(head: str) -> None:
    model = getattr(transformers, f"Bert{head}")(configured("BertConfig", {**SMALL, "num_labels": 2})).to(DEVICE)
    ids, label = words(), torch.tensor([0, 1], device=DEVICE)
    given: dict[str, dict[str, Any]] = {
        "ForTokenClassification": {"input_ids": ids, "labels": ids % 2},
        "ForQuestionAnswering": {"input_ids": ids, "start_positions": label, "end_positions": label + 2},
        "ForMultipleChoice": {"input_ids": torch.stack([ids, ids], 1), "labels": label},
        "ForPreTraining": {"input_ids": ids, "labels": ids, "next_sentence_label": label},
    }
    trained(model, **given[head])


@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_a_decoder_classifies(name: str) -> None:
    config = configured(f"{name}Config", {**SMALL, **DECODERS[name], "num_labels": 3})
    model = getattr(transformers, f"{name}ForSequenceClassification")(config).to(DEVICE)
    trained(model, input_ids=words(), labels=torch.tensor([0, 2], device=DEVICE))


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translator_trains(name: str) -> None:
    config, head, given = TRANSLATORS[name]
    ids = words()
    model = getattr(transformers, head)(configured(config, given)).to(DEVICE)
    trained(model, input_ids=ids, attention_mask=padded(True), labels=ids)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translator_generates(name: str, way: str) -> None:
    config, head, given = TRANSLATORS[name]
    model = getattr(transformers, head)(configured(config, given)).to(DEVICE).eval()
    model.generate(words(), attention_mask=padded(True), max_new_tokens=NEW, **WAYS[way])


@pytest.mark.parametrize("name", VISION)
def test_a_vision_model_trains(name: str) -> None:
    config = configured(
        f"{name}Config",
        VISION[name] if name.startswith("Swin") else {**{key: SMALL[key] for key in SIZES}, **VISION[name]},
    )
    config.num_labels = 3
    model = getattr(transformers, f"{name}ForImageClassification")(config).to(DEVICE)
    pixels = torch.rand(BATCH, 3, VISION[name].get("image_size", 32), VISION[name].get("image_size", 32), device=DEVICE)
    trained(model, pixel_values=pixels, labels=torch.tensor([0, 2], device=DEVICE))


def test_vit_is_trained_as_an_autoencoder() -> None:
    config = transformers.ViTMAEConfig(
        **{key: SMALL[key] for key in SIZES},
        image_size=16,
        patch_size=4,
        decoder_hidden_size=16,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=24,
    )
    trained(
        transformers.ViTMAEForPreTraining(config).to(DEVICE), pixel_values=torch.rand(BATCH, 3, 16, 16, device=DEVICE)
    )


def test_clip_compares_text_and_pictures() -> None:
    config = transformers.CLIPConfig(
        text_config=SMALL,
        vision_config={**SMALL, "image_size": 16, "patch_size": 4},
        projection_dim=16,
    )
    model = transformers.CLIPModel(config).to(DEVICE)
    trained(model, input_ids=words(), pixel_values=torch.rand(BATCH, 3, 16, 16, device=DEVICE), return_loss=True)


def test_llava_describes_a_picture() -> None:
    config = transformers.LlavaConfig(
        text_config={"model_type": "llama", **SMALL, **GROUPED},
        vision_config={"model_type": "clip_vision_model", **SMALL, "image_size": 16, "patch_size": 8},
        image_token_index=5,
        image_seq_length=4,
    )
    model = transformers.LlavaForConditionalGeneration(config).to(DEVICE)
    ids = words().clamp(min=6)
    ids[:, 1:5] = 5
    pixels = torch.rand(BATCH, 3, 16, 16, device=DEVICE)
    trained(model, input_ids=ids, pixel_values=pixels, labels=ids)
    model.generate(input_ids=ids, pixel_values=pixels, max_new_tokens=NEW)


def test_qwen2_vl_describes_a_picture() -> None:
    config = transformers.Qwen2VLConfig(
        text_config={**SMALL, **GROUPED, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}},
        vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 4, "mlp_ratio": 2},
        image_token_id=5,
        video_token_id=6,
        vision_start_token_id=7,
        vision_end_token_id=8,
    )
    model = transformers.Qwen2VLForConditionalGeneration(config).to(DEVICE)
    ids = torch.full((BATCH, LENGTH), 9, device=DEVICE)
    ids[:, 1], ids[:, 2:6], ids[:, 6] = 7, 5, 8
    grid = torch.tensor([[1, 4, 4]] * BATCH, device=DEVICE)
    pixels = torch.rand(BATCH * 16, 3 * 2 * 4 * 4, device=DEVICE)
    given = {"input_ids": ids, "pixel_values": pixels, "image_grid_thw": grid, "attention_mask": torch.ones_like(ids)}
    given["mm_token_type_ids"] = (ids == 5).int()
    trained(model, labels=ids, **given)
    model.generate(max_new_tokens=NEW, **given)


def test_whisper_listens() -> None:
    config = transformers.WhisperConfig(**PAIRS, max_source_positions=32, max_target_positions=64, num_mel_bins=8)
    config.suppress_tokens, config.begin_suppress_tokens = [3], [4]
    model = transformers.WhisperForConditionalGeneration(config).to(DEVICE)
    sound = torch.rand(BATCH, 8, 64, device=DEVICE)
    trained(model, input_features=sound, labels=words())
    model.generate(sound, max_new_tokens=NEW)


@pytest.mark.parametrize("name", ["Wav2Vec2", "Hubert", "WavLM", "UniSpeech"])
def test_a_speech_model_trains(name: str) -> None:
    config = getattr(transformers, f"{name}Config")(
        **SMALL,
        conv_dim=(16, 16),
        conv_stride=(4, 4),
        conv_kernel=(8, 8),
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
        mask_time_length=2,
        mask_time_prob=0.5,
        feat_extract_norm="layer",
        num_buckets=16,
    )
    sound = torch.rand(BATCH, 800, device=DEVICE)
    mask = torch.ones(BATCH, 800, dtype=torch.long, device=DEVICE)
    mask[0, 600:] = 0
    model = getattr(transformers, f"{name}ForCTC")(config).to(DEVICE)
    trained(model, input_values=sound, attention_mask=mask, labels=words()[:, :5])


def test_detr_detects() -> None:
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        backbone_config=transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]
        ),
        **{key: value for key, value in PAIRS.items() if key[:7] in ("d_model", "encoder", "decoder")},
        num_queries=5,
        num_labels=3,
    )
    model = transformers.DetrForObjectDetection(config).to(DEVICE)
    labels = [
        {
            "class_labels": torch.tensor([1, 2], device=DEVICE),
            "boxes": torch.tensor([[0.5, 0.5, 0.2, 0.2], [0.3, 0.3, 0.1, 0.1]], device=DEVICE),
        }
        for _ in range(BATCH)
    ]
    trained(model, pixel_values=torch.rand(BATCH, 3, 32, 32, device=DEVICE), labels=labels)


def test_a_trainer_trains_and_evaluates(tmp_path: Any) -> None:
    torch.manual_seed(0)
    config = configured("LlamaConfig", {**SMALL, **GROUPED})
    ids = torch.randint(3, WORDS, (LENGTH,)).tolist()
    data: Any = [{"input_ids": ids, "labels": ids}] * 8
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=2,
        max_steps=3,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=transformers.LlamaForCausalLM(config), args=arguments, train_dataset=data, eval_dataset=data
    )
    trainer.train()
    assert next(trainer.model.parameters()).device.type == DEVICE
