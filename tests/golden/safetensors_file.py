"""Minimal reader and writer of .safetensors files.

Layout: 8 bytes little-endian header length, a JSON header, the tensor bytes. Each header
entry has dtype, shape and data_offsets (relative to the end of the header); the entry
`__metadata__` maps strings to strings. bf16 tensors are uint16 arrays, E4M3 tensors uint8 arrays.

The bytes written depend on the contents only: metadata sorted by key, tensors ordered by
falling element size and then by name (so each is aligned to its element size), the header
padded with spaces to a multiple of 8.
"""
import json
import struct
from typing import Container, Dict, Tuple

import numpy as np

_DTYPES = {"BF16": np.dtype("<u2"), "F32": np.dtype("<f4"), "I8": np.dtype("i1"),
           "U8": np.dtype("u1"), "F8_E4M3": np.dtype("u1"), "I32": np.dtype("<i4"),
           "I64": np.dtype("<i8")}
_NAMES = {dtype: name for name, dtype in _DTYPES.items() if name != "F8_E4M3"}


def encode(tensors: Dict[str, np.ndarray], metadata: Dict[str, str],
           e4m3: Container[str] = ()) -> bytes:
    """The bytes of a .safetensors file; `e4m3` names the uint8 arrays that are E4M3."""
    header = {"__metadata__": dict(sorted(metadata.items()))}
    chunks, offset = [], 0
    for name in sorted(tensors, key=lambda key: (-tensors[key].dtype.itemsize, key)):
        tensor = tensors[name]
        dtype = tensor.dtype.newbyteorder("<")
        if dtype not in _NAMES:
            raise TypeError(f"{name}: unsupported dtype {tensor.dtype}")
        data = np.ascontiguousarray(tensor, dtype=dtype).tobytes()
        header[name] = {"dtype": "F8_E4M3" if name in e4m3 else _NAMES[dtype],
                        "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(data)]}
        chunks.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def decode(data: bytes) -> Tuple[Dict[str, np.ndarray], Dict[str, str]]:
    """Tensors and metadata of a .safetensors file given as bytes."""
    if len(data) < 8:
        raise ValueError("file is too short")
    (length,) = struct.unpack_from("<Q", data)
    if length > len(data) - 8:
        raise ValueError("header is longer than the file")
    header = json.loads(data[8:8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    body = memoryview(data)[8 + length:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = _DTYPES[entry["dtype"]]
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if not 0 <= begin <= end <= len(body) or end - begin != count * dtype.itemsize:
            raise ValueError(f"{name}: bad data_offsets")
        tensors[name] = np.frombuffer(body[begin:end], dtype=dtype).reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors: Dict[str, np.ndarray], metadata: Dict[str, str]) -> None:
    """Write a .safetensors file."""
    with open(path, "wb") as stream:
        stream.write(encode(tensors, metadata))


def read(path) -> Tuple[Dict[str, np.ndarray], Dict[str, str]]:
    """Read a .safetensors file."""
    with open(path, "rb") as stream:
        return decode(stream.read())
