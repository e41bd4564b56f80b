"""Importing this module makes `import torch_npu` work where torch_npu is not installed; see
`mlaprolog.torch.install_torch_npu`."""

from .torch import install_torch_npu

torch_npu = install_torch_npu()
