"""Safetensors files for the command-line test, as plain dictionaries of bytes; the standard library only."""
import json
import pathlib
import struct
from typing import Dict, NamedTuple, Tuple


class Tensor(NamedTuple):
    dtype: str
    shape: Tuple[int, ...]
    data: bytes


def read(path: pathlib.Path) -> Tuple[Dict[str, Tensor], Dict[str, str]]:
    """The tensors and the metadata of a valid file."""
    image = path.read_bytes()
    (length,) = struct.unpack("<Q", image[:8])
    header = json.loads(image[8:8 + length])
    metadata = header.pop("__metadata__", {})
    data = image[8 + length:]
    return {name: Tensor(entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


def write(path: pathlib.Path, tensors: Dict[str, Tensor], metadata: Dict[str, str]) -> pathlib.Path:
    """Writes the file. Lengths are taken from the bytes, so that a wrong tensor gives a wrong file."""
    header, chunks, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(tensor.data)]}
        chunks.append(tensor.data)
        offset += len(tensor.data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))
    return path
