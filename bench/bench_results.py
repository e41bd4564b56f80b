"""Reading the results of mlaprolog_bench and writing what is made of them."""

import json
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def convert(convert_results, usage, takes_more=False):
    """The main program of a converter: argv is <results.json> <output> [<more results>...]; `convert_results` turns
    results into text."""
    if len(sys.argv) < 3 or (len(sys.argv) > 3 and not takes_more):
        sys.exit(usage.strip())
    text = convert_results(*(load(path) for path in [sys.argv[1], *sys.argv[3:]]))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(text)
