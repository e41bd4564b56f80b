"""Reading the results of mlaprolog_bench and writing what is made of them."""

import json
import sys


def convert(convert_results, usage):
    """The main program of a converter: argv is <results.json> <output>; `convert_results` turns results into text."""
    if len(sys.argv) != 3:
        sys.exit(usage.strip())
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    text = convert_results(results)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(text)
