"""The registry of variations: ways in which samples differ from OpInfo's, each a test of its own.

`test_variations.py` makes `TestVariationsMPS.test_<name>_<op>_mps_<dtype>` of each. A new variation is a module here
with a `Variation`, and its name in `VARIATIONS`.
"""

from __future__ import annotations

from porter.verdict.suite.variations import (
    asked_gradients,
    channels_last,
    combined_arguments,
    combines,
    empty_gradients,
    far_numbers,
    index_types,
    lists,
    many_addends,
    more_indices,
    near_powers,
    omitted_arguments,
    outs,
    past_tiles,
    ranks,
    refused_arguments,
    sized_arguments,
    small_spreads,
    unlisted_types,
    wide_accumulation,
    wide_sizes,
)
from porter.verdict.suite.variations.variation import Variation

VARIATIONS: tuple[Variation, ...] = (
    asked_gradients.ASKED_GRADIENTS,
    empty_gradients.EMPTY_GRADIENTS,
    many_addends.MANY_ADDENDS,
    wide_accumulation.WIDE_ACCUMULATION,
    channels_last.CHANNELS,
    index_types.INDEX_TYPES,
    index_types.SLOPES_BY_INDEX_TYPES,
    more_indices.MORE_INDICES,
    more_indices.SLOPES_BY_MORE_INDICES,
    lists.LISTS,
    outs.OUTS,
    past_tiles.PAST_TILES,
    past_tiles.SLOPES_PAST_TILES,
    ranks.FEW,
    ranks.EVERY,
    ranks.SLOPES_BY_RANKS,
    omitted_arguments.STRUCTURED,
    omitted_arguments.ELEMENTWISE,
    refused_arguments.REFUSED,
    refused_arguments.REFUSED_NUMBERS,
    refused_arguments.REFUSED_CALLS,
    sized_arguments.SIZED_ARGUMENTS,
    small_spreads.SMALL_SPREADS,
    unlisted_types.STRUCTURED,
    unlisted_types.ELEMENTWISE,
    unlisted_types.REAL_OTHERS,
    wide_sizes.WIDE_SIZES,
    wide_sizes.WIDE_GRADIENTS,
    wide_sizes.WIDER_GRADIENTS,
    wide_sizes.WIDE_GRADIENTS_IN_16_BITS,
    wide_sizes.LONG_GRADIENTS,
    combines.COMBINES,
    combines.IDENTITIES,
    combined_arguments.COMBINED_ARGUMENTS,
    combined_arguments.COMBINED_IN_EVERY_TYPE,
    near_powers.NEAR_POWERS,
    near_powers.SLOPES_NEAR_POWERS,
    far_numbers.FAR_NUMBERS,
    far_numbers.FAR_SCALARS,
)
