"""docs/performance.md is what bench/performance_page.py makes of the published results.

Usage: performance_page.py <project>
"""
import pathlib
import subprocess
import sys
import tempfile

RESULTS = ("performance.json", "performance_avx512bf16.json", "performance_avx2.json", "performance_one_thread.json")


def main():
    root = pathlib.Path(sys.argv[1])
    docs = root / "docs"
    first, *further = [docs / name for name in RESULTS]
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory, "page.md")
        subprocess.run([sys.executable, "-B", root / "bench/performance_page.py", first, page, *further], check=True)
        if page.read_text() == (docs / "performance.md").read_text():
            return 0
    print("docs/performance.md is not what bench/performance_page.py makes of " + ", ".join(RESULTS))
    return 1


if __name__ == "__main__":
    sys.exit(main())
