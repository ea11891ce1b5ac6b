import hashlib

import pytest

from epistemic_calibration.seeds import derive_seed


def test_seed_is_the_head_of_the_sha256_of_the_parts():
    digest = hashlib.sha256(b"0\0mnist\0deep_ensemble\x003").digest()
    assert derive_seed(0, "mnist", "deep_ensemble", 3) == int.from_bytes(digest[:4], "big")


def test_boundaries_between_parts_count():
    assert derive_seed("a", "bc") != derive_seed("ab", "c") != derive_seed("abc")


def test_seeds_fit_numpy_and_do_not_repeat():
    seeds = [derive_seed(0, "mnist", task) for task in range(1000)]
    assert all(0 <= seed < 2**32 for seed in seeds)
    # Chance of one collision among 1000 draws of 32 bits: about 1e-4.
    assert len(set(seeds)) == 1000


@pytest.mark.fault
@pytest.mark.parametrize("parts", [(), ("a\0b",)])
def test_ambiguous_parts_are_refused(parts):
    with pytest.raises(ValueError):
        derive_seed(*parts)
