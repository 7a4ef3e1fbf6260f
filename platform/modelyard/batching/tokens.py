"""From text to token ids, within a model's limit. Safe to call from any thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tokenizers import Encoding, Tokenizer

from modelyard.contract.errors import InvalidRequest

CUT_AT_LIMIT: Final = -1  # vLLM's truncate_prompt_tokens


class Tokens(NamedTuple):
    """One input of a model. `types` marks the second text of a pair; None: there is only one."""

    ids: list[int]
    types: list[int] | None = None


class TextTokenizer:
    """Wraps a fast tokenizer, which releases the interpreter while it works.

    limit: tokens an input may have, special tokens included. vocabulary: rows of the model's
    embedding table. Over-long input raises InvalidRequest unless the caller asked for a cut.
    """

    def __init__(self, tokenizer: Tokenizer, limit: int, vocabulary: int) -> None:
        # What was saved with a tokenizer would cut and pad in silence.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.limit = limit
        self._vocabulary = vocabulary
        # Of any text that has a token: what the model was trained to see around one.
        marks = tokenizer.encode("a").special_tokens_mask
        ids = tokenizer.encode("a").ids
        self._before = ids[: marks.index(0)]
        self._after = ids[len(ids) - marks[::-1].index(0) :]

    def texts(
        self, texts: Sequence[str], field: str, cut: int | None = None, most: int | None = None
    ) -> list[Tokens]:
        """Each text on its own. cut: truncate_prompt_tokens, of the whole input. most: Cohere's
        max_tokens_per_doc, of the text alone; one above the model's limit asks for a cut at it."""
        special = self._tokenizer.num_special_tokens_to_add(False)
        room = self._allowed(cut, least=special + 1) - special
        cutting = cut is not None or most is not None
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        for index, encoding in enumerate(encodings):
            if len(encoding) > room and not cutting:
                raise self._too_long(len(encoding) + special, field, index, len(texts))
            encoding.truncate(min(room, most or room))
        return [Tokens(self._tokenizer.post_process(one).ids) for one in encodings]

    def given(
        self, inputs: Sequence[list[int]], field: str, cut: int | None = None
    ) -> list[Tokens]:
        """Token ids from the caller: this model's own, special tokens included."""
        around = len(self._before) + len(self._after)
        allowed = self._allowed(cut, least=around + 1)
        for index, ids in enumerate(inputs):
            self._check_own(ids, field, index)
            if len(ids) > allowed and cut is None:
                raise self._too_long(len(ids), field, index, len(inputs))
        return [
            Tokens(ids if len(ids) <= allowed else ids[: allowed - len(self._after)] + self._after)
            for ids in inputs
        ]

    def _check_own(self, ids: list[int], field: str, index: int) -> None:
        """Most English words have small numbers in OpenAI's vocabulary, so that they would pass as
        other words of ours, and make a vector that means nothing: the special tokens tell."""
        if max(ids) >= self._vocabulary:
            what = f"the token id {max(ids)}, but this model has {self._vocabulary} tokens"
        elif not self._is_surrounded(ids):
            what = (
                f"token ids that do not begin with {self._before} and end with {self._after}, this "
                "model's special tokens"
            )
        else:
            return
        raise InvalidRequest(
            f"{field} {index} holds {what}: send text, or the model's own ids (LangChain's "
            "OpenAIEmbeddings sends another model's ids unless it is made with "
            "check_embedding_ctx_length=False)",
            param=field,
        )

    def _is_surrounded(self, ids: list[int]) -> bool:
        before, after = len(self._before), len(self._after)
        return (
            len(ids) >= before + after
            and ids[:before] == self._before
            and ids[len(ids) - after :] == self._after
        )

    def pairs(
        self,
        left: Sequence[str],
        right: Sequence[str],
        fields: tuple[str, str],
        cut: int | None = None,
        most: int | None = None,
    ) -> list[Tokens]:
        """`left` (one, or as many as `right`) against `right`. A cut shortens the right text: half
        a passage still says something, half a question asks another."""
        special = self._tokenizer.num_special_tokens_to_add(True)
        room = self._allowed(cut, least=special + 2) - special
        cutting = cut is not None or most is not None
        firsts = self._tokenizer.encode_batch(left, add_special_tokens=False)
        for index, first in enumerate(firsts):
            if len(first) >= room:
                raise self._too_long(
                    len(first) + special, fields[0], index, len(left), can_cut=False
                )
        firsts = firsts * len(right) if len(firsts) == 1 else firsts
        seconds = self._tokenizer.encode_batch(right, add_special_tokens=False)
        pairs = []
        for index, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            size = len(first) + min(len(second), most or len(second))
            if size > room and not cutting:
                raise self._too_long(size + special, fields[1], index, len(right))
            second.truncate(min(room - len(first), most or room))
            pairs.append(self._pair(first, second))
        return pairs

    def _pair(self, first: Encoding, second: Encoding) -> Tokens:
        both = self._tokenizer.post_process(first, second)
        return Tokens(both.ids, both.type_ids)

    def _allowed(self, cut: int | None, least: int) -> int:
        """The tokens an input may keep. A cut above the model's limit is a mistake, as in vLLM."""
        if cut is None or cut == CUT_AT_LIMIT:
            return self.limit
        if not least <= cut <= self.limit:
            raise InvalidRequest(
                f"truncate_prompt_tokens is {cut}: send -1, or {least} to {self.limit}",
                param="truncate_prompt_tokens",
            )
        return cut

    def _too_long(
        self, count: int, field: str, index: int, of: int, *, can_cut: bool = True
    ) -> InvalidRequest:
        which = f"{field} {index}" if of > 1 else field
        return InvalidRequest(
            f"{which} has {count} tokens, this model's limit is {self.limit}: shorten it"
            f"{' or send truncate_prompt_tokens: -1 to have it cut' if can_cut else ''}",
            param=field,
            wire_code="context_length_exceeded",
        )
