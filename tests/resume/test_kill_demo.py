"""Tests of kill_demo.py with a small program in place of ours: `python tests/resume/test_kill_demo.py`."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# Counts to ten in a file, a fifth of a second for each step, and goes on where it was. Its first argument is what is wrong
# with it.
FAKE = '''#!/usr/bin/env python3
import json, sys, time
from pathlib import Path

kind, out = sys.argv[1], Path(sys.argv[sys.argv.index("--out") + 1])
resumed = "--resume" in sys.argv
out.mkdir(exist_ok=True)
steps = out / "steps"
if kind == "fails" and resumed:
    sys.exit("no such luck")
is_quick = kind == "always-quick" or kind == "first-quick" and out.name == "run-0"
pause = 0.0 if is_quick and not out.name.startswith("unbroken") else 0.2
while (done := len(steps.read_text()) if steps.exists() else 0) < 10:
    time.sleep(pause)
    (out / ".part").write_text("x" * (done + 1))
    (out / ".part").rename(steps)
report = {"run": {"command": f"fake --out {out}", "seconds": time.time()}, "iterations": [{"seconds": time.time()}]}
if kind == "forgets":
    report["resumed"] = resumed
(out / "report.json").write_text(json.dumps(report))
(out / "report.html").write_text(str(time.time()))
(out / "metrics.jsonl").write_text(json.dumps({"loss": 1, "per_second": time.time()}))
'''


class KillDemo(unittest.TestCase):
    def ran(self, kind, kills, runs):
        """Exit code, what was found, and all that was printed."""
        with tempfile.TemporaryDirectory() as folder:
            binary, found = Path(folder, "fake"), Path(folder, "found.json")
            binary.write_text(FAKE)
            binary.chmod(0o755)
            script = Path(__file__).with_name("kill_demo.py")
            options = ["--binary", binary, "--kills", str(kills), "--runs", str(runs), "--json", found, "--", kind]
            ran = subprocess.run(
                [sys.executable, script, *options], capture_output=True, text=True, env={"TMPDIR": folder, "PATH": "/usr/bin:/bin"}
            )
            return ran.returncode, json.loads(found.read_text()), ran.stdout + ran.stderr

    def test_all_kills_happen_and_clocks_are_not_compared(self):
        code, found, text = self.ran("good", 4, 2)
        self.assertEqual((code, found["kills"], len(found["trials"])), (0, 4, 2), text)
        self.assertTrue(all(moment <= 0.9 for trial in found["trials"] for moment in trial["moments"]), text)

    def test_missing_kills_are_made_up_for(self):
        code, found, text = self.ran("first-quick", 2, 1)
        self.assertEqual((code, found["kills"]), (0, 2), text)
        self.assertGreater(len(found["trials"]), 1, text)
        self.assertTrue(all(moment <= 0.5 for trial in found["trials"][1:] for moment in trial["moments"]), text)

    def test_too_few_kills_are_a_failure(self):
        code, found, text = self.ran("always-quick", 1, 1)
        self.assertEqual(code, 1, text)
        self.assertEqual((found["kills"], len(found["trials"])), (0, 11), text)
        self.assertIn("only 0 of 1 kills happened", text)

    def test_a_report_that_differs_is_found(self):
        code, found, text = self.ran("forgets", 1, 1)
        self.assertEqual((code, found["trials"][0]["differences"]), (1, ["report.json"]), text)

    def test_a_run_that_ends_with_an_error_is_a_failure(self):
        code, found, text = self.ran("fails", 3, 1)
        self.assertEqual((code, found["kills"]), (1, 1), text)
        self.assertIn("failed with 1:\nno such luck", text)


if __name__ == "__main__":
    unittest.main()
