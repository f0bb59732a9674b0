"""What experiments on a language model share: sets of sentences, and the decoder that is read."""

import dataclasses

import numpy as np
import pytest

from experiments.language import decoders, sentences
from experiments.language.language_config import SMOKE, LanguageConfig

CONFIG = LanguageConfig(**SMOKE)
TASK = CONFIG.tasks[0][1]


@pytest.mark.parametrize("balanced", [True, False])
def test_a_run_takes_no_sentence_twice_and_the_same_ones_every_time(balanced):
    pool, task = sentences.read(TASK), dataclasses.replace(TASK, balanced=balanced)
    first, again = (sentences.sets(pool, task, CONFIG, 3, 0, others=6) for _ in range(2))
    another = sentences.sets(pool, task, CONFIG, 4, 0, others=6)
    assert [part.texts for part in first] == [part.texts for part in again]
    assert first.fresh.texts != another.fresh.texts
    every = [text for part in first for text in part.texts]
    assert len(set(every)) == len(every) == CONFIG.shots + CONFIG.fresh + 6
    assert np.bincount(first.fresh.labels).tolist() == [CONFIG.fresh // 2] * 2


def test_a_model_with_another_sum_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    other = dataclasses.replace(CONFIG, model=str(tmp_path / "model.gguf"), sha256="0" * 64)
    with pytest.raises(ValueError, match="is not the model whose sha256"):
        decoders.decoder(other)
