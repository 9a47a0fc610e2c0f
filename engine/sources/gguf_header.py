"""The reader of llama.cpp's library, kept to the header: bounded, and quick over vocabularies.

Its own loop takes 14 s for the tokens of Llama 3, and makes an object of every entry that a file
claims to have. Here an array is one view of the file, and nothing lies beyond its end.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from gguf import GGUFReader, GGUFValueType

MAX_VALUES = 8_000_000  # strings and fields; a vocabulary with its merges has about 600,000
MAX_LIST = 65_536  # entries of an array that is looked at, such as heads by layer
MAX_DIMENSIONS = 8


class HeaderOnly(GGUFReader):
    """
    A GGUF file of which only the header is looked at.

    Raises `ValueError`, and what numpy raises, for a header that is wrong or longer than its file.
    """

    _values = 0

    def contents(self) -> tuple[dict[str, Any], dict[str, list[int]], dict[str, int]]:
        """Metadata, shapes and bytes of the tensors, by name."""
        metadata = {name: self._plain(field) for name, field in self.fields.items()}
        shapes, sizes = dict[str, list[int]](), dict[str, int]()
        for tensor in self.tensors:
            shape, count = [int(n) for n in tensor.shape], 1
            for n in shape:
                count *= n
            if count != int(tensor.n_elements):
                raise ValueError(f"the tensor {tensor.name} has an impossible shape")
            shapes[tensor.name], sizes[tensor.name] = shape, int(tensor.n_bytes)
        return metadata, shapes, sizes

    def _plain(self, field: Any) -> Any:
        """A value of the metadata; None for arrays of text and long ones, which nobody asks for."""
        kind = field.types[0] if field.types else None
        if kind == GGUFValueType.ARRAY:
            short = field.data and len(field.parts[field.data[0]]) <= MAX_LIST
            return field.parts[field.data[0]].tolist() if short else None
        if kind == GGUFValueType.STRING:
            return str(bytes(field.parts[-1]), encoding="utf-8", errors="replace")
        return field.parts[-1].tolist()[0]

    def _counted(self, number: int) -> None:
        self._values += number
        if self._values > MAX_VALUES:
            raise ValueError(f"its header has more than {MAX_VALUES:,} entries, as no model has")

    def _within(self, end: int) -> None:
        if end > len(self.data):
            raise ValueError(f"it ends at byte {len(self.data):,}, before what its header promises")

    def _get(self, offset: int, dtype: Any, count: Any = 1, override_order: Any = None) -> Any:
        """A view of the file; raises `ValueError` where that goes beyond its end."""
        self._counted(1)
        end = int(offset) + int(np.dtype(dtype).itemsize) * int(count)
        self._within(end)
        return super()._get(int(offset), dtype, int(count), override_order)

    def _get_field_parts(self, orig_offs: int, raw_type: Any) -> Any:
        """The parts of a field; of an array one view, of an array of text only its length."""
        if int(raw_type) != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        raw_kind = self._get(orig_offs, np.uint32)
        length = self._get(orig_offs + 4, np.uint64)
        kind, count, start = GGUFValueType(int(raw_kind[0])), int(length[0]), orig_offs + 12
        scalar = self.gguf_scalar_to_np.get(kind)
        types = [GGUFValueType.ARRAY, kind]
        if scalar is not None:
            entries = self._get(start, scalar, count)
            return 12 + int(entries.nbytes), [raw_kind, length, entries], [2], types
        if kind != GGUFValueType.STRING:
            raise ValueError("an array of arrays, which no model has")
        self._counted(count)
        order = ">" if self.byte_order == "S" else "<"
        data: Any = self.data
        data, end = memoryview(data), start
        length_of = struct.Struct(f"{order}Q").unpack_from
        for _ in range(count):
            self._within(end + 8)
            end += 8 + length_of(data, end)[0]
        self._within(end)
        return end - orig_offs, [raw_kind, length], [], types

    def _get_tensor_info_field(self, orig_offs: int) -> Any:
        field = super()._get_tensor_info_field(orig_offs)
        if int(field.parts[2][0]) > MAX_DIMENSIONS:
            raise ValueError(f"a tensor of more than {MAX_DIMENSIONS} dimensions")
        return field
