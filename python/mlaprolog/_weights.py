"""The weights of one layer."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _names, _native
from ._arrays import Array, TypedArray, describe
from ._preparation import rope_reorder, split_kv_b_proj

MATRICES = ("weight_dq", "weight_uq_qr", "weight_dkv_kr")


class Dims(NamedTuple):
    """The sizes of a layer. q_rank 0: the query has no low rank."""

    hidden: int = 0  # He
    q_rank: int = 0  # Hcq
    heads: int = 0  # N
    nope: int = 0  # D
    rope: int = 0  # Dr
    kv_rank: int = 0  # Hckv


def _layout_of(parameter: str, array: Optional[Array], layout: Union[str, Mapping[str, str], None]) -> int:
    if parameter not in MATRICES or array is None:
        return _names.ROW_MAJOR
    if isinstance(layout, Mapping):
        layout = layout.get(parameter)
    if layout is None:
        values = array.array if isinstance(array, TypedArray) else array
        return _names.FRACTAL_NZ if getattr(values, "ndim", 2) == 4 else _names.ROW_MAJOR
    return _names.code_of(f"layout of {parameter}", _names.LAYOUTS, layout)


class Weights:
    """The weights of one layer, copied to the layout the kernels like best, or borrowed where they are.

    weight_dq (He, Hcq), weight_uq_qr (Hcq, N * (D + Dr)), weight_dkv_kr (He, Hckv + Dr): "row_major" as written here,
        "out_in" transposed as torch.nn.Linear keeps them, or "nz": FRACTAL_NZ, 4-D or under the matrix's two sizes.
        bf16, or 8-bit with dequant_scale_* (float32 [n] or [1, n]; MXFP8: float8_e8m0fnu [n, k / 32]).
    weight_uk [N, D, Hckv], rmsnorm_gamma_cq [Hcq], rmsnorm_gamma_ckv [Hckv]: bf16.
    smooth_scales_cq: float32 [Hcq] or [1, Hcq].
    layout: of the three matrices, or a mapping from their names. None: 4-D arrays are "nz", others "row_major".
    copy: False reads the arrays in place, for as long as this object lives; they must keep their content. Not for
        "out_in" or arrays with gaps.
    dims: sizes that are not 0 are demanded of the arrays; those of 4-D arrays that end in padding need them.

    Without weight_dq and rmsnorm_gamma_cq the query has no low rank: weight_uq_qr is (He, N * (D + Dr)).
    """

    __slots__ = ("native", "facts", "_kept")

    def __init__(
        self,
        *,
        weight_uq_qr: Array,
        weight_uk: Array,
        weight_dkv_kr: Array,
        rmsnorm_gamma_ckv: Array,
        weight_dq: Optional[Array] = None,
        rmsnorm_gamma_cq: Optional[Array] = None,
        dequant_scale_w_dq: Optional[Array] = None,
        dequant_scale_w_uq_qr: Optional[Array] = None,
        dequant_scale_w_dkv_kr: Optional[Array] = None,
        smooth_scales_cq: Optional[Array] = None,
        layout: Union[str, Mapping[str, str], None] = None,
        copy: bool = True,
        dims: Dims = Dims(),
    ) -> None:
        arrays = {
            "weight_dq": weight_dq,
            "weight_uq_qr": weight_uq_qr,
            "weight_uk": weight_uk,
            "weight_dkv_kr": weight_dkv_kr,
            "rmsnorm_gamma_cq": rmsnorm_gamma_cq,
            "rmsnorm_gamma_ckv": rmsnorm_gamma_ckv,
            "dequant_scale_w_dq": dequant_scale_w_dq,
            "dequant_scale_w_uq_qr": dequant_scale_w_uq_qr,
            "dequant_scale_w_dkv_kr": dequant_scale_w_dkv_kr,
            "smooth_scales_cq": smooth_scales_cq,
        }
        if isinstance(layout, Mapping):
            unknown = set(layout) - set(MATRICES)
            if unknown:
                raise ValueError(f"layout: expected names among {', '.join(MATRICES)}, found {', '.join(unknown)}")
        descriptors = tuple(
            describe(name, arrays[name], _layout_of(name, arrays[name], layout)) for name in _native.WEIGHT_TENSORS
        )
        self.native = _native.Weights(descriptors, _names.COPY if copy else _names.BORROW, tuple(Dims(*dims)))
        self._kept = None if copy else tuple(arrays.values())
        self.facts = self.native.facts()

    @property
    def dims(self) -> Dims:
        return Dims(*self.facts[0])

    @property
    def weight_quant(self) -> str:
        """What of the operator is quantised: "bf16", "uq_qr_int8", "int8", "mxfp8", "fp8", or "hifloat8"."""
        return _names.WEIGHT_QUANTS[self.facts[1]]

    @property
    def is_borrowed(self) -> bool:
        return self.facts[2] == _names.BORROW

    @property
    def owned_bytes(self) -> int:
        return self.facts[3]

    @classmethod
    def from_hugging_face(
        cls,
        *,
        q_b_proj: np.ndarray,
        kv_a_proj_with_mqa: np.ndarray,
        kv_a_layernorm: np.ndarray,
        kv_b_proj: np.ndarray,
        heads: int,
        nope: int,
        q_a_proj: Optional[np.ndarray] = None,
        q_a_layernorm: Optional[np.ndarray] = None,
        rope_order: str = "interleaved",
    ) -> Tuple["Weights", np.ndarray]:
        """A layer's weights from the tensors of a Hugging Face checkpoint, each (out, in) in bf16, as they are there.

        q_a_proj (Hcq, He), q_a_layernorm (Hcq), q_b_proj (N * (D + Dr), Hcq), kv_a_proj_with_mqa (Hckv + Dr, He),
        kv_a_layernorm (Hckv), kv_b_proj (N * (D + Dv), Hckv). Without q_a_proj, q_b_proj is q_proj (N * (D + Dr), He).
        rope_order: "interleaved" as DeepSeek's rope columns lie, or "half" (openPangu), which are reordered.

        Returns the weights and weight_uv [N, Hckv, Dv], which is multiplied after the attention.
        """
        _names.code_of("rope_order", {"interleaved": 0, "half": 1}, rope_order)
        weight_uk, weight_uv = split_kv_b_proj(kv_b_proj, heads=heads, nope=nope)
        kv_rank = kv_b_proj.shape[1]
        rope = kv_a_proj_with_mqa.shape[0] - kv_rank
        if rope_order == "half":
            q_b_proj = rope_reorder(q_b_proj, nope + rope, rope, "half_to_interleaved", layout="out_in")
            kv_a_proj_with_mqa = rope_reorder(
                kv_a_proj_with_mqa, kv_rank + rope, rope, "half_to_interleaved", layout="out_in"
            )
        weights = cls(
            weight_dq=q_a_proj,
            weight_uq_qr=q_b_proj,
            weight_uk=weight_uk,
            weight_dkv_kr=kv_a_proj_with_mqa,
            rmsnorm_gamma_cq=q_a_layernorm,
            rmsnorm_gamma_ckv=kv_a_layernorm,
            layout="out_in",
        )
        return weights, weight_uv
