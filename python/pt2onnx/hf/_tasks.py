"""The tasks of models of transformers as data: the classes that have them, and the names of their
outputs, which are optimum's."""

from __future__ import annotations

import dataclasses
import importlib
import re
from typing import Any

_TEXT = ("input_ids", "attention_mask", "token_type_ids")
_AUDIO = ("input_values", "input_features")
_LOGITS = ("logits",)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task.

    ``mapping`` is the name of the mapping of classes in transformers, without ``MODEL_FOR_`` and
    ``_MAPPING_NAMES``; ``classes`` is a pattern of names of further classes. ``inputs`` are those
    that a model gets if it has them, beside its main input. ``generates`` is whether tokens are
    generated.
    """

    name: str
    mapping: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = _LOGITS
    generates: bool = False
    classes: str = ""


#: The first task of a class is its own.
TASKS = (
    Task(
        "text-generation", "CAUSAL_LM", (), generates=True, classes=r".+ForCausalLM|.+LMHeadModel"
    ),
    Task("text2text-generation", "SEQ_TO_SEQ_CAUSAL_LM", (), generates=True),
    Task("automatic-speech-recognition", "SPEECH_SEQ_2_SEQ", (), generates=True),
    Task("automatic-speech-recognition", "CTC", _AUDIO, classes=r".+ForCTC"),
    Task(
        "image-to-text", "", (), generates=True, classes=r"VisionEncoderDecoderModel|Pix2Struct.+"
    ),
    Task("fill-mask", "MASKED_LM", _TEXT),
    Task("text-classification", "SEQUENCE_CLASSIFICATION", _TEXT),
    Task("token-classification", "TOKEN_CLASSIFICATION", (*_TEXT, "bbox", "pixel_values")),
    Task("multiple-choice", "MULTIPLE_CHOICE", _TEXT),
    Task("question-answering", "QUESTION_ANSWERING", _TEXT, ("start_logits", "end_logits")),
    Task("next-sentence-prediction", "NEXT_SENTENCE_PREDICTION", _TEXT),
    Task(
        "document-question-answering",
        "DOCUMENT_QUESTION_ANSWERING",
        (*_TEXT, "bbox", "pixel_values"),
        ("start_logits", "end_logits", "logits"),
    ),
    Task("visual-question-answering", "VISUAL_QUESTION_ANSWERING", (*_TEXT, "pixel_values")),
    Task("image-classification", "IMAGE_CLASSIFICATION", ()),
    Task("video-classification", "VIDEO_CLASSIFICATION", ()),
    Task("object-detection", "OBJECT_DETECTION", ("pixel_mask",), ("logits", "pred_boxes")),
    Task(
        "image-segmentation",
        "UNIVERSAL_SEGMENTATION",
        ("pixel_mask",),
        ("logits", "class_queries_logits", "masks_queries_logits", "pred_boxes", "pred_masks"),
    ),
    Task(
        "image-segmentation",
        "IMAGE_SEGMENTATION",
        ("pixel_mask",),
        ("logits", "pred_boxes", "pred_masks"),
    ),
    Task("semantic-segmentation", "SEMANTIC_SEGMENTATION", ()),
    Task("depth-estimation", "DEPTH_ESTIMATION", (), ("predicted_depth",)),
    Task("image-to-image", "IMAGE_TO_IMAGE", (), ("reconstruction",)),
    Task("masked-im", "MASKED_IMAGE_MODELING", ("bool_masked_pos",), ("reconstruction", "logits")),
    Task(
        "mask-generation",
        "MASK_GENERATION",
        ("input_points", "input_labels"),
        ("iou_scores", "pred_masks"),
    ),
    Task("keypoint-detection", "KEYPOINT_DETECTION", (), ("heatmaps", "keypoints", "scores")),
    Task("pose-estimation", "POSE_ESTIMATION", (), ("heatmaps",), classes=r"VitPose.*Estimation"),
    Task("audio-classification", "AUDIO_CLASSIFICATION", _AUDIO),
    Task("audio-frame-classification", "AUDIO_FRAME_CLASSIFICATION", _AUDIO),
    Task("audio-xvector", "AUDIO_XVECTOR", _AUDIO, ("logits", "embeddings")),
    Task(
        "zero-shot-image-classification",
        "ZERO_SHOT_IMAGE_CLASSIFICATION",
        (*_TEXT, "pixel_values"),
        ("logits_per_image", "logits_per_text", "text_embeds", "image_embeds"),
    ),
    Task(
        "zero-shot-object-detection",
        "ZERO_SHOT_OBJECT_DETECTION",
        (*_TEXT, "pixel_values"),
        ("logits", "pred_boxes", "text_embeds", "image_embeds"),
    ),
    Task(
        "time-series-prediction",
        "TIME_SERIES_PREDICTION",
        ("past_time_features", "past_observed_mask", "future_time_features"),
        ("prediction_outputs", "mean_predictions", "full_predictions", "prediction_logits"),
        classes=r"PatchTS.+ForPrediction",
    ),
    Task(
        "time-series-classification",
        "TIME_SERIES_CLASSIFICATION",
        (),
        ("prediction_logits", "prediction_outputs"),
        classes=r"PatchTS.+Classification",
    ),
    Task(
        "time-series-regression",
        "TIME_SERIES_REGRESSION",
        (),
        ("regression_outputs",),
        classes=r"PatchTS.+Regression",
    ),
    Task(
        "feature-extraction",
        "",
        (*_TEXT, "pixel_values", "bbox", *_AUDIO),
        (
            *("last_hidden_state", "pooler_output", "text_embeds", "image_embeds", "audio_embeds"),
            *("logits_per_image", "logits_per_text", "logits_per_audio", "feature_maps"),
        ),
        classes=r".*",
    ),
)

#: Other names of tasks.
_ALIASES = {
    "default": "feature-extraction",
    "causal-lm": "text-generation",
    "masked-lm": "fill-mask",
    "seq2seq-lm": "text2text-generation",
    "sequence-classification": "text-classification",
    "image-feature-extraction": "feature-extraction",
    "sentence-similarity": "feature-extraction",
    "summarization": "text2text-generation",
    "translation": "text2text-generation",
    "vision2seq-lm": "image-to-text",
    "speech2seq-lm": "automatic-speech-recognition",
    "ctc": "automatic-speech-recognition",
}

#: The end of the names of tasks that generate tokens with a cache.
_WITH_PAST = "-with-past"


def tasks_of(model: object) -> list[Task]:
    """The tasks of a model's class, its own first."""
    name = type(model).__name__
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    found: list[Task] = []
    for task in TASKS:
        names: dict[str, Any] = getattr(auto, f"MODEL_FOR_{task.mapping}_MAPPING_NAMES", {})
        classes: list[Any] = [*names.values()]
        listed = any(name in ((one,) if isinstance(one, str) else one) for one in classes)
        if listed or (task.classes and re.fullmatch(task.classes, name)):
            found.append(task)
    return found


