"""How often each item was shown, as rows that a cluster adds up: taken out of a result and put back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.evaluation.exposure import N_GROUPS
from recsys.evaluation.files.result_files import pack
from recsys.records.arrays import Array, Catalogue, Exposure, Ids, Partial

# A number for what was shown, and per row: the group of users, the item and how much of it.
ShownRows = tuple[int, Array, Array, Array]


def without_exposure(partial: Partial, label: Any = None) -> tuple[Partial, list[ShownRows]]:
    """Return the result without items, and these as rows: exposure by group, items of the catalogue."""
    nothing, no_codes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    shown, exposure, strata = [], {}, {}
    for key, found in partial.exposure.items():
        group = np.repeat(np.arange(N_GROUPS), np.diff(found.indptr))
        shown.append((_key_of(label, key), group, found.items.values[found.codes], found.counts))
        no_starts = np.zeros(N_GROUPS + 1, dtype=np.int64)
        exposure[key] = Exposure(Ids(nothing), no_starts, no_codes, nothing, found.cases, found.unit)
    catalogue = partial.catalogue
    if catalogue is not None:
        none = np.zeros(len(catalogue.ids), dtype=np.int64)
        shown.append((_key_of(label, "catalogue"), none, catalogue.ids.values, none))
        catalogue = replace(catalogue, ids=Ids(nothing))
    for name, stratum in partial.strata.items():
        part, of_group = without_exposure(stratum.partial, name)
        shown += of_group
        strata[name] = replace(stratum, partial=part)
    return replace(partial, exposure=exposure, catalogue=catalogue, strata=strata), shown


def with_exposure(partial: Partial, shown: Mapping[int, ShownRows], label: Any = None) -> Partial:
    """Return the result with its items again, from the rows of all partitions added up."""
    nothing = np.zeros(0, dtype=np.int64)
    none: ShownRows = (0, nothing, nothing, nothing)
    exposure = {}
    for key, known in partial.exposure.items():
        _, group, item, units = shown.get(_key_of(label, key), none)
        items = Ids(np.unique(item))
        code = items.code_of(item)
        order = np.lexsort((code, group))
        starts = np.searchsorted(group[order], np.arange(N_GROUPS + 1))
        codes = code[order].astype(np.int32)
        exposure[key] = Exposure(items, starts, codes, units[order], known.cases, known.unit)
    catalogue = partial.catalogue
    if catalogue is not None and catalogue.how != "ids":
        ids = Ids(np.unique(shown.get(_key_of(label, "catalogue"), none)[2]))
        catalogue = Catalogue(ids, len(ids) if catalogue.how == "found" else catalogue.n, catalogue.how)
    strata = {
        name: replace(stratum, partial=with_exposure(stratum.partial, shown, name))
        for name, stratum in partial.strata.items()
    }
    return replace(partial, exposure=exposure, catalogue=catalogue, strata=strata)


def _key_of(label: Any, what: Any) -> int:
    """Return the number of an exposure or catalogue, the same in all partitions."""
    if isinstance(label, bool | np.bool_ | float | np.floating) and float(label).is_integer():
        label = int(label)  # equal labels are one group
    text = json.dumps(pack((label, what)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


def rows_by_key(rows: Any) -> dict[int, ShownRows]:
    """Return the rows that were added up on the cluster, by number."""
    key, group, units = (rows.column(name).to_numpy() for name in ("key", "grp", "units"))
    item = rows.column("item").to_numpy()
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order])) + 1
    return {
        int(key[at[0]]): (int(key[at[0]]), group[at], item[at], units[at])
        for at in np.split(order, ends)
        if len(at)
    }
