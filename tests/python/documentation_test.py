"""The Python programs of the documents run as they stand there, and print what is written under them."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A program, and the block after it that says what it prints.
PROGRAM = re.compile(r"^```python\n(.*?)^```\n+(?:[^\n`]+\n)*\n*(?:```text\n(.*?)^```)?", re.S | re.M)


def programs():
    for name in ("README.md", "docs/python.md"):
        for number, (program, output) in enumerate(PROGRAM.findall((ROOT / name).read_text()), 1):
            yield pytest.param(program, output, id=f"{name}-{number}")


PROGRAMS = list(programs())


def test_there_are_programs():
    assert len(PROGRAMS) >= 4


@pytest.mark.parametrize("program, output", PROGRAMS)
def test_a_program_runs(program, output):
    if "torch" in program:
        pytest.importorskip("torch")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    if output:
        assert result.stdout == output


@pytest.mark.parametrize("name", ["numpy_quickstart", "torch_quickstart"])
def test_the_readme_shows_the_examples(name):
    example = (ROOT / "examples" / "python" / f"{name}.py").read_text()
    code = example.split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()
