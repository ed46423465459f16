"""What products with delegates apart (engine/matrix/separate.py) do beside the others: bring what vectors have for
delegates to all devices, pull the delegates' rows where their columns lie, and combine what comes of it at the owners.

Source: Pan, Pearce, Owens, "Scalable Breadth-First Search on a GPU Cluster", IPDPS 2018, section V, for every monoid.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...device.remote import AWAY
from ...distribute import needs
from ...distribute.blocks import MatrixBlock, VectorBlock, VectorStore
from ...distribute.halo import Piece
from ...distribute.rowmap import RowMap, Task
from ...kernels import interface as k
from ...kernels.interface import Spec
from ...semiring._types import INT64
from ..matrix.csr import whole_vector
from ..near import near_values, near_vector
from ..plan import Product, Step
from .output import Output


class Delegates(Output):
    """Steps of delegates, and what they share with those of other rows."""

    __slots__ = ()

    def _gather_hubs(self, step: Step) -> list[needs.Dense]:
        """What a vector, or a mask, has for delegates, which are the first rows of each block, on every device."""
        source, map, session = self.registers[step.sources[0]], step.into.map, self.session
        if type(source) is list:
            held = self.bits_of(map, [words for words, _ in source])
        else:
            stride, words = 0 if step.into.iso else 1, [block.words for block in source.blocks]
            triples = zip(map.rows, source.blocks, _first(words, map), strict=True)
            blocks = [VectorBlock(n, block.vals, stride, bits) for n, block, bits in triples]
            held = VectorStore(map, source.dtype, source.form, step.into.iso, blocks)
        held = near_vector(session, held)
        return session.over(map.tasks, lambda task: whole_vector(session, held, task.device), self.rows(map))

    def bits_of(self, map: RowMap, words: list[Any]) -> VectorStore:
        """The bits of the first rows of each block, as a vector of one value."""
        held = zip(map.rows, _first(words, map), strict=True)
        blocks = [VectorBlock(n, self.session.placeholders(b).words, 0, bits) for b, (n, bits) in enumerate(held)]
        return VectorStore(map, INT64, "bitmap", True, blocks)

    def near_bits(self, map: RowMap, sent: list[Any], pieces: list[list[Piece]]) -> list[list[Any]]:
        """The presence words of pieces that owners have packed, which begin with a word."""
        spans = [[Piece(d, begin >> 6, 0, (n + 63) >> 6) for d, begin, _, n in wanted] for wanted in pieces]
        return near_values(self.session, map, parts_of(sent, "words"), spans, np.int64)

    def place_bits(self, d: int, pieces: list[Piece], given: list[Any], slots: Any, words: Any) -> None:
        """Bits that others have packed, brought to device d, in the words of all slots."""
        session, device, unused = self.session, self.session.devices[d], self.session.placeholders(d)
        kernel = self.kernel("list_words", Spec(b=INT64, idx=slots.dtype.name))
        for piece, bits in zip(pieces, given, strict=True):
            (came,) = session.brought(piece.owner, d, [bits])
            there = slots[piece.at : piece.at + piece.length][device.rows_of(came, piece.length)]
            if len(there):
                kernel(device.full(1, len(there), np.int64), there, unused.words, 0, 0, words)

    def _partial(self, step: Step) -> list[needs.Dense]:
        """Pull of the delegates' rows from what each device owns, by their slots."""
        product, spec, heads, session = step.option, step.spec, step.into.map, self.session
        _, source, mask, known = step.sources
        apart = self.registers["A"].apart

        def work(task: Task) -> needs.Dense:
            d, unused = task.device, session.placeholders(task.device)
            vals, words, count = self.fresh_bitmap(heads.nslots, d, spec.out, spec.iso)
            bits = (self.registers[known][d].words, self.registers[mask][d][1]) if mask else (unused.words, 0)
            x = self.registers[source][d]
            self.pull_block(d, product, apart.delegates[d], x, bits, apart.users[d], (vals, words, count), False)
            return needs.Dense(vals, 0 if spec.iso else 1, words)

        return self.over(heads.tasks, work)

    def _combine_hubs(self, step: Step) -> VectorStore:
        """What devices have of the delegates' rows, combined by the owners, at the head of their blocks."""
        (t, parts), heads, session = [self.registers[name] for name in step.sources], step.option, self.session
        each, iso, kernel = range(heads.p), t.iso, self.kernel("write")
        spans = [(heads.first_slot(b), n) for b, n in enumerate(heads.rows)]
        wanted = [[Piece(d, lo, 0, n) for d in each if d != b] if n else [] for b, (lo, n) in enumerate(spans)]
        near_words = self.near_bits(heads, parts, wanted)
        near_vals = near_words if iso else near_values(session, heads, parts_of(parts, "vals"), wanted, t.dtype.np_type)

        def work(task: Task) -> VectorBlock:
            b, me, (lo, n) = task.block, task.device, spans[task.block]
            device, unused, block, (vals, _, words) = (
                session.devices[me],
                session.placeholders(me),
                t.blocks[b],
                parts[b][:3],
            )
            words, count = words[lo >> 6 : (lo + n + 63) >> 6], None
            vals = vals if iso else vals[lo : lo + n]
            for piece, *given in zip(wanted[b], near_words[b], near_vals[b], strict=True):
                came = session.brought(piece.owner, me, given[: 1 if iso else 2])
                count, theirs = device.zeros(1, np.int64), vals if iso else came[1]
                kernel(n, vals, words, theirs, 0 if iso else 1, came[0], unused.words, unused.words, 0, count)
            if n and not iso:
                device.copy(block.vals[:n], vals)
            if n and block.words is not None:
                block.words[: len(words)] |= words
                block.count += count
            return block

        return self.store(session.over(t.map.tasks, work, self.rows(heads)))

    def known(self, step: Step, mwords: Any, flags: int, d: int) -> Any:
        """Mask bits of all slots on device d: those of its own rows and of all delegates; others let through."""
        outer, heads, device = step.option.outer, step.option.heads, self.session.devices[d]
        known = self.registers[step.sources[4]][d].words
        words = device.full(outer.nslots >> 6, 0 if flags & k.COMPLEMENT else -1, np.int64)
        for b, n in enumerate(heads.rows):
            at, lo, size = outer.first_slot(b) >> 6, heads.first_slot(b) >> 6, (n + 63) >> 6
            device.copy(words[at : at + size], known[lo : lo + size])
        at, size = outer.first_slot(d) >> 6, (outer.rows[d] + 63) >> 6
        device.copy(words[at : at + size], mwords[:size])
        return words

    def pull_block(
        self, d: int, product: Product, block: MatrixBlock, x: Any, mask: tuple, rows: tuple, out: tuple, fixed: bool
    ) -> None:
        """Pull on device d for the rows of a block. x: over all slots of the inner index; mask: words and flags of the
        rows; rows: (row0, users); out: vals, words, count."""
        session, inner, (mwords, flags) = self.session, product.inner, mask
        device, unused, (traced, stats) = session.devices[d], session.placeholders(d), self.stats(d)
        layout, masked = session.kernels.pull_layout, bool(flags & k.MASKED)
        kernel, kind, exact, csr, heavy, options = layout(device, block, self.step.spec, x, inner.nslots, masked, fixed)
        assert getattr(x, "order", None) is None or kind == "pull_stream"
        if (far := getattr(x, "far", None)) is not None:
            for _, values in far.at:
                device.reach(values)
        given = x.vals, x.stride, unused.words if x.words is None else x.words
        flags |= traced | (k.XFULL if x.words is None else 0)
        ids = *inner.tables(device).ids, *rows
        (kernel or self.kernel(kind, exact))(block.n, *csr, *given, mwords, flags, *ids, heavy, *out, stats, **options)

    def over(self, tasks: Sequence[Task], work: Callable[[Task], Any]) -> list[Any]:
        """work(task) for the tasks of a product."""
        session = self.session
        found = session.over(tasks, work, self.registers["seconds"])
        if session.assigner is not None:
            decision = session.assigner.done()
            if session.watched is not None:
                session.watched.decision = decision
        return found


def parts_of(given: list[Any], name: str) -> list[Any]:
    """An attribute of what each device has."""
    return [AWAY if part is AWAY else getattr(part, name) for part in given]


def _first(words: list[Any], map: RowMap) -> list[Any]:
    """Of the presence words of each block those of its first rows."""
    pairs = zip(words, map.rows, strict=True)
    return [None if all is None or all is AWAY else all[: (n + 63) >> 6] for all, n in pairs]