def chosen(model: Any, name: str | None) -> Task:
    """The task by its name; the class's own if there is none.

    Raises:
        ValueError: There is no such task, or the model does not have it.
    """
    own = tasks_of(model)
    # Classes that are in no mapping may generate: those of transformers have the method.
    first = own[0]
    if first.name == "feature-extraction" and _generates(model):
        both = getattr(model.config, "is_encoder_decoder", False)
        first = next(
            t for t in TASKS if t.name == ("text2text-generation" if both else TASKS[0].name)
        )
        own = [first, *own]
    if name is None:
        return first
    plain = name.removesuffix(_WITH_PAST)
    plain = _ALIASES.get(plain, plain)
    known = sorted({task.name for task in TASKS})
    if plain not in known:
        raise ValueError(f"there is no task {name!r}: give one of {', '.join(known)}")
    found = next((task for task in own if task.name == plain), None)
    past_of_others = name.endswith(_WITH_PAST) and found is not None and not found.generates
    if found is None or past_of_others:
        kind, names = type(model).__name__, ", ".join(dict.fromkeys(task.name for task in own))
        raise ValueError(
            f"{kind} does not have the task {name!r}, but {names}: give one of these, or a "
            "model of another class"
        )
    return found


def _generates(model: Any) -> bool:
    able = getattr(model, "can_generate", None)
    return able is not None and bool(able())
