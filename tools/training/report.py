"""What a run of the zoo tells: a table for the terminal, and the page docs/zoo.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from training.case import OptimizerCase
from training.compare import TOLERANCES
from training.trial import DIFFERENT, EQUAL, FAILED, REFUSED, UNSTABLE, Outcome

BAD = (DIFFERENT, FAILED)
# What a difference comes from, by what was trained.
_FLOAT16 = (
    "float16 is up to 0.011 off (tolerance 0.006): rounding behind layer norms is the likely cause, "
    "not traced to an operator"
)
REASONS: Mapping[str, str] = {
    "TransformerDecoder": _FLOAT16,
    "TransformerDecoderLayer": _FLOAT16,
    "SGD": "fused, with momentum and a 16-bit type: PyTorch's CPU kernel leaves part of `momentum_buffer` unwritten on "
    "its first step",
    "PixelShuffle": "as on Apple, the result of a channels-last input is contiguous; the CPU keeps the format",
    "PixelUnshuffle": "as on Apple, the result of a channels-last input is contiguous; the CPU keeps the format",
}


@dataclass(frozen=True)
class Row:
    """All cases of one module or optimizer."""

    name: str
    outcomes: tuple[Outcome, ...]

    def cell(self, dtype: torch.dtype) -> str:
        """How the cases of one type ended, with their number."""
        kinds = Counter(each.kind for each in self.outcomes if each.case.dtype == dtype)
        return ", ".join(f"{kind} ({kinds[kind]})" for kind in _ORDER if kinds[kind]) or "no case"

    @property
    def notes(self) -> str:
        """What a reader should know about the row."""
        notes = []
        if any(each.random for each in self.outcomes):
            notes.append("random, seeds mapped")
        if any(not each.same_layout for each in self.outcomes if each.kind == EQUAL):
            notes.append("other strides")
        notes += sorted({_reason(each.told[-1]) for each in self.outcomes if each.kind == REFUSED})
        if any(each.kind not in (EQUAL, REFUSED) or not each.same_layout for each in self.outcomes):
            notes.append(REASONS.get(self.name, "") or self._first_difference)
        return "; ".join(note for note in notes if note)

    @property
    def _first_difference(self) -> str:
        bad = [each for each in self.outcomes if each.kind not in (EQUAL, REFUSED)]
        return _cell_text(f"{bad[0].case.variant}: {bad[0].told[0]}") if bad else ""


_ORDER = (EQUAL, REFUSED, UNSTABLE, DIFFERENT, FAILED)


def rows(names: Iterable[str], outcomes: Sequence[Outcome]) -> list[Row]:
    """One row for each name, those without a case included."""
    return [Row(name, tuple(each for each in outcomes if each.case.name == name)) for name in names]


def totals(outcomes: Sequence[Outcome]) -> str:
    """The number of cases, and how many ended in which way."""
    kinds = Counter(each.kind for each in outcomes)
    return f"{len(outcomes)} cases: " + ", ".join(f"{kinds[kind]} {kind}" for kind in _ORDER if kinds[kind])


def table(made: Sequence[Row], dtypes: Sequence[torch.dtype], first: str) -> str:
    """A Markdown table of rows."""
    head = [first, *(_name(dtype) for dtype in dtypes), "notes"]
    lines = [head, ["---"] * len(head)]
    lines += [[f"`{row.name}`", *(row.cell(dtype) for dtype in dtypes), row.notes] for row in made]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def page(outcomes: Sequence[Outcome], dtypes: Sequence[torch.dtype], abstract: Mapping[str, str],
         names: Mapping[str, Sequence[str]], most: int) -> str:  # fmt: skip
    """docs/zoo.md as a whole."""
    modules = [each for each in outcomes if not isinstance(each.case, OptimizerCase)]
    optimizers = [each for each in outcomes if isinstance(each.case, OptimizerCase)]
    left_out = "\n".join(f"- `{name}`: {why}" for name, why in sorted(abstract.items()))
    return _PAGE.format(
        module_totals=totals(modules),
        module_table=table(rows(_without(names["modules"], abstract), modules), dtypes, "module"),
        optimizer_totals=totals(optimizers),
        optimizer_table=table(rows(_without(names["optimizers"], abstract), optimizers), dtypes, "optimizer"),
        left_out=left_out,
        most=most,
        tolerances="; ".join(
            f"{relative:g} and {absolute:g} in {_name(dtype)}" for dtype, (relative, absolute) in TOLERANCES.items()
        ),
        version=torch.__version__.partition("+")[0],
    )


def _without(names: Sequence[str], left_out: Mapping[str, str]) -> list[str]:
    return [name for name in names if name not in left_out]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _reason(told: str) -> str:
    return _cell_text(f"PyTorch's CPU refuses too: {told.partition(': ')[2].partition(': ')[2]}")


def _cell_text(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")[:160]


_PAGE = """# The zoo: every module and optimizer, trained

Generated by `python tools/zoo.py --write` with torch {version}.

Each module of `torch.nn` and each optimizer of `torch.optim` is trained twice: on the `mps` device of `python -m
aten_overlay`, where operators without a kernel run on the CPU and are counted, and on PyTorch's own CPU. The
arguments and inputs are those of PyTorch's own test databases (`common_modules.py`, `common_optimizers.py`); what
these leave out has inputs in `tools/training/others.py`.

Each case runs forward, backward and five steps, with the module's inputs as parameters too. Results, losses,
gradients, parameters, buffers and the optimizer's state are compared at every step. Then a `state_dict` is saved with
`torch.save`, loaded into a fresh module or optimizer, and used: on the device it must bring back every bit that it
brings back on the CPU. In float32, modules also run with channels-last inputs. Optimizers run as a plain loop, as
`foreach` and as `fused`, and with sparse gradients where they take them.

Each module and each implementation of an optimizer has at most {most} sets of arguments. A case is **equal** where no
number differs by more than the tolerance, relative and absolute: {tolerances}. **Refused alike** means that both
sides raise the same type of error, **unstable on the CPU** that the CPU alone gets another result when fresh memory
holds other bytes. The number of cases is in parentheses.

Gradients of a module in evaluation mode count too. Equal does not mean that the device's own kernels are right:
without `$PORTER_OPERATORS` the device has none, and what is tested is what lies around them.

Random modules are compared number by number: each random operator on the CPU gets the seed that its like on the
device took (**seeds mapped**).

## Modules

{module_totals}

{module_table}
## Optimizers

{optimizer_totals}

{optimizer_table}
## Not trained

{left_out}
"""
