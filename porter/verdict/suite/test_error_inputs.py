"""`TestErrorInputsMPS.test_error_inputs_<op>_mps`: error inputs of OpInfo raise errors."""

# mypy: disable-error-code="no-untyped-call, truthy-function"

from __future__ import annotations

from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite import execution
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.leaves import compute
from porter.verdict.suite.opinfos import opinfos, parametrize_over

OPINFOS = opinfos(get_context())


class TestErrorInputs(Consistency):
    """Error inputs raise the errors that OpInfo lists."""

    opinfos = OPINFOS

    @parametrize_over(
        [o for o in OPINFOS.select("mps_ops_error_inputs_modifier") if o.error_inputs_func], dtypes=OpDTypes.none
    )
    def test_error_inputs(self, device: str, op: OpInfo) -> None:
        errors = []
        with self.asking():  # making them may be refused
            errors += op.error_inputs(device, set_seed=False)
        for error in errors:
            sample = error.sample_input
            with (
                self.asking(),  # an error of another type is wrong too
                self.assertRaisesRegex(error.error_type, error.error_regex),
                execution.device_context(),
            ):
                compute(op, sample)
        self.raise_noted()


instantiate(TestErrorInputs, globals())
