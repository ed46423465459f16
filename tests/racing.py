"""What tools/check_gpus.py runs under racecheck: small loops that are one kernel each, whose rounds are checked to be
just that, and what they find to be the same each time."""

from __future__ import annotations

import numpy as np

import algos
import gbgpu as gb


def road(k: int) -> list[gb.Matrix]:
    """A grid of k x k crossings: its pattern, and its lengths."""
    ids = np.arange(k * k).reshape(k, k)
    i, j = np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()], np.r_[ids[:, 1:].ravel(), ids[1:].ravel()]
    lengths = np.random.default_rng(1).integers(1, 9, i.size).astype(np.float32)
    both = np.r_[i, j], np.r_[j, i]
    return [gb.Matrix.from_coo(*both, vals, nrows=k * k, ncols=k * k) for vals in (True, np.r_[lengths, lengths])]


def main() -> None:
    gb.init("cuda:0")
    gb.settings.resident = "now"
    A, W = road(16)
    R = gb.io.rmat(9, 8, seed=1, dtype="BOOL")
    calls = {
        "levels of a road": lambda: algos.bfs_levels(A, 3),
        "levels and parents": lambda: algos.bfs(A, 3).levels,
        "shortest paths": lambda: algos.sssp(W, 3),
        "core numbers": lambda: algos.core_numbers(R),
        "levels of RMAT": lambda: algos.bfs_levels(R, 0),
    }
    for name, call in calls.items():
        first, hows = call().to_coo()[1], set()
        for _ in range(3):
            with gb.trace(rounds=True) as records:
                found = call().to_coo()[1]
            hows |= {record.text.partition(": ")[2] for record in records if record.step.endswith("round")}
            assert np.array_equal(found, first), name
        assert hows and all(how.startswith("one persistent kernel") for how in hows), (name, hows)
        print(f"{name}: {'; '.join(sorted(hows))}", flush=True)


if __name__ == "__main__":
    main()
