#!/usr/bin/env python3
"""One rank's training step against the same model in eager PyTorch, step by step in turn.

Starts bench_step and step_model.py, keeps both warm and asks them for a step each, in alternating order. Prints both
losses, the median of the pair ratios (PyTorch's time / ours) with its 95 % interval, and our step against the time
that its matrix products alone would take at the speed measured beside each step.
"""
import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "measure"))

from programs import Program, environment, keep_pages, show  # noqa: E402

WARM_UP = 2


def compare(ours, theirs, pairs):
    rows = []
    for pair in range(-WARM_UP, pairs):
        first, second = (ours, theirs) if pair % 2 == 0 else (theirs, ours)
        answers = {first: first.ask("step"), second: second.ask("step")}
        peak = dict(ours.ask("peak"), products=ours.ask("products")["seconds"])
        if pair < 0:
            print(f"step {pair + WARM_UP + 1}: loss {answers[ours]['loss']:.6f} and {answers[theirs]['loss']:.6f}, "
                  f"gradient norm {answers[ours]['gradient_norm']:.5f} and {answers[theirs]['gradient_norm']:.5f}")
        else:
            rows.append((answers[ours], answers[theirs], peak))
    last = rows[-1]
    print(f"step {pairs + WARM_UP}: loss {last[0]['loss']:.6f} and {last[1]['loss']:.6f}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--core", default="Haswell", help="OPENBLAS_CORETYPE of both, or unset")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--program", default=HERE.parents[1] / "build/release/bin/bench_step")
    parser.add_argument("--python", default="python3", help="the interpreter that has PyTorch")
    arguments = parser.parse_args()

    variables = environment(arguments.core)
    ours = Program([str(arguments.program), arguments.precision], variables)
    theirs = Program([arguments.python, str(HERE / "step_model.py"), arguments.precision], keep_pages(variables))
    our_heading, their_heading = ours.read(), theirs.read()
    print(f"{our_heading['processor']}\n{arguments.precision}, OPENBLAS_CORETYPE {arguments.core}: OpenBLAS kernels "
          f"{our_heading['blas_core']} and {their_heading['blas_core']}, PyTorch {their_heading['torch']}, "
          f"{arguments.pairs} pairs; ours and PyTorch")
    rows = compare(ours, theirs, arguments.pairs)
    flops = our_heading["product_flops"]
    show("our step", [1e3 * own["seconds"] for own, _, _ in rows], " ms")
    show("PyTorch's step", [1e3 * other["seconds"] for _, other, _ in rows], " ms")
    show("PyTorch / ours", [other["seconds"] / own["seconds"] for own, other, _ in rows])
    show("PyTorch / ours, processor time", [other["cpu_seconds"] / own["cpu_seconds"] for own, other, _ in rows])
    for kind, name in (("engine", "the engine's products"), ("blas", "LibTorch's products")):
        if rows[0][2][kind] == 0:
            continue
        show(f"{name}, best shape", [peak[kind] / 1e9 for _, _, peak in rows], " Gflop/s")
        show(f"our step / {flops / 1e9:.1f} Gflop at that speed",
             [own["seconds"] / (flops / peak[kind]) for own, _, peak in rows])
        if kind == "engine":
            show("the step's products alone", [1e3 * peak["products"] for _, _, peak in rows], " ms")
            show("the step's products alone / Gflop at that speed",
                 [peak["products"] / (flops / peak[kind]) for _, _, peak in rows])
            show("our step / its products alone", [own["seconds"] / peak["products"] for own, _, peak in rows])
    ours.quit()
    theirs.quit()


if __name__ == "__main__":
    main()
