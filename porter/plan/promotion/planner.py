"""Plans the change set that adds a promoted kernel to a fork, and the same files for a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from porter.aten.native_functions import NativeFunctions
from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import SCALAR_TYPES, Kind
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.formatting import format_block
from porter.core.layout import EXPECTED_DECOMPOSITIONS, KERNELS, NATIVE, NATIVE_FUNCTIONS, OPERATIONS, OPINFOS, TEST_MPS
from porter.plan.draft import Draft
from porter.plan.promotion import tests
from porter.plan.promotion.host_file import write_host_file, write_meta_file
from porter.plan.promotion.kernel_file import write_kernel_file
from porter.plan.promotion.promotion import Decision, Promotion
from porter.plan.promotion.rows import write_rows
from porter.plan.promotion.style import Style, read_style
from porter.plan.test_files import insert_decompositions, insert_opinfo, insert_test

_KINDS = {each.torch: each.kind for each in SCALAR_TYPES}
_DIFFERENTIABLE = (Kind.FLOATING, Kind.COMPLEX)
_NO_TESTS = "has no list of OpInfos, so the operator has none"


@dataclass(frozen=True)
class PromotionPlan:
    """The promotion, the change set that adds it, and what a person has to decide."""

    promotion: Promotion
    changes: ChangeSet
    decisions: tuple[Decision, ...]


def plan_promotion(checkout: Checkout, promotion: Promotion) -> PromotionPlan:
    """The change set that adds an operator to a fork.

    Raises PTR242 for an operator or a file that is there already, and what reading and formatting raise.
    """
    functions = NativeFunctions.read(checkout)
    if functions.has(promotion.op):
        place = functions.find_overloads(promotion.op)[0].place
        raise PorterError("PTR242", f"the fork has the operator {promotion.op} already", place, "Choose another --op.")
    style = read_style(checkout)
    files = {path: format_block(checkout, path, text) for path, text in _new_files(promotion, style).items()}
    for path in files:
        _refuse_file(checkout, path)
    created = ChangeSet({}, tuple(Edit(path, 0, 0, text) for path, text in files.items()))
    draft = Draft(checkout).follow(created)
    draft = draft.apply([_row_edit(checkout, promotion)])
    edits, decisions = [], list(_decisions(promotion))
    for path, edit in (
        (OPINFOS, _edit_opinfos),
        (TEST_MPS, _edit_test_mps),
        (EXPECTED_DECOMPOSITIONS, _edit_decompositions),
    ):
        if checkout.exists(path):
            edits += list(edit(checkout.read(path), promotion))
    draft = draft.apply(edits)
    if not checkout.exists(OPINFOS):
        decisions.append(Decision(Place(OPINFOS), f"the checkout {_NO_TESTS}"))
    return PromotionPlan(promotion, draft.changes, tuple(dict.fromkeys(decisions)))


def write_files(checkout: Checkout, promotion: Promotion) -> Mapping[str, str]:
    """The same texts as files of a folder: new files by their names, additions to others by what they are added to.

    The embedded fork stands for none: its files lack what PyTorch's do.
    """
    style = Style() if checkout.root == EMBEDDED_FORK else read_style(checkout)
    files = {
        path.rpartition("/")[2]: format_block(checkout, path, text)
        for path, text in _new_files(promotion, style).items()
    }
    opinfo = tests.write_functions(promotion)
    if promotion.has_opinfo:
        opinfo += f"\n\n# In op_db\n{tests.write_opinfo(promotion)}"
    decided = "".join(f"- {each}\n" for each in _decisions(promotion))
    return {
        **files,
        "native_functions.yaml": write_rows(promotion),
        "common_methods_invocations.py": opinfo,
        "test_mps.py": tests.write_test(promotion),
        "README.md": f"# {promotion.op}\n\nTo decide:\n\n{decided}",
    }


def _new_files(promotion: Promotion, style: Style) -> dict[str, str]:
    return {
        f"{KERNELS}/{promotion.file}.metal": write_kernel_file(promotion, style),
        f"{OPERATIONS}/{promotion.file}.mm": write_host_file(promotion, style),
        f"{NATIVE}/{promotion.file}.cpp": write_meta_file(promotion),
    }


def _refuse_file(checkout: Checkout, path: str) -> None:
    folder, _, name = path.rpartition("/")
    # Not every file system tells names apart by case, and a fork is checked out on those too.
    for other in checkout.list(folder, f".{name.rpartition('.')[2]}"):
        if other.lower() == path.lower():
            raise PorterError("PTR242", "the fork has this file already", Place(other), "Choose another --op.")


def _row_edit(checkout: Checkout, promotion: Promotion) -> Edit:
    text = checkout.read(NATIVE_FUNCTIONS)
    gap = "\n" * max(0, 2 - (len(text) - len(text.rstrip("\n"))))
    return Edit(NATIVE_FUNCTIONS, len(text), len(text), f"{gap}{write_rows(promotion)}")


def _edit_opinfos(text: str, promotion: Promotion) -> Iterator[Edit]:
    entry = tests.write_opinfo(promotion) if promotion.has_opinfo else ""
    return insert_opinfo(text, promotion.op, tests.write_functions(promotion), entry)


def _edit_test_mps(text: str, promotion: Promotion) -> Iterator[Edit]:
    return insert_test(text, tests.write_test(promotion))


def _edit_decompositions(text: str, promotion: Promotion) -> Iterator[Edit]:
    return insert_decompositions(text, (promotion.op, f"{promotion.op}.out"))


def _decisions(promotion: Promotion) -> Iterator[Decision]:
    yield from promotion.decisions
    place = promotion.program.launch.place
    if promotion.cpu and not promotion.has_opinfo:
        yield Decision(place, "the first argument is no tensor, as OpInfo's tests want it to be: there is no OpInfo")
    if any(_KINDS[each] in _DIFFERENTIABLE for dtypes in promotion.dtypes.values() for each in dtypes):
        what = "there is no gradient: add a formula to derivatives.yaml, or leave the operator without one"
        yield Decision(place, what)
