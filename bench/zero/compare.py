#!/usr/bin/env python3
"""ZeRO stages of two data-parallel ranks against PyTorch's DistributedDataParallel over Gloo, in the same run.

Starts bench_zero and two processes of ddp_model.py, keeps all warm and asks for a step each, in an order that turns
with the rounds. Prints the losses and gradient norms, so that one sees that it is the same model, and the medians of
the ratios (PyTorch's time / ours) with their 95 % intervals.
"""
import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "measure"))

from programs import Program, environment, keep_pages, show  # noqa: E402

WARM_UP = 2


class Layouts:
    """The contestants of bench_zero, a training run each."""

    def __init__(self, program, variables):
        self.program = Program([str(program), "serve"], variables)
        self.heading = self.program.read()
        self.names = self.heading["contestants"]

    def step(self, index):
        return self.program.ask(f"step {index}")


class Ddp:
    """Two ranks that take a step together; the later one's time counts."""

    def __init__(self, python, store, variables):
        command = [python, str(HERE / "ddp_model.py")]
        self.ranks = [Program(command + [str(rank), store], variables) for rank in range(2)]
        self.heading = [rank.read() for rank in self.ranks][0]

    def step(self):
        for rank in self.ranks:
            rank.tell("step")
        answers = [rank.read() for rank in self.ranks]
        return {"seconds": max(answer["seconds"] for answer in answers),
                "loss": sum(answer["loss"] for answer in answers) / len(answers),
                "gradient_norm": answers[0]["gradient_norm"]}

    def quit(self):
        for rank in self.ranks:
            rank.quit()


def one_round(layouts, ddp, number):
    """The answers by name, asked in an order that starts with another one in every round."""
    contestants = [(name, lambda index=index: layouts.step(index)) for index, name in enumerate(layouts.names)]
    contestants.append(("PyTorch DDP", ddp.step))
    first = number % len(contestants)
    answers = {name: step() for name, step in contestants[first:] + contestants[:first]}
    return {name: answers[name] for name, _ in contestants}


def show_losses(title, answers):
    print(f"{title}: " + ", ".join(f"{name} {answer['loss']:.6f} ({answer['gradient_norm']:.5f})"
                                   for name, answer in answers.items()))


def compare(layouts, ddp, rounds):
    answers = []
    for number in range(WARM_UP + rounds):
        answers.append(one_round(layouts, ddp, number))
        if number < WARM_UP:
            show_losses(f"step {number + 1}, loss (gradient norm)", answers[-1])
    show_losses(f"step {WARM_UP + rounds}", answers[-1])
    return answers[WARM_UP:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", default="Haswell", help="OPENBLAS_CORETYPE of both, or unset")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--program", default=HERE.parents[1] / "build/release/bin/bench_zero")
    parser.add_argument("--python", default="python3", help="the interpreter that has PyTorch")
    arguments = parser.parse_args()

    variables = environment(arguments.core)
    with tempfile.TemporaryDirectory() as directory:
        ddp = Ddp(arguments.python, directory + "/store", dict(keep_pages(variables), GLOO_SOCKET_IFNAME="lo"))
        layouts = Layouts(arguments.program, variables)
        print(f"{layouts.heading['processor']}\n{layouts.heading['parameters']:,} parameters, fp32, two ranks, "
              f"OPENBLAS_CORETYPE {arguments.core}, PyTorch {ddp.heading['torch']}, {arguments.rounds} rounds")
        rounds = compare(layouts, ddp, arguments.rounds)
        for name in rounds[0]:
            show(name, [1e3 * answers[name]["seconds"] for answers in rounds], " ms")
        for name in layouts.names:
            show(f"PyTorch DDP / {name}",
                 [answers["PyTorch DDP"]["seconds"] / answers[name]["seconds"] for answers in rounds])
        layouts.program.quit()
        ddp.quit()


if __name__ == "__main__":
    main()
