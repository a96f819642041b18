"""What the responses to one prompt have in common: their spread, all right, all wrong, none different.

A group is either G rows side by side (an integer) or the rows with one id (an array (B,) of integers, in any order, groups of
any size). A group's statistics need the whole group: compute them before micro-batches split it. Responses outside the mask and
rewards that are NaN (an answer nobody could judge) are not members, and a group without members is no group.
"""

from __future__ import annotations

from typing import NamedTuple

from klinic.errors import BadUsage
from klinic.instrument.arrays import Array, kept, library, order, wide, zeros
from klinic.instrument.masked import masked_mean

EQUAL = 1e-6  # rewards whose std is below do not differ; TRL asks isclose(std, 0), that is 1e-8
SMALL = 1e-4  # added to a group's std, as in TRL (verl: 1e-6); a group without spread stays at 0


class Grouped(NamedTuple):
    """Values, one row a group (N, G), 0 where nobody is; who is a member (N, G); each response's place (B,) in the two."""

    values_NG: Array
    member_NG: Array
    place_B: Array


def grouped(values_B: Array, groups: int | Array, mask_B: Array | None = None) -> Grouped:
    """The values by group. mask_B: the responses that count; all of them without a mask.

    Raises BadUsage where B is no multiple of the group size, or where the ids are not one a response.
    """
    values_B = wide(values_B)
    xp = library(values_B)
    member = values_B == values_B  # false for NaN
    if mask_B is not None:
        member = member & kept(mask_B, values_B, "groups")
    values = xp.where(member, values_B, xp.zeros_like(values_B))
    if isinstance(groups, int):
        if groups < 1 or len(values) % groups:
            raise BadUsage(f"{len(values)} responses are no whole groups of {groups}", "groups")
        place = xp.ones_like(member, dtype=xp.int64).cumsum(0) - 1
        return Grouped(values.reshape(-1, groups), member.reshape(-1, groups), place)
    if tuple(groups.shape) != tuple(values.shape):
        raise BadUsage(f"{tuple(groups.shape)} ids for {len(values)} responses", "groups")
    by_id = order(groups)
    new = xp.ones_like(member)
    new[1:] = groups[by_id][1:] != groups[by_id][:-1]
    count = xp.ones_like(new, dtype=xp.int64).cumsum(0) - 1  # 0, 1, 2 and on
    row = new.cumsum(0) - 1
    column = count - count[new][row]
    wide_enough = int(column.max()) + 1 if len(values) else 1
    place = xp.zeros_like(count)
    place[by_id] = row * wide_enough + column
    shape = int(new.sum()) * wide_enough
    laid, there = zeros(values, shape), zeros(member, shape)
    laid[place], there[place] = values, member
    return Grouped(laid.reshape(-1, wide_enough), there.reshape(-1, wide_enough), place)


def group_mean(found: Grouped) -> Array:
    """Mean of each group's members (N,); NaN for none."""
    return masked_mean(found.values_NG, found.member_NG, 1)


def group_std(found: Grouped, ddof: int = 0) -> Array:
    """Standard deviation of each group's members (N,); 0 for one member, NaN for none.

    ddof 0 makes std(normalised advantages) = sqrt(1 - zero-variance share) exact; TRL and verl use 1, which gives at most
    sqrt((G - 1) / G).
    """
    xp = library(found.values_NG)
    mean = group_mean(found)
    off = xp.where(found.member_NG, found.values_NG - mean[:, None], xp.zeros_like(found.values_NG))
    count = found.member_NG.sum(1)
    divisor = xp.where(count > ddof, count - ddof, xp.ones_like(count))
    return xp.sqrt((off * off).sum(1) / divisor) + 0 * mean


def group_advantages(
    rewards_B: Array,
    groups: int | Array,
    mask_B: Array | None = None,
    small: float = SMALL,
    ddof: int = 0,
) -> Array:
    """Each reward minus its group's mean, divided by its group's std + small (B,); 0 for responses that do not count.

    Its std over the batch is the seeds' adv_std. (adv_std/group_normalised)
    """
    found = grouped(rewards_B, groups, mask_B)
    off = found.values_NG - group_mean(found)[:, None]
    scaled = off / (group_std(found, ddof)[:, None] + small)
    xp = library(scaled)
    return xp.where(found.member_NG, scaled, xp.zeros_like(scaled)).reshape(-1)[found.place_B]


def zero_std_share(rewards_B: Array, groups: int | Array, mask_B: Array | None = None) -> Array:
    """Share of the groups whose rewards do not differ: they give no gradient. NaN without groups. (groups/zero_std_frac)"""
    found = grouped(rewards_B, groups, mask_B)
    return masked_mean(group_std(found) < EQUAL, found.member_NG.any(1))


def all_right_share(right_B: Array, groups: int | Array, mask_B: Array | None = None) -> Array:
    """Share of the groups in which every answer is right (1). NaN without groups. (groups/all_right_frac)"""
    found = grouped(right_B, groups, mask_B)
    return masked_mean(group_mean(found) == 1, found.member_NG.any(1))


def all_wrong_share(right_B: Array, groups: int | Array, mask_B: Array | None = None) -> Array:
    """Share of the groups in which every answer is wrong (0). NaN without groups. (groups/all_wrong_frac)"""
    found = grouped(right_B, groups, mask_B)
    return masked_mean(group_mean(found) == 0, found.member_NG.any(1))
