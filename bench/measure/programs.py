"""Programs that train a step when asked, and what becomes of their times: for the compare.py scripts."""
import json
import math
import os
import statistics
import subprocess


class Program:
    """Reads a command a line from stdin and answers each with a line of JSON, after one when it is ready."""

    def __init__(self, command, variables):
        self.process = subprocess.Popen(command, env=variables, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args[0]} has ended with status {self.process.wait()}")
        return json.loads(line)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command):
        self.tell(command)
        return self.read()

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.process.wait()


def median_interval(values):
    """Median and the interval between order statistics that covers the true one with at least 95 %."""
    ordered = sorted(values)
    reach = 0.98 * math.sqrt(len(ordered))
    low = max(0, math.floor(len(ordered) / 2 - reach))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + reach))
    return statistics.median(ordered), ordered[low], ordered[high]


def show(title, values, unit=""):
    median, low, high = median_interval(values)
    print(f"{title:<58}{median:8.3f}{unit}  [{low:.3f}, {high:.3f}]")


def environment(core):
    variables = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    variables.pop("OPENBLAS_CORETYPE", None)
    if core != "unset":
        variables["OPENBLAS_CORETYPE"] = core
    return variables


def keep_pages(variables):
    """glibc keeps freed memory: page faults are not what is compared."""
    return dict(variables, MALLOC_MMAP_THRESHOLD_=str(1 << 30), MALLOC_TRIM_THRESHOLD_=str(1 << 34),
                MALLOC_TOP_PAD_=str(64 << 20))
