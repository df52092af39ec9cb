"""Example inputs of models, made from their configurations, with the names of their axes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

#: Names of axes, those of optimum.
BATCH, LENGTH, CHOICES = "batch_size", "sequence_length", "num_choices"
HEIGHT, WIDTH = "height", "width"
#: The batches of models that compare each text with each image.
TEXTS, IMAGES = "text_batch_size", "image_batch_size"


class Input(NamedTuple):
    """An example, and the names of its dynamic axes."""

    value: torch.Tensor
    axes: dict[int, str]


#: Configurations that are parts of others.
_PARTS = (
    *("text_config", "vision_config", "audio_config", "encoder", "decoder", "backbone_config"),
    *("prompt_encoder_config", "esm_config"),
)

#: The names of sizes of images.
_SIDES = ("height", "width")

#: Sizes of images and audio where a configuration has none.
_PIXELS, _SAMPLES, _FRAMES = 224, 16000, 64


def setting(config: Any, *names: str, default: Any = None) -> Any:
    """The first of these fields that a configuration or a part of it has."""
    for one in _configs(config):
        for name in names:
            value = getattr(one, name, None)
            if value is not None:
                return value
    return default


def _configs(config: Any) -> Iterator[Any]:
    yield config
    for name in _PARTS:
        part = getattr(config, name, None)
        if part is not None and hasattr(part, "to_dict"):
            yield from _configs(part)


class Examples:
    """Makes inputs by name.

    Args:
        model: The model.
        batch: The number of rows.
        length: The number of tokens.
        choices: Whether rows have several texts, between which the model chooses.
        processor: A processor of transformers, whose sizes win.
    """

    def __init__(
        self,
        model: Any,
        batch: int = 2,
        length: int = 16,
        choices: bool = False,
        processor: Any = None,
    ) -> None:
        self.config, self.model = model.config, model
        self._batch, self._length = batch, length
        self._choices, self._processor = choices, processor
        self._random = torch.Generator().manual_seed(0)

    def make(self, names: Mapping[str, Any] | tuple[str, ...]) -> dict[str, Input]:
        """The inputs of these names that the model takes and that can be made."""
        parameters = inspect.signature(self.model.forward).parameters
        main = getattr(self.model, "main_input_name", "input_ids")
        first = () if main in names or main not in parameters else (main,)
        made: dict[str, Input] = {}
        for name in dict.fromkeys((*first, *names)):
            maker = getattr(self, f"_{name}", None)
            if name in parameters and maker is not None:
                found = maker()
                if found is not None:
                    made[name] = found
        return made

    def _tokens(self, value: torch.Tensor) -> Input:
        if not self._choices:
            return Input(value, {0: BATCH, 1: LENGTH})
        rows = value[:, None].expand(value.shape[0], 3, *value.shape[1:]).contiguous()
        return Input(rows, {0: BATCH, 1: CHOICES, 2: LENGTH})

    def _integers(self, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=self._random)

    def _floats(self, *shape: int) -> torch.Tensor:
        value = torch.randn(shape, generator=self._random)
        return value.to(self.model.dtype)

    def _input_ids(self) -> Input:
        vocabulary = int(setting(self.config, "vocab_size", default=100))
        low = 3 if vocabulary > 3 else 0
        value = self._integers(vocabulary - low, self._batch, self._length) + low
        # Encoders of CLIP's kind and classifiers take the place of the last token.
        end = setting(self.config, "eos_token_id")
        ends = end if isinstance(end, int) and 0 <= end < vocabulary else None
        if ends is not None:
            value[:, -1] = ends
        return self._tokens(value)

    def _attention_mask(self) -> Input | None:
        # Masks of images and of audio are of patches and samples.
        if "input_ids" not in inspect.signature(self.model.forward).parameters:
            return None
        return self._tokens(torch.ones(self._batch, self._length, dtype=torch.int64))

    def _token_type_ids(self) -> Input | None:
        kinds = setting(self.config, "type_vocab_size", default=0)
        if not kinds:
            return None
        return self._tokens(torch.zeros(self._batch, self._length, dtype=torch.int64))

    def _bbox(self) -> Input:
        corners = self._integers(400, self._batch, self._length, 2)
        sides = self._integers(400, self._batch, self._length, 2)
        return Input(torch.cat([corners, corners + sides], -1), {0: BATCH, 1: LENGTH})

    def pixels(self) -> tuple[int, int]:
        """Height and width of images."""
        of_processor = getattr(self._processor, "image_processor", self._processor)
        size: Any = getattr(of_processor, "size", None)
        if size is None or not ({"height", "width"} <= set(dict(size))):
            size = setting(self.config, "image_size", "input_size", default=_PIXELS)
        if isinstance(size, int):
            return size, size
        # Transformers has a class that is nearly a dict.
        pairs = size if "height" in size else zip(_SIDES, size[-2:], strict=True)
        named: dict[str, Any] = dict(pairs)
        return int(named["height"]), int(named["width"])

    def _pixel_values(self) -> Input:
        channels = int(setting(self.config, "num_channels", "in_channels", default=3))
        height, width = self.pixels()
        frames = setting(self.config, "num_frames")
        if frames is None or not _is_video(self.config):
            value = self._floats(self._batch, channels, height, width)
            return Input(value, {0: BATCH, 2: HEIGHT, 3: WIDTH})
        return Input(self._floats(self._batch, int(frames), channels, height, width), {0: BATCH})

    def _pixel_mask(self) -> Input:
        height, width = self.pixels()
        value = torch.ones(self._batch, height, width, dtype=torch.int64)
        return Input(value, {0: BATCH, 1: HEIGHT, 2: WIDTH})

    def _bool_masked_pos(self) -> Input:
        height, width = self.pixels()
        patch = int(setting(self.config, "patch_size", default=16))
        count = (height // patch) * (width // patch)
        return Input(self._integers(2, self._batch, count) > 0, {0: BATCH})

    def _input_points(self) -> Input:
        value = torch.rand(self._batch, 1, 2, 2, generator=self._random) * min(self.pixels())
        return Input(value, {0: BATCH, 1: "point_batch_size", 2: "nb_points_per_image"})

    def _input_labels(self) -> Input:
        value = torch.ones(self._batch, 1, 2, dtype=torch.int64)
        return Input(value, {0: BATCH, 1: "point_batch_size", 2: "nb_points_per_image"})

    def _flattened_patches(self) -> Input:
        vision = getattr(self.config, "vision_config", self.config)
        depth = vision.num_channels * vision.patch_size**2
        places = self._integers(8, self._batch, self._length, 2).to(self.model.dtype)
        value = torch.cat([places, self._floats(self._batch, self._length, depth)], -1)
        return Input(value, {0: BATCH, 1: "encoder_sequence_length"})

    def _input_values(self) -> Input:
        bins = setting(self.config, "num_mel_bins")
        frames = setting(self.config, "max_length")
        if bins and frames and setting(self.config, "patch_size"):
            # Spectrograms of one size.
            return Input(self._floats(self._batch, int(frames), int(bins)), {0: BATCH})
        return Input(self._floats(self._batch, _SAMPLES), {0: BATCH, 1: LENGTH})

    def _input_features(self) -> Input:
        bins = int(setting(self.config, "num_mel_bins", "feature_size", default=80))
        places = setting(self.config, "max_source_positions")
        if "input_feat_per_channel" in self.config.to_dict():
            bins = int(self.config.input_feat_per_channel)
            return Input(self._floats(self._batch, _FRAMES, bins), {0: BATCH, 1: LENGTH})
        if places and hasattr(self.config, "encoder_layers"):
            # Whisper's encoder halves the frames, and takes one number of them.
            return Input(self._floats(self._batch, bins, 2 * int(places)), {0: BATCH})
        bins = int(setting(self.config, "feature_projection_input_dim", default=bins))
        return Input(self._floats(self._batch, _FRAMES, bins), {0: BATCH, 1: LENGTH})

    def _past_values(self) -> Input:
        channels = setting(self.config, "num_input_channels")
        count = int(setting(self.config, "context_length", default=32))
        if channels is not None:
            return Input(self._floats(self._batch, count, int(channels)), {0: BATCH})
        lags = setting(self.config, "lags_sequence", default=[0])
        return Input(self._floats(self._batch, count + max(lags)), {0: BATCH})

    def _decoder_input_ids(self) -> Input:
        return Input(self._input_ids().value, {0: BATCH, 1: "decoder_sequence_length"})


def _is_video(config: Any) -> bool:
    return any(
        word in str(config.model_type) for word in ("video", "vivit", "timesformer", "vjepa")
    )
