import hashlib

import pytest

from epistemic_calibration.seeds import derive_seed


def test_seed_is_the_head_of_the_sha256_of_the_parts():
    digest = hashlib.sha256(b"0\0mnist\0deep_ensemble\x003").digest()
    assert derive_seed(0, "mnist", "deep_ensemble", 3) == int.from_bytes(digest[:4], "big")


@pytest.mark.fault
@pytest.mark.parametrize("parts", [(), ("a\0b",)])
def test_ambiguous_parts_are_refused(parts):
    with pytest.raises(ValueError):
        derive_seed(*parts)
