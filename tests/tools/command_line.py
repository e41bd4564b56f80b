"""Running the command line from a test. MLAPROLOG names the program."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["MLAPROLOG"]


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def path(self, name: str) -> pathlib.Path:
        return self.directory / name

    def call(self, *args, expect=0, soc="none", **environment):
        """Runs the program and checks its exit code. Without limits of a device unless `soc` says otherwise."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MLAP_")}
        env.update(environment)
        if soc is not None:
            env["MLAP_SOC"] = soc
        done = subprocess.run([PROGRAM, *map(str, args)], env=env, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done

    def refuse(self, *args, words=(), **environment):
        """Runs the program, which must exit with 2 and one line that contains `words`."""
        done = self.call(*args, expect=2, **environment)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("mlaprolog: "), done.stderr)
        self.assertLess(len(done.stderr), 1000, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def new_case(self, name: str, *args, **environment) -> pathlib.Path:
        self.call("new-case", self.path(name), "--force", "--model", "tiny", "--block-size", "16", *args, **environment)
        return self.path(name)

    def paste(self, text: str) -> int:
        """Runs the indented lines of a document or a help text that begin with mlaprolog, all in one directory and in
        order, with no variable set; returns their number."""
        lines = re.findall(r"^ +mlaprolog (.*?)(?: +#.*)?$", text, re.M)
        for line in lines:
            words = [self.path(word) if word.endswith(".safetensors") else word for word in line.split()]
            if words == ["demo"]:
                words += ["--model", "youtu-llm", "--heads", "1", "--sequences", "2"]  # the same, in less time
            with self.subTest(line):
                self.call(*words, soc=None)
        return len(lines)
