"""One of two ranks that train the model of bench_zero with PyTorch's DistributedDataParallel over Gloo.

ddp_model.py RANK STORE: STORE is a file that the ranks meet in, and that must not be there. Reads `step` or `quit`
from stdin, a line each, and answers with a line of JSON.
"""
import pathlib
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "step"))

from step_model import Shape, Trainer, serve  # noqa: E402

RANKS = 2
SHAPE = Shape(layers=10, hidden=640, ffn=1728, heads=10, vocabulary=8192, length=1024, batch=1)


def main():
    rank, store = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    trainer = Trainer(SHAPE, torch.float32,
                      lambda model: torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True))
    serve(trainer, SHAPE, rank, RANKS, before_step=dist.barrier)


if __name__ == "__main__":
    main()
